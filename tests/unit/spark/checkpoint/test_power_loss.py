"""What of Spark's files survives a power loss, and what is discarded after one."""

import json

import pytest

from cutwater.spark.checkpoint import power_loss
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.storage.durable import SYNC_LOG, write_json


@pytest.fixture
def place(tmp_path):
    made = Checkpoint(tmp_path / "checkpoint")
    made.create()
    return made


def put(place, *names):
    for name in names:
        path = place.spark / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1\n")


def begin(place, epoch):
    """As Spark does: the end of the epoch before, then the offsets of this one."""
    if epoch:
        put(place, f"commits/{epoch - 1}", *(f"state/0/{p}/{epoch}_u.changelog" for p in (0, 1)))
    put(place, "metadata", f"offsets/{epoch}", "state/0/_metadata/v2/0")


def names(place):
    return {str(p.relative_to(place.spark)) for p in place.spark.rglob("*") if p.is_file()}


@pytest.fixture
def reboot(monkeypatch):
    monkeypatch.setattr(power_loss, "boot_id", lambda: "before")
    return lambda: monkeypatch.setattr(power_loss, "boot_id", lambda: "after")


def test_everything_an_epoch_rests_on_is_synced_before_it_runs(place, monkeypatch, tmp_path):
    monkeypatch.setenv(SYNC_LOG, str(tmp_path / "syncs"))
    files = SparkFiles(place.root)
    for epoch in range(3):
        (tmp_path / "syncs").write_text("")
        begin(place, epoch)
        files.sync()
        synced = {json.loads(line)[1] for line in (tmp_path / "syncs").read_text().splitlines()}
        wanted = {"metadata"} if not epoch else {f"state/0/1/{epoch}_u.changelog", "state/0/1"}
        wanted |= {f"offsets/{epoch}", "offsets", ".", *([f"commits/{epoch - 1}"] * (epoch > 0))}
        assert {str(place.spark / name) for name in wanted} <= synced
        assert str(place.spark / "metadata") in synced or epoch


def test_an_epoch_is_synced_once_whoever_of_the_sources_asks(place, monkeypatch):
    begin(place, 0)
    SparkFiles(place.root).sync()
    monkeypatch.setattr(power_loss, "sync_path", pytest.fail)
    SparkFiles(place.root).sync()


@pytest.mark.usefixtures("reboot")
def test_a_process_that_dies_loses_nothing(place):
    begin(place, 0)
    SparkFiles(place.root).sync()
    begin(place, 1)
    before = names(place)
    assert SparkFiles(place.root).discard_unsynced() == []
    assert names(place) == before


def test_what_was_written_after_the_last_sync_is_discarded(place, reboot):
    begin(place, 0)
    SparkFiles(place.root).sync()
    begin(place, 1)
    SparkFiles(place.root).sync()
    durable = names(place)
    begin(place, 2)
    put(place, "state/0/0/1_u.zip", "state/0/0/1_u.zip.crc", "state/0/0/2_v.changelog.crc")
    reboot()
    SparkFiles(place.root).discard_unsynced()
    assert names(place) == durable
    assert place.is_mid_epoch()
    assert place.next_epoch() == 2


def test_sums_of_bytes_that_are_not_there_go_and_others_stay(place, reboot):
    begin(place, 0)
    (place.spark / ".metadata.crc").write_bytes(b"crc\0\0\0\2\0\1\2\3\4")
    (place.spark / "offsets" / ".0.crc").write_bytes(b"")
    (place.spark / "offsets" / ".9.crc").write_bytes(b"crc\0\0\0\2\0")
    (place.spark / "state/0/_metadata/v2/.0.crc").write_bytes(bytes(12))
    SparkFiles(place.root).sync()
    reboot()
    SparkFiles(place.root).discard_unsynced()
    assert not list(place.spark.rglob(".*.crc"))


def test_a_machine_that_dies_before_any_epoch_ran_leaves_nothing_of_sparks(place, reboot):
    SparkFiles(place.root).sync_all()
    begin(place, 0)
    reboot()
    SparkFiles(place.root).discard_unsynced()
    assert not place.spark.exists()


def test_before_anything_is_discarded_a_checkpoint_is_seen_as_it_will_be(place, reboot):
    """Torn offsets are not read by the checks that come before the lock."""
    begin(place, 0)
    SparkFiles(place.root).sync()
    begin(place, 1)
    (place.spark / "offsets" / "1").write_text("")
    assert (place.next_epoch(), place.is_mid_epoch()) == (2, True)
    reboot()
    assert (place.next_epoch(), place.is_mid_epoch()) == (1, True)
    assert place.finished_epochs() == []


def test_without_a_note_finished_epochs_are_left_alone(place, reboot):
    """Those of a flow that reads DataFrames, which are not protected."""
    begin(place, 0)
    SparkFiles(place.root).sync()
    SparkFiles(place.root).promise_nothing()
    begin(place, 1)
    before = names(place)
    reboot()
    assert SparkFiles(place.root).discard_unsynced() == []
    assert names(place) == before


def test_an_epoch_that_is_planned_anew_is_synced_anew(place, reboot):
    begin(place, 0)
    SparkFiles(place.root).sync()
    begin(place, 1)
    SparkFiles(place.root).sync()
    (place.spark / "offsets" / "1").unlink()
    SparkFiles(place.root).sync_all()  # as every start does
    put(place, "offsets/1")
    reboot()
    SparkFiles(place.root).discard_unsynced()
    assert (place.next_epoch(), place.is_mid_epoch()) == (1, False)


def test_what_a_start_finds_finished_stays_finished(place, reboot):
    """As after a rescaling, whose epoch must not be run again."""
    begin(place, 0)
    SparkFiles(place.root).sync()
    put(place, "commits/0")
    SparkFiles(place.root).sync_all()
    reboot()
    assert SparkFiles(place.root).discard_unsynced() == []
    assert not place.is_mid_epoch()


def test_a_planner_that_was_fenced_during_a_sync_takes_nothing_back(place, reboot, monkeypatch):
    """It was paused before it noted what it had synced, and the next run went on meanwhile."""
    begin(place, 0)
    paused = []
    with monkeypatch.context() as patch:
        patch.setattr(power_loss, "write_json", lambda *note: paused.append(note))
        SparkFiles(place.root, 1).sync()
    begin(place, 1)
    SparkFiles(place.root, 2).sync()
    durable = names(place)
    write_json(*paused[0])
    reboot()
    SparkFiles(place.root).discard_unsynced()
    assert names(place) == durable
    assert place.next_epoch() == 2


def test_the_note_of_the_newest_generation_is_the_only_one(place):
    begin(place, 0)
    for generation in (9, 10):
        SparkFiles(place.root, generation).sync_all()
    assert [path.name for path in place.root.glob("synced*")] == ["synced-10.json"]
    SparkFiles(place.root, 11).promise_nothing()
    assert [path.name for path in place.root.glob("synced*")] == ["synced-11.json"]
    assert not SparkFiles(place.root).is_promised()


def test_a_discard_that_is_cut_off_is_done_again(place, reboot, monkeypatch):
    begin(place, 0)
    SparkFiles(place.root).sync()
    begin(place, 1)
    reboot()
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(power_loss, "sync_folder", lambda folder: seen.append(names(place)) or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            SparkFiles(place.root).discard_unsynced()
    SparkFiles(place.root).discard_unsynced()
    assert names(place) == {"metadata", "offsets/0", "state/0/_metadata/v2/0"}
