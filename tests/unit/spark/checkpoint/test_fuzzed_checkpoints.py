"""No file of a checkpoint, however damaged, gives a traceback: a start, `verify` and `show`."""

import pytest
from support.fuzz.checkpoints import make_checkpoint
from support.fuzz.mutations import mutations, tolerate

from cutwater.errors import CutwaterError, RefusedError
from cutwater.spark import describe, read_frontiers, verify
from cutwater.spark.checkpoint import power_loss
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.relocate import relocate
from cutwater.spark.recovery import Resumption, _refuse_damaged, agree, refuse_closed
from cutwater.spark.storage.durable import write_json
from cutwater.spark.telemetry.row_counts import noted_rows

FILES = {
    "identity": "state/cutwater.json",
    "spark-metadata": "state/spark/metadata",
    "spark-offsets": "state/spark/offsets/1",
    "spark-offsets-before": "state/spark/offsets/0",
    "spark-commits": "state/spark/commits/1",
    "spark-sums": "state/spark/offsets/.1.crc",
    "spark-operator": "state/spark/state/0/_metadata/v2/0",
    "state-changes": "state/spark/state/0/0/1_id0.changelog",
    "state-snapshot": "state/spark/state/0/0/2_id1.zip",
    "source-entry": "state/sources/items/1/2.json",
    "source-summary": "state/sources/items/1/summary.jsonl",
    "rows": "state/row-counts.json",
    "sinks": "state/sinks.json",
    "released": "state/released.json",
    "synced": "state/synced-1.json",
    "topology": "state/topology.json",
    "folder-ledger": "out/_cutwater/ledger.json",
    "folder-newest": "out/_cutwater/newest.json",
    "folder-manifest": "out/epoch=1/_manifest.json",
}


def start(made):
    """Do what a start does before it needs a session, in the same order; nothing is synced."""
    agree(made.checkpoint, made.job, Resumption())
    refuse_closed(made.checkpoint, close=False)
    _refuse_damaged(made.checkpoint)
    relocate(made.checkpoint)
    sink, claim = made.job.sinks["out"], made.job.claim_of("out")
    sink.generation("out")
    sink.row_count(claim)


def start_after_a_reboot(made):
    """What a start asks first when the machine was off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power_loss, "boot_id", lambda: "another boot")
        SparkFiles(made.checkpoint.root).durable()
        made.checkpoint.next_epoch()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("fuzzed"))


def test_as_it_was_made_it_is_whole(made):
    assert verify(made.checkpoint.root, made.job.sinks).problems == []
    assert describe(made.checkpoint.root).next_epoch == 2
    start(made)


@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_a_sentence(made, kind):
    """Every other time the sums beside it are gone: a copy may leave out dotted names."""
    file = made.file(FILES[kind])
    sums = file.with_name(f".{file.name}.crc")
    before = {path: path.read_bytes() for path in (file, sums) if path.exists()}
    try:
        for number, data in enumerate(mutations(before[file], seed=len(kind))):
            file.write_bytes(data)
            if sums in before:
                sums.unlink(missing_ok=True) if number % 2 else sums.write_bytes(before[sums])
            tolerate(data, lambda: verify(made.checkpoint.root, made.job.sinks), CutwaterError)
            tolerate(data, lambda: describe(made.checkpoint.root), CutwaterError)
            tolerate(data, lambda: start(made), CutwaterError)
            tolerate(data, lambda: noted_rows(made.checkpoint.root), CutwaterError)
            tolerate(data, lambda: read_frontiers(made.checkpoint.root), CutwaterError)
            tolerate(data, lambda: start_after_a_reboot(made), CutwaterError)
    finally:
        for path, data in before.items():
            path.write_bytes(data)


@pytest.mark.parametrize(
    "found",
    [{}, [], {"epoch": "x", "boot": "", "committed": 1, "lasting": []}, {"epoch": 1, "boot": ""}],
)
def test_a_note_of_syncs_with_other_fields_is_a_sentence(tmp_path, found):
    write_json(tmp_path / "synced-1.json", found)
    with pytest.raises(RefusedError, match="damaged-file"):
        SparkFiles(tmp_path).discard_unsynced()
