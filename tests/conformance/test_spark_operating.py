"""On real Spark: damaged checkpoints, states as tables, and what a run tells."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import CutwaterError
from cutwater.spark.checkpoint import power_loss

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + item.size, [Item(item.name, state + item.size)]


def flow():
    made = cw.Flow("totals")
    sums = made.source("items", Item).key_by("name").apply(total)
    made.sink("sums", sums)
    made.sink("counts", sums.key_by("size").aggregate(n=cw.agg.count(), name="count"))
    return made


def put(root, number):
    lines = [json.dumps({"name": f"k{n % 5}", "size": n}) for n in range(10)]
    (root / "in" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")


def run(root, spark, inputs=None, **more):
    return cutwater_spark.run(
        flow(),
        spark,
        sources={"items": inputs or root / "in"},
        sinks={"sums": root / "sums", "counts": root / "counts"},
        checkpoint=root / "state",
        **more,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory, spark):
    """A checkpoint with a few epochs, and what was told of them."""
    root = tmp_path_factory.mktemp("whole")
    (root / "in").mkdir()
    told = []
    for number in range(3):
        put(root, number)
        run(root, spark, on_progress=told.append)
    return root, told


@pytest.fixture
def copy(whole, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(whole[0], root)
    return root


def test_what_is_reported_of_an_epoch(whole):
    _, told = whole
    assert [progress.epoch for progress in told] == [0, 1, 2]
    for progress in told:
        assert progress.rows == {"sums": 10, "counts": 10}
        assert (progress.sources["items"].unit, progress.late) == ("bytes", 0)
        assert progress.sources["items"].read > 200
        assert progress.duration_ms > 0
        assert progress.state_memory_bytes > 0


def test_states_are_tables(whole, spark):
    root, _ = whole
    newest = cutwater_spark.read_state(root / "state", "total", spark)
    assert (newest.flow, newest.epoch, newest.is_whole) == ("totals", 2, True)
    assert {row["key"]: row["state"] for row in newest.rows} == {
        f"k{n}": 3 * (n + n + 5) for n in range(5)
    }
    first = cutwater_spark.read_state(root / "state", "total", spark, epoch=0, keys=["k1"])
    assert first.rows == [{"key": "k1", "state": 7}]
    counts = cutwater_spark.read_state(root / "state", "count", spark, limit=3)
    assert (len(counts.rows), counts.is_whole) == (3, False)
    assert all(row["count()"] >= 1 and isinstance(row["key"], int) for row in counts.rows)


@pytest.mark.parametrize("epoch", range(3))
@pytest.mark.parametrize("step", ["total", "count"])
def test_the_files_of_states_say_what_spark_says(whole, spark, step, epoch):
    place = whole[0] / "state"
    assert cutwater_spark.read_state(place, step, epoch=epoch) == cutwater_spark.read_state(
        place, step, spark, epoch=epoch
    )


@cw.task(initial="")
def padded(state: str, item: Item) -> tuple[str, list[Item]]:
    return f"{item.size:_>30000}", [item]


def test_the_files_of_a_log_that_was_cleaned_say_what_spark_says(tmp_path, spark):
    """Entries were removed, there is a snapshot, and changelogs follow it."""
    (tmp_path / "in").mkdir()
    made = cw.Flow("padded")
    made.sink("out", made.source("items", Item).key_by("name").apply(padded))
    for number in range(14):
        line = json.dumps({"name": "same", "size": number})
        (tmp_path / "in" / f"{number:02}.jsonl").write_text(f"{line}\n")
    cutwater_spark.run(
        made,
        spark,
        sources={"items": cutwater_spark.json_lines(tmp_path / "in", max_bytes_per_epoch=1)},
        sinks={"out": tmp_path / "out"},
        checkpoint=tmp_path / "state",
    )
    for epoch in (9, 13):
        found = cutwater_spark.read_state(tmp_path / "state", "padded", epoch=epoch)
        assert [(row["key"], int(row["state"].strip("_"))) for row in found.rows] == [
            ("same", epoch)
        ]
        by_spark = cutwater_spark.read_state(tmp_path / "state", "padded", spark, epoch=epoch)
        assert found == by_spark


def test_a_whole_checkpoint_is_whole(whole):
    found = cutwater_spark.verify(whole[0] / "state")
    assert found.problems == []
    assert found.files > 20


def newest(root, pattern):
    return max(
        (root / "state").glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path.name)
    )


KINDS = {
    "identity": "cutwater.json",
    "entry": "sources/items/*/3.json",
    "offset": "spark/offsets/2",
    "commit": "spark/commits/2",
    "query": "spark/metadata",
    "changes": "spark/state/1/0/*.changelog",
    "snapshot": "spark/state/1/0/*.zip",
}
HARMS = {
    "truncated": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "altered": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1])
    + data[len(data) // 2 + 1 :],
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_refused_with_its_name(copy, spark, kind, harm):
    path = newest(copy, KINDS[kind])
    path.write_bytes(HARMS[harm](path.read_bytes()))
    before = sorted(p.name for p in copy.glob("*/epoch=*"))
    assert any(str(path) in p.message for p in cutwater_spark.verify(copy / "state").problems)
    put(copy, 3)
    with pytest.raises(CutwaterError) as refused:
        run(copy, spark)
    assert "spark-failed" not in str(refused.value)
    assert str(path) in str(refused.value)
    assert "hint: " in str(refused.value)
    assert sorted(p.name for p in copy.glob("*/epoch=*")) == before


def test_the_newest_commit_deleted_shows_nothing_twice(whole, copy, spark):
    (copy / "state" / "spark" / "commits" / "2").unlink()
    (copy / "state" / "spark" / "commits" / ".2.crc").unlink()
    result = run(copy, spark, inputs=whole[0] / "in")
    assert (result.epochs, result.rows) == (1, {"sums": 30, "counts": 30})
    for sink in ("sums", "counts"):
        for part in whole[0].glob(f"{sink}/epoch=*/*.jsonl"):
            assert (copy / part.relative_to(whole[0])).read_bytes() == part.read_bytes()


def test_a_reboot_after_an_orderly_end_takes_nothing_back(tmp_path, spark, monkeypatch):
    """A closed checkpoint has no next start that would replay its last epoch."""
    (tmp_path / "in").mkdir()
    put(tmp_path, 0)
    run(tmp_path, spark, close=True)
    place = tmp_path / "state"
    before = cutwater_spark.describe(place), cutwater_spark.read_state(place, "total")
    assert not before[0].is_mid_epoch
    monkeypatch.setattr(power_loss, "boot_id", lambda: "another boot")
    assert (cutwater_spark.describe(place), cutwater_spark.read_state(place, "total")) == before


def test_a_run_may_be_in_another_thread(tmp_path, spark):
    (tmp_path / "in").mkdir()
    put(tmp_path, 0)
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(run, tmp_path, spark).result()
    assert result.rows["sums"] == 10


def test_a_checkpoint_can_be_moved_with_its_output(tmp_path, spark):
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "in").mkdir(parents=True)
    put(before, 0)
    run(before, spark)
    after.mkdir()
    for name in ("state", "sums", "counts"):
        (before / name).rename(after / name)
    put(before, 1)
    result = run(after, spark, inputs=before / "in")
    assert (result.epochs, result.rows["sums"]) == (1, 20)
    assert not (before / "state").exists()
    assert cutwater_spark.verify(after / "state").problems == []
    for session in (spark, None):
        state = cutwater_spark.read_state(after / "state", "total", session, keys=["k1"])
        assert state.rows == [{"key": "k1", "state": 14}]
