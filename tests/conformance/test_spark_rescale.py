"""A state that is moved to other partitions between runs: epoch by epoch the simulator's, still."""

import json
import random
from dataclasses import dataclass, replace

import pytest
from support.spark.agreement import assert_agreement, expected, offsets_of

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.spark.checkpoint import power_loss
from cutwater.spark.checkpoint.lock import locked
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.storage.durable import read_json, write_json

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Item:
    name: str
    at: int


@cw.task(initial=())
def times_so_far(state: tuple[int, ...], item: Item) -> tuple[tuple[int, ...], list[Item]]:
    state = (*state, item.at % 10)[-8:]
    return state, [Item(item.name, int("".join(map(str, state))))]


def flow_of_two_levels():
    """A task, and windows behind another key."""
    flow = cw.Flow("moved")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(5))
    flow.sink("so far", items.key_by("name").apply(times_so_far))
    windows = items.key_by("at").window(cw.tumbling(20)).aggregate(count=cw.agg.count())
    flow.sink("windows", windows.key_by("count").aggregate(times=cw.agg.count()))
    return flow


class Moved:
    """A checkpoint over several runs, with more input for each."""

    def __init__(self, root, spark):
        self.flow, self.root, self._spark, self._runs = flow_of_two_levels(), root, spark, 0
        self.checkpoint = Checkpoint(root / "checkpoint")
        self.folders = {name: root / "out" / name for name in ("so far", "windows")}
        (root / "in").mkdir()

    def run(self, **settings):
        rng = random.Random(self._runs)
        for number in range(2):
            first = 100 * self._runs + 50 * number
            items = [(f"n{rng.randrange(30)}", first + rng.randrange(60)) for _ in range(50)]
            text = "".join(json.dumps({"name": n, "at": at}) + "\n" for n, at in items)
            (self.root / "in" / f"{self._runs:02}-{number}.jsonl").write_text(text)
        self._runs += 1
        return cutwater_spark.run(
            self.flow,
            self._spark,
            sources={"items": cutwater_spark.json_lines(str(self.root / "in"), 1000)},
            sinks=self.folders,
            checkpoint=self.checkpoint.root,
            permute=self._runs,
            **settings,
        )

    def rescale(self, partitions):
        return cutwater_spark.rescale(self.checkpoint.root, partitions, self._spark)

    def assert_agreement(self):
        offsets = offsets_of(self.checkpoint.root, ["items"])
        wanted = expected(self.flow, self.checkpoint.root, offsets)
        assert_agreement(wanted, self.folders)
        assert sum(map(len, wanted["windows"])) > 0

    def state_partitions(self):
        """In how many partitions each level's newest state lies, by Spark's commit log."""
        commits = [p for p in (self.checkpoint.spark / "commits").iterdir() if p.name.isdigit()]
        newest = max(commits, key=lambda path: int(path.name))
        found = json.loads(newest.read_text().splitlines()[1])["stateUniqueIds"]
        return {level: len(parts) for level, parts in found.items()}


@pytest.fixture
def moved(tmp_path, spark):
    return Moved(tmp_path, spark)


def test_a_state_moves_to_more_and_to_fewer_partitions(moved):
    moved.run()
    assert moved.state_partitions() == {"0": 2, "1": 2}
    for before, partitions in ((2, 4), (4, 1), (1, 16)):
        epoch = moved.checkpoint.next_epoch()
        done = moved.rescale(partitions)
        assert done == cutwater_spark.Rescaled("moved", before, partitions, epoch + 1)
        assert moved.state_partitions() == {"0": partitions, "1": partitions}
        assert json.loads((moved.checkpoint.root / "cutwater.json").read_text())["partitions"] == (
            partitions
        )
        assert moved.rescale(partitions) == replace(done, before=partitions)
        result = moved.run()
        assert result.next_epoch == epoch + 1 + result.epochs
        assert moved.state_partitions() == {"0": partitions, "1": partitions}
        assert all(not (folder / f"epoch={epoch}").exists() for folder in moved.folders.values())
    moved.assert_agreement()


def test_a_state_moves_after_a_reboot_and_stays_where_it_is_after_another(moved, monkeypatch):
    moved.run()
    for boot, partitions in (("second boot", 4), ("third boot", 8)):
        monkeypatch.setattr(power_loss, "boot_id", lambda boot=boot: boot)
        moved.rescale(partitions)
    monkeypatch.setattr(power_loss, "boot_id", lambda: "last boot")
    assert moved.checkpoint.identity().partitions == 8
    assert not moved.checkpoint.is_mid_epoch()
    moved.run()
    assert moved.state_partitions() == {"0": 8, "1": 8}
    moved.assert_agreement()


def test_a_new_checkpoint_has_the_partitions_it_is_asked_for(moved, spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    moved.run(partitions=8)
    assert moved.state_partitions() == {"0": 8, "1": 8}
    moved.run()
    assert moved.state_partitions() == {"0": 8, "1": 8}
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    moved.assert_agreement()


def test_a_move_that_was_cut_off_is_finished_by_the_same_command(moved):
    """After the offset, before the commit: that is when Spark writes the states."""
    moved.run()
    epoch = moved.checkpoint.next_epoch()
    moved.rescale(4)
    identity = moved.checkpoint.root / "cutwater.json"
    as_after = identity.read_text()
    write_json(identity, {**read_json(identity, "it"), "partitions": 2})
    as_before = identity.read_text()
    forget(moved.checkpoint.spark / "commits" / str(epoch))
    for refused in (moved.run, lambda: moved.rescale(8)):
        with pytest.raises(RunError, match="half-rescaled") as error:
            refused()
        assert f"rescale {moved.checkpoint.root} --partitions 4" in str(error.value)
    assert moved.rescale(4).before == 2
    assert identity.read_text() == as_after
    # After the commit, before the identity: the state is moved, so runs go on with it.
    identity.write_text(as_before)
    assert moved.checkpoint.identity().partitions == 4
    moved.run()
    assert '"partitions": 4' in identity.read_text()
    moved.assert_agreement()


def forget(path):
    path.unlink()
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def test_a_checkpoint_in_use_is_refused(moved, spark):
    moved.run()
    before = files(moved.checkpoint.root)
    with (
        locked(moved.checkpoint, spark, 0, print),
        pytest.raises(RunError, match="checkpoint-in-use"),
    ):
        moved.rescale(4)
    assert files(moved.checkpoint.root) == before


def test_a_state_that_is_damaged_is_a_sentence_and_stays_as_it_was(moved):
    moved.run()
    for part in (moved.checkpoint.spark / "state" / "0" / "1").glob("*.changelog"):
        part.unlink()
    for part in (moved.checkpoint.spark / "state" / "0" / "1").glob("*.zip"):
        part.unlink()
    with pytest.raises(RunError, match="not-rescaled"):
        moved.rescale(4)
    assert moved.checkpoint.identity().partitions == 2


def files(root):
    return {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and p.name != "lock"}
