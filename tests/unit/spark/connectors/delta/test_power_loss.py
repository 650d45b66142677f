"""The machine dies while a Delta table is written: the same command goes on, whatever was lost."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.table import TableAlterer, TableOptimizer
from support.connectors.delta_means import Mean, seen, stage, take
from support.connectors.sink_rows import codes
from support.faults.losses import Synced, copy_with_losses

from cutwater.endings import CHANGE, exit_code
from cutwater.errors import RefusedError
from cutwater.spark.connectors.delta.sink import Delta
from cutwater.spark.storage.durable import SYNC_LOG

EPOCHS = 8
WRITES = [
    (DeltaTable, "create_write_transaction"),
    (DeltaTable, "vacuum"),
    (TableOptimizer, "compact"),
    (DeltaTable, "create_checkpoint"),
    (DeltaTable, "cleanup_metadata"),
    (TableAlterer, "set_table_properties"),
]
"""What writes to a log without a sync."""


def table_in(folder, every=3):
    return Delta(str(folder), compact_every=every, keep_hours=0)


def frozen(tmp_path, monkeypatch, rng):
    """Publish epochs; after each write, copy the table as a power loss may leave it, four times."""
    log, table, copies = tmp_path / "syncs", table_in(tmp_path / "table"), []
    monkeypatch.setenv(SYNC_LOG, str(log))
    now = [0]

    def die():
        for _ in range(4):
            target = tmp_path / f"copy-{len(copies)}"
            lost = copy_with_losses(Path(table.path), target, Synced(log), rng)
            copies.append((target, now[0], lost))

    def dying(real):
        def write(self, *args, **kwargs):
            result = real(self, *args, **kwargs)
            if not kwargs.get("dry_run"):
                die()
            return result

        return write

    with monkeypatch.context() as patch:
        for owner, name in WRITES:
            patch.setattr(owner, name, dying(getattr(owner, name)))
        who = take(table)
        for epoch in range(EPOCHS):
            now[0] = epoch
            table.publish(who, epoch, [stage(table, epoch, float(epoch), epoch + 0.5)])
    return copies


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_doubled_whatever_was_not_synced(tmp_path, monkeypatch, seed):
    copies = frozen(tmp_path, monkeypatch, random.Random(seed))
    assert sum(bool(lost) for _, _, lost in copies) > len(copies) / 2
    for folder, epoch, lost in copies:
        table = table_in(folder)
        assert table.check("means", "q", epoch + 1) == [], lost
        assert (table.newest_epoch("means", "q") or 0) >= epoch - 1, lost
        who = take(table, 2)
        for again in range(epoch, EPOCHS):
            table.publish(who, again, [stage(table, again, again, again + 0.5, generation=2)])
        assert Counter(seen(table)) == Counter(n / 2 for n in range(2 * EPOCHS)), lost
        shutil.rmtree(folder)


def whole(tmp_path, epochs=2, every=0):
    table = table_in(tmp_path / "table", every)
    who = take(table)
    for epoch in range(epochs):
        table.publish(who, epoch, [stage(table, epoch, float(epoch))])
    return table


def newest(table):
    return max((Path(table.path) / "_delta_log").glob("*.json"))


def test_a_look_changes_nothing_and_a_start_keeps_what_was_torn(tmp_path):
    table = whole(tmp_path)
    file = newest(table)
    file.write_bytes(file.read_bytes()[:100])
    assert table.newest_epoch("means", "q") == 0
    assert table.check("means", "q", 2) == []
    assert len(file.read_bytes()) == 100
    take(table, 2)
    (kept,) = (Path(table.path) / "_torn").iterdir()
    assert len(kept.read_bytes()) == 100
    assert seen(table) == [0.0]


def test_a_version_that_was_cut_between_two_lines_is_torn(tmp_path):
    table = whole(tmp_path)
    lines = newest(table).read_bytes().split(b"\n")
    newest(table).write_bytes(b"\n".join(lines[:-1]))
    assert table.newest_epoch("means", "q") == 0


def test_a_table_that_was_torn_as_it_was_made_is_made_anew(tmp_path):
    table = table_in(tmp_path / "table")
    table.prepare("means", Mean)
    newest(table).write_bytes(b"")
    assert table.check("means", None, 0) == []
    who = take(table)
    table.publish(who, 0, [stage(table, 0, 1.0)])
    assert seen(table) == [1.0]


@pytest.mark.parametrize("broken", [bytes(600), b""])
def test_a_checkpoint_that_was_torn_is_not_needed_as_long_as_the_log_is_there(
    tmp_path, monkeypatch, broken
):
    monkeypatch.setattr(DeltaTable, "cleanup_metadata", lambda self: None)
    table = whole(tmp_path, epochs=5, every=2)
    max((Path(table.path) / "_delta_log").glob("*.checkpoint.parquet")).write_bytes(broken)
    assert table.newest_epoch("means", "q") == 4
    take(table, 2)
    assert sorted(seen(table)) == [0.0, 1.0, 2.0, 3.0, 4.0]


def garbage(log):
    max(log.glob("*.json")).write_bytes(b"\xff\xfe nothing that a power loss leaves")


def missing(log):
    sorted(log.glob("*.json"))[2].unlink()


def torn_in_the_middle(log):
    sorted(log.glob("*.json"))[2].write_bytes(b"")


def without_a_beginning(log):
    for file in sorted(log.glob("*.json"))[:2]:
        file.unlink()


@pytest.mark.parametrize("damage", [garbage, missing, torn_in_the_middle, without_a_beginning])
def test_damage_is_refused_and_changes_nothing(tmp_path, damage):
    table = whole(tmp_path, epochs=3)
    log = Path(table.path) / "_delta_log"
    damage(log)
    before = {path.name: path.read_bytes() for path in log.iterdir()}
    for look in (
        lambda: table.check("means", "q", 3),
        lambda: table.prepare("means", Mean),
        lambda: table.newest_epoch("means", "q"),
    ):
        with pytest.raises(RefusedError) as refused:
            look()
        assert codes(refused.value.problems) == ["damaged-table"]
        assert exit_code(refused.value) == CHANGE
    assert {path.name: path.read_bytes() for path in log.iterdir()} == before


def test_what_another_writer_left_torn_is_not_ours_to_set_aside(tmp_path):
    table = table_in(tmp_path / "table")
    rows = pa.table({"sensor": ["x"], "value": [5.0]})
    for _ in range(2):
        write_deltalake(table.path, rows, mode="append")
    newest(table).write_bytes(b"")
    with pytest.raises(RefusedError, match="other writers only"):
        table.check("means", None, 0)
