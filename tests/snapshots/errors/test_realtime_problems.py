"""What a user reads whose flow is not for the real-time engine, or is another engine's."""

import contextlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.repo.package import SOURCE
from support.repo.pinned import assert_pinned
from support.spark.toy_checkpoints import Checkpointed

import cutwater as cw
from cutwater.errors import CutwaterError, RefusedError
from cutwater.spark import call, generate, json_lines, read_state, rescale, run
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.job.spec import Job, spark_plan
from cutwater.spark.realtime.digests import DigestLog
from cutwater.spark.realtime.drive import dies_again, too_few_slots_now
from cutwater.spark.realtime.plan_log import PlannedTick, TickPlan, read_plan, write_plan
from cutwater.spark.realtime.requirements import unsupported
from cutwater.spark.realtime.snapshots import TaskSnapshots

RUNS = {}


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float


@cw.task(initial=0.0)
def total(state: float, reading: Reading) -> tuple[float, list[float]]:
    return state + reading.value, [state + reading.value]


def send(epoch, bucket, rows):
    """A sink."""


def make(position):
    return Reading("a", position)


def run_for(name):
    def register(run):
        RUNS[name] = run
        return run

    return register


def totals():
    flow = cw.Flow("totals")
    flow.sink("out", flow.source("readings", Reading).key_by("sensor").apply(total))
    return flow


def real_time(folder, flow=None, **changed):
    readings = generate(make, rows_per_second=1, total=1)
    asked = {"sources": {"readings": readings}, "sinks": {"out": call(send)}, **changed}
    run(flow or totals(), checkpoint=folder / "state", **{"mode": "realtime", **asked})


@run_for("not-in-real-time: a folder as the sink")
def _(folder):
    real_time(folder, sinks={"out": folder / "out"})


@run_for("not-in-real-time: a DataFrame")
def _(folder):
    raise RefusedError(list(unsupported(spark_plan(totals()), {"readings": object()}, {})))


@run_for("not-in-real-time: a source that follows others")
def _(folder):
    flow = cw.Flow("totals")
    rule = cw.bounded_delay(1.0)
    flow.sink("out", flow.source("readings", Reading, time="value", watermark=rule))
    (folder / "in").mkdir()
    lines = json_lines(folder / "in", idle_after=3.0)
    real_time(folder, flow, sources={"readings": lines})


@run_for("not-in-real-time: a loop")
def _(folder):
    flow = cw.Flow("rounds")
    numbers = flow.source("readings", int)
    flow.sink("out", numbers.iterate(lambda body: body.filter(bool), name="again"))
    real_time(folder, flow)


@run_for("not-in-real-time: too few slots")
def _(folder):
    real_time(folder, master="local[2]", partitions=2)


@run_for("not-in-real-time: too few slots for all readers")
def _(folder):
    real_time(folder, master="local[3]", partitions=2, readers=2)


@run_for("not-a-count")
def _(folder):
    real_time(folder, readers=0)


@run_for("not-deterministic")
def _(folder):
    log = DigestLog(folder / "0.0", -1)
    log.note(7, 1)
    log.close()
    with contextlib.closing(DigestLog(folder / "0.0", -1)) as again:
        again.compare(7, 2)


@run_for("another-engine: a checkpoint of micro-batches in real time")
def _(folder):
    written_by(folder, "microbatch")
    real_time(folder)


@run_for("another-engine: a checkpoint of real time in micro-batches")
def _(folder):
    written_by(folder, "realtime")
    real_time(folder, mode="microbatch")


@run_for("checkpoint-of-real-time: moving its state")
def _(folder):
    written_by(folder, "realtime")
    rescale(folder / "state", 4)


@run_for("no-epoch-finished: no snapshot yet")
def _(folder):
    written_by(folder, "realtime")
    read_state(folder / "state", "total")


@run_for("unknown-epoch: no snapshot of a tick")
def _(folder):
    sales = Checkpointed(folder, partitions=1)
    sales.sell(0, [("a", 1, 1)])
    sales.run()
    read_state(sales.checkpoint.root, "sold", epoch=10**9)


@run_for("damaged-snapshot: another sum")
def _(folder):
    task = TaskSnapshots(folder / "0.0")
    task.store(3, {0: {0: b"a"}}, is_full=True)
    (task.folder / "3-3.full").write_bytes(b"something else")
    task.load()


@run_for("damaged-snapshot: a file is missing")
def _(folder):
    task = TaskSnapshots(folder / "0.0")
    for tick in (3, 4, 5):
        task.store(tick, {0: {0: b"a"}}, is_full=tick == 3)
    (task.folder / "4-4.3.delta").unlink()
    task.load()


@run_for("damaged-file: the plan of a source")
def _(folder):
    write_plan(folder / "readings.log", TickPlan(ticks=(PlannedTick(1, ()), PlannedTick(2, ()))))
    text = (folder / "readings.log").read_bytes()
    (folder / "readings.log").write_bytes(text.replace(b'"tick":1', b'"tick":7'))
    read_plan(folder / "readings.log")


@run_for("unknown-choice")
def _(folder):
    real_time(folder, mode="real time")


@run_for("not-seconds")
def _(folder):
    real_time(folder, snapshot_interval=0.0, batch_interval=1.0)


@run_for("dies-again")
def _(folder):
    raise RefusedError(dies_again("SparkException: Python worker exited unexpectedly", 6))


@run_for("too-few-slots")
def _(folder):
    raise RefusedError(too_few_slots_now(5, 120.0))


def written_by(folder, engine):
    readings = generate(make, rows_per_second=1, total=1)
    sinks = {"out": call(send)}
    job = Job(totals(), {"readings": readings}, sinks, "", 0, 16, str(folder), engine=engine)
    place = Checkpoint.at(folder / "state")
    place.create()
    place.save(replace(identity_of(job, 2), query_id="q"))
    assert json.loads((folder / "state" / "cutwater.json").read_text())["engine"] == engine


def problems(name, folder):
    with pytest.raises(CutwaterError) as raised:
        RUNS[name](folder)
    return raised.value.problems


@pytest.mark.parametrize("name", RUNS)
def test_the_run_has_the_problem_it_is_named_after(name, tmp_path):
    assert re.match("[a-z-]+", name)[0] in {problem.code for problem in problems(name, tmp_path)}


def test_every_code_of_the_engine_has_a_run():
    modules = ["requirements", "drive", "snapshots", "digests", "inspection/state"]
    text = "".join((SOURCE / f"cutwater/spark/realtime/{name}.py").read_text() for name in modules)
    codes = set(re.findall(r'Problem\(\s*"([a-z-]+)"', text))
    assert {"not-in-real-time", "dies-again", "damaged-snapshot"} <= codes
    assert codes <= {re.match("[a-z-]+", name)[0] for name in RUNS}


def test_what_the_user_reads(tmp_path):
    text = ""
    for number, name in enumerate(sorted(RUNS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        listed = "\n".join(map(str, problems(name, folder)))
        listed = re.sub(r"newest ones are of [\d, ]+", "newest ones are of TICKS", listed)
        text += f"--- {name}\n{listed.replace(str(folder), 'FOLDER')}\n\n"
    assert_pinned(Path(__file__).with_name("realtime_problems.txt"), text)
