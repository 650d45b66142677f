"""What a start does with an epoch that was begun: forgotten, finished, or refused."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.spark.toy_spark import Killed, make_job

import cutwater as cw
from cutwater.errors import RefusedError
from cutwater.spark import call, folder
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.recovery import Resumption, recover
from cutwater.spark.storage.durable import write_json

SPARK = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
FILES = {"a.jsonl": "1\n2\n", "b.jsonl": "3\nbad\n"}


def flow_of(f):
    flow = cw.Flow("flow")
    mapped = flow.source("items", int).map(f, name="mapped")
    flow.sink("out", mapped)
    flow.sink("copy", mapped)
    return flow


def more(n: int) -> int:
    return n + 1


def less(n: int) -> int:
    return n - 1


class World:
    """A checkpoint, its input and its sinks, as a run that was cut off in an epoch left them."""

    def __init__(self, root: Path, epoch: int, **sinks) -> None:
        self.root, self.epoch = root, epoch
        self.checkpoint = Checkpoint(root / "checkpoint")
        self.sinks = sinks
        self.job = self.job_of(more)
        for name, text in FILES.items():
            (root / "in" / "items" / name).write_text(text)
        self.checkpoint.create()
        wanted = identity_of(self.job, 2)
        self.job = recover(self.checkpoint, self.job, Resumption(partitions=2), SPARK, print)
        self.query_id = wanted.query_id
        self._plan()

    def job_of(self, f):
        return make_job(flow_of(f), self.root, max_bytes_per_epoch=4, sinks=self.sinks)

    def _plan(self) -> None:
        """Plan epochs up to the one that is cut off, as Spark logs them."""
        log = self.log()
        for epoch in range(self.epoch + 1):
            entry = log.extend() if epoch == self.epoch or epoch == 0 else epoch
            offset = json.dumps({"entry": entry if self.epoch else 1})
            for name, text in (
                ("offsets", f'v1\n{{"conf": {{}}}}\n{offset}'),
                ("commits", "v1\n{}"),
            ):
                path = self.checkpoint.spark / name / str(epoch)
                path.parent.mkdir(parents=True, exist_ok=True)
                if name == "offsets" or epoch < self.epoch:
                    path.write_text(text)
                    path.with_name(f".{epoch}.crc").write_bytes(b"")

    def log(self):
        source = self.job.connector_of("items")
        place, generation = self.checkpoint.root / "sources" / "items", self.checkpoint.generation()
        return ChunkLog(source, int, place, generation=generation)

    def show(self, sink: str, f=more) -> None:
        """Let a sink show the epoch, as the flow that began it would."""
        claim, bucket = self.job.claim_of(sink), BucketRows(0, [b"1"], [b"4\n"])
        place = self.job.sinks[sink]
        receipt = place.write(claim, self.epoch, int, [bucket])
        place.publish(claim, self.epoch, [receipt])

    def start(self, f, **asked):
        told: list[str] = []
        job = recover(self.checkpoint, self.job_of(f), Resumption(**asked), SPARK, told.append)
        return job, told

    def is_planned(self) -> bool:
        return (self.checkpoint.spark / "offsets" / str(self.epoch)).exists()

    def unread(self) -> list[str]:
        """The files that the next epochs would read, in the order in which they are planned."""
        log, found, newest = self.log(), [], None
        while newest != log.newest:
            newest = log.newest
            if log.extend() > newest:
                found += [chunk.about["path"] for chunk in log.read(log.newest)]
        return found


@pytest.fixture(params=[0, 1], ids=["first epoch", "later epoch"])
def world(request, tmp_path):
    return World(tmp_path, request.param)


def test_an_epoch_of_which_nothing_was_shown_is_planned_anew(world):
    kept = dict.fromkeys(["offsets", "commits"], world.epoch)
    world.start(more)
    assert not world.is_planned()
    assert world.checkpoint.next_epoch() == world.epoch
    assert not list((world.checkpoint.spark / "offsets").glob(f".{world.epoch}*"))
    assert {log: len(world.checkpoint._epochs(log)) for log in kept} == kept
    assert world.checkpoint.spark.exists() == bool(world.epoch), "of epoch 0 nothing stays"


def test_a_file_that_is_corrected_after_its_epoch_was_planned_is_planned_anew(world):
    name = "b.jsonl" if world.epoch else "a.jsonl"
    (world.root / "in" / "items" / name).write_text("30\n40\n50\n")
    world.start(more)
    assert [Path(path).name for path in world.unread()][:1] == [name]


def test_an_epoch_that_was_planned_too_large_is_planned_smaller(world):
    name = "b.jsonl" if world.epoch else "a.jsonl"
    before = world.log().read(world.log().newest)[0]
    assert (before.start, before.end > 2) == (0, True)
    world.start(more)
    world.job = make_job(flow_of(more), world.root, max_bytes_per_epoch=1)
    log = world.log()
    [chunk] = log.read(log.extend())
    assert (Path(chunk.about["path"]).name, chunk.start, chunk.end) == (name, 0, 2)


@pytest.mark.parametrize("shown", ["out", "copy"])
def test_an_epoch_of_which_something_was_shown_is_finished_by_the_flow_that_began_it(world, shown):
    world.show(shown)
    world.start(more)
    assert world.is_planned()
    with pytest.raises(RefusedError) as refused:
        world.start(less)
    [problem] = refused.value.problems
    assert problem.code == "changed-flow"
    assert f"began epoch {world.epoch}, which is not finished" in problem.message
    assert f"sink '{shown}' has released all of it, 1 row" in problem.message
    assert "--finish-with-this-flow" in problem.hint
    world.start(more)


def test_what_is_refused_leaves_the_checkpoint_to_the_flow_that_began_the_epoch(world):
    before = replace(world.checkpoint.identity(), generation=0)
    world.show("out")
    with pytest.raises(RefusedError):
        world.start(less)
    assert replace(world.checkpoint.identity(), generation=0) == before


def test_another_flow_plans_anew_what_nobody_saw(world):
    world.start(less)
    assert not world.is_planned()
    assert world.checkpoint.identity().code == identity_of(world.job_of(less), 2).code


def test_another_flow_finishes_what_was_shown_if_it_is_asked_to(world):
    world.show("copy")
    _, told = world.start(less, finish_with_this_flow=True)
    assert world.is_planned()
    assert told == [
        f"epoch {world.epoch} was begun by another flow and is finished by this one: sink 'copy' "
        "has released all of it, 1 row, nothing was released by 'out'; the rest of it, and all "
        "states, are this flow's"
    ]
    with pytest.raises(RefusedError):  # from now on the epoch is this flow's
        world.start(more)
    world.start(less)


def test_told_to_finish_it_plans_anew_what_nobody_saw(world):
    _, told = world.start(less, finish_with_this_flow=True)
    assert not world.is_planned()
    assert told == []


def test_a_sink_that_went_elsewhere_counts_as_one_that_has_shown_something(world, tmp_path):
    world.sinks = {"copy": folder(str(tmp_path / "elsewhere"))}
    world.start(more)
    assert world.is_planned()
    with pytest.raises(RefusedError, match="'copy' has released an unknown part of it"):
        world.start(less)


def test_a_side_output_that_this_run_does_not_have_is_asked_too(tmp_path):
    """Bad records were written to a side output; now they end the run."""
    name = bad_records_sink("items")
    side_output = folder(str(tmp_path / "checkpoint" / "bad-records" / "items"))
    world = World(tmp_path, 1, **{name: side_output})
    world.show(name)
    world.sinks = {}
    world.start(more)
    assert world.is_planned()
    with pytest.raises(RefusedError, match="'bad records: items' has released all of it"):
        world.start(less)


def test_a_call_counts_from_its_begin(tmp_path):
    def fail(epoch, bucket, rows):
        raise ValueError("no")

    world = World(tmp_path, 1, copy=call(fail))
    with pytest.raises(Exception, match="raised ValueError: no"):
        world.show("copy")
    with pytest.raises(RefusedError, match=r"calls of .*fail.*, which returned for 0 buckets"):
        world.start(less)
    world.start(less, finish_with_this_flow=True)
    assert world.is_planned()


def test_a_zombie_that_wakes_after_the_epoch_was_forgotten_shows_nothing(world):
    zombie = world.job
    receipts = {
        name: sink.write(zombie.claim_of(name), world.epoch, int, [BucketRows(0, [b"1"], [b"4\n"])])
        for name, sink in zombie.sinks.items()
    }
    world.start(more)
    for name, sink in zombie.sinks.items():
        with pytest.raises(Exception, match="has taken over"):
            sink.publish(zombie.claim_of(name), world.epoch, [receipts[name]])


class Killing:
    """Ends the process before one of the calls that change or sync files."""

    CALLS = (
        (Path, "unlink"),
        (Path, "rename"),
        (Path, "replace"),
        (os, "fsync"),
        (shutil, "rmtree"),
    )

    def __init__(self, patch: pytest.MonkeyPatch, before: int) -> None:
        self.left = before
        for owner, name in self.CALLS:
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, real):
        def called(*given, **named):
            if self.left == 0:
                raise Killed
            self.left -= 1
            return real(*given, **named)

        return called


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("f", [more, less])
def test_a_start_that_is_killed_anywhere_is_done_again(tmp_path, epoch, f):
    """Between every two changes; what the next start leaves is what it would have left."""
    kills, is_over = 0, False
    while not is_over:
        world = World(tmp_path / str(kills), epoch)
        name = "b.jsonl" if epoch else "a.jsonl"
        (world.root / "in" / "items" / name).write_text("30\n40\n50\n")
        with pytest.MonkeyPatch.context() as patch:
            killing = Killing(patch, kills)
            try:
                world.start(f)
                is_over = True
            except Killed:
                kills += 1
        world.start(f)
        assert killing.left == 0 or is_over
        assert not world.is_planned()
        assert not list(world.checkpoint.root.glob("spark.gone-*"))
        assert world.checkpoint.identity().code == identity_of(world.job_of(f), 2).code
        assert Path(world.unread()[0]).name == name
    assert kills > 15, "the start syncs less than it should, or is not killed"


@pytest.mark.parametrize("fsync", [True, False])
def test_a_start_notes_whether_epochs_survive_a_power_loss(tmp_path, fsync):
    world = World(tmp_path, 0)
    job = replace(world.job, fsync=fsync)
    recover(world.checkpoint, job, Resumption(), SPARK, print)
    assert SparkFiles(world.checkpoint.root).is_promised() == fsync


def test_where_a_source_began_stays_decided(tmp_path):
    """A topic that is read from its end: what came since its first start is not skipped."""
    world = World(tmp_path, 0)
    log = world.checkpoint.root / "sources" / "items"
    [entry] = log.glob("*/1.json")
    write_json(entry, [Chunk(0, None, 100).to_json(), Chunk(1, None, 7).to_json()])
    world.start(more)
    assert not world.is_planned()
    assert list(log.glob("*/1.json"))
