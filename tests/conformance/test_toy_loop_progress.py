"""Where a loop is that runs one iteration per epoch, told from its checkpoint alone."""

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from support.spark.cli_server import run_command
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.spark import describe, read_frontiers, runner
from cutwater.spark.checkpoint.compatibility import differences, identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.checkpoint.verify import damages_of_logs
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.log_lines import lines_by_input
from cutwater.spark.job.spec import Job
from cutwater.spark.microbatch import loop_plan
from cutwater.spark.microbatch.loop_plan import Logs
from cutwater.spark.telemetry.progress import Reports
from cutwater.spark.telemetry.topology import topology_of, write_topology


@dataclass(frozen=True)
class Step:
    at: int
    left: int


def left(step: Step) -> int:
    return step.left


def fewer(step: Step) -> list[Step]:
    return [Step(step.at, step.left - 1)] if step.left else []


def descending(plan=None):
    flow = cw.Flow("descent")
    steps = flow.source("steps", Step, time="at", watermark=cw.bounded_delay(0))

    def body(stream):
        return stream.key_by(left, name="by left").flat_map(fewer)

    last = steps.iterate(body, plan=plan, name="descend")
    windows = last.key_by("at", name="by time").window(cw.tumbling(10))
    flow.sink("out", windows.aggregate(n=cw.agg.count(), name="windows"))
    return flow


@pytest.fixture
def toy(tmp_path):
    flow = descending()
    job = make_job(flow, tmp_path, feeds_back=True, max_bytes_per_epoch=1)
    for number, step in enumerate([Step(4, 1), Step(25, 3)]):
        (tmp_path / "in" / "steps" / str(number)).write_bytes(msgspec.json.encode(step) + b"\n")
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        checkpoint = Checkpoint(tmp_path / "checkpoint")
        checkpoint.save(identity_of(toy.job, 2))
        write_topology(checkpoint.root, topology_of(toy.job))
        yield toy


def completed(toy):
    found = read_frontiers(toy.job.checkpoint)
    return {step.step: step.completed for step in found.steps}


def test_the_rounds_of_input_epochs_that_overlap_and_what_is_complete_behind_them(toy):
    """The first one leaves while the second iterates."""
    told = []
    while toy.run():
        loop = describe(toy.job.checkpoint).loop
        rounds = {each.number: each.round for each in loop.input_epochs}
        done = completed(toy)
        told.append((rounds, done["steps"], done["windows"]))
    assert told == [
        ({0: 0}, 3, None),
        ({0: 1, 1: 0}, 24, None),
        ({1: 1}, 24, 3),
        ({1: 2}, 24, 3),
        ({1: 3}, 24, 3),
        ({}, 24, 24),
    ]


def test_the_round_of_a_loop_and_what_is_complete_behind_it(toy, monkeypatch):
    monkeypatch.setattr(loop_plan, "MAX_INPUT_EPOCHS", 1)
    rounds = []
    while toy.run():
        rounds.append(describe(toy.job.checkpoint).loop.round)
        done = completed(toy)
        is_empty = rounds[-1] is None
        newest = 4 if rounds.count(None) + (not is_empty) == 1 else 25
        assert done["steps"] == newest - 1
        assert done["windows"] == (newest - 1 if is_empty else {4: None, 25: 3}[newest])
    assert rounds == [0, 1, None, 0, 1, 2, 3, None]


def test_the_steps_of_the_body_are_listed_with_the_frontier_of_the_loop(toy):
    while toy.run():
        found = {step.step: step for step in read_frontiers(toy.job.checkpoint).steps}
        assert list(found) == [
            "steps", "descend", "by left", "fewer", "by time", "windows", "out"
        ]  # fmt: skip
        for name in ("by left", "fewer"):
            assert found[name].depth == 1
            assert found[name].completed == found["descend"].completed
            assert found[name].holders == found["descend"].holders


def times_that_iterate(job):
    """What is in the log and is to be read next, by input epoch."""
    logs, log = Logs(job), job.loops.logs[0].name
    for epoch in logs.unread():
        for path in logs.files(log, epoch):
            for number, lines in lines_by_input(path):
                read = job.codecs.log_lines[log].read("a log", lines, 0)
                yield from ((number, time) for time in read.times)


def test_the_times_that_iterate_are_among_those_that_are_reported(toy):
    seen = set()
    while toy.run():
        found = read_frontiers(toy.job.checkpoint)
        for number, time in times_that_iterate(toy.job):
            seen.add((number, time))
            (inputs,) = (each for each in found.iterating if each.number == number)
            assert inputs.may_have(time)
            loop = next(step for step in found.steps if step.step == "descend")
            assert loop.completed is None or loop.completed < time
    assert seen == {(0, 4), (1, 25)}


def test_the_times_of_input_epochs_that_overlap(toy):
    told = []
    while toy.run():
        told.append(
            [
                (each.number, each.round, each.after, each.newest)
                for each in read_frontiers(toy.job.checkpoint).iterating
            ]
        )
    assert told == [
        [(0, 0, None, 4)],
        [(0, 1, None, 4), (1, 0, 3, 25)],
        [(1, 1, 3, 25)],
        [(1, 2, 3, 25)],
        [(1, 3, 3, 25)],
        [],
    ]


def test_metrics_and_the_live_view_say_what_frontier_says(toy):
    """In each epoch, of each step that waits: by Spark's report and our logs alone."""
    reports = Reports(toy.job)
    held = []
    while toy.run():
        ends = toy.ends[-1].values()
        told = reports.of(
            {
                "batchId": len(toy.ends) - 1,
                "durationMs": {},
                "sources": [{"endOffset": json.dumps(end)} for end in ends],
            }
        )
        for step in read_frontiers(toy.job.checkpoint).steps:
            if step.waits:
                found = told.frontiers[step.step]
                assert (found.completed, found.holders) == (step.completed, step.holders)
        held.append(told.frontiers["windows"].holders[0].title)
    assert held == ["loop 'descend'"] * 5 + ["source 'steps'"]


def test_what_people_see_of_a_loop(toy):
    for _ in range(2):
        assert toy.run()
    told = shown("checkpoint", "show", toy.job.checkpoint)
    assert (
        "the loop 'descend', which runs one iteration per epoch, has 2 input epochs in it, in "
        "rounds 1 and 0" in told
    )
    told = shown("frontier", toy.job.checkpoint)
    assert "'descend' has 2 input epochs in it, in rounds 1 and 0: its output is" in told
    assert "input epoch 0 is in round 1: times up to 4" in told
    assert "input epoch 1 is in round 0: times after 3 up to 25" in told
    assert toy.run()
    told = shown("checkpoint", "show", toy.job.checkpoint)
    assert "the loop 'descend', which runs one iteration per epoch, is in round 1" in told
    told = shown("frontier", toy.job.checkpoint)
    assert "'descend' is in round 1: its output is complete when no" in told
    assert "windows waits" not in told, "no record would release it"


def test_what_people_see_of_a_time_in_a_loop(toy):
    for _ in range(2):
        assert toy.run()
    checkpoint = toy.job.checkpoint
    (line,) = iterating(shown_lines("frontier", checkpoint, "--time", "2"))
    assert line == (
        "2 may still iterate in 'descend': input epoch 0 is in round 1, with times up to 4"
    )
    lines = iterating(shown_lines("frontier", checkpoint, "--time", "4"))
    assert [line.split(", ")[0] for line in lines] == [
        "4 may still iterate in 'descend': input epoch 0 is in round 1",
        "4 may still iterate in 'descend': input epoch 1 is in round 0",
    ]
    (line,) = iterating(shown_lines("frontier", checkpoint, "fewer", "--time", "30"))
    assert line == "nothing of 30 iterates in 'descend'"
    as_data = json.loads("".join(shown_lines("frontier", checkpoint, "--json")))
    assert [each["round"] for each in as_data["iterating"]] == [1, 0]
    assert toy.run()
    (line,) = iterating(shown_lines("frontier", checkpoint, "--time", "2"))
    assert line == "nothing of 2 iterates in 'descend', unless it came late"


def iterating(lines):
    return [line for line in lines if "iterate" in line and "in 'descend'" in line]


def shown_lines(*arguments):
    return run_command([str(argument) for argument in arguments]).out.splitlines()


@pytest.mark.parametrize(
    ("plan", "how"),
    [
        (None, "one iteration per epoch, input epochs at once"),
        ("epoch", "all iterations in one epoch, in one bucket: plan='epoch'"),
    ],
)
def test_a_run_says_how_its_loop_iterates_before_it_starts(tmp_path, plan, how):
    (tmp_path / "in" / "steps").mkdir(parents=True)
    job = make_job(descending(plan), tmp_path, feeds_back=True)
    (tmp_path / "in" / "steps" / "0").write_bytes(b"")
    told = list(runner._foreword(runner._Engine(False, 1), job, {}, False))
    assert f"loop 'descend': {how}" in told


def test_a_run_on_a_dataframe_says_why_its_loop_has_no_log(tmp_path):
    sources = {"steps": Frame(None)}
    job = Job(descending(), sources, {}, "", 1, 16, str(tmp_path))
    _engine, *messages = runner._foreword(runner._Engine(False, 1), job, {}, False)
    assert messages == [
        "loop 'descend': all iterations in one epoch, in one bucket: 'steps' is a DataFrame, which "
        "cannot be held back while the loop iterates"
    ]


def shown(*arguments):
    return " ".join(run_command([str(argument) for argument in arguments]).out.split())


def test_logs_of_loops_are_no_damage(toy):
    while toy.run():
        assert damages_of_logs(Checkpoint(Path(toy.job.checkpoint))) == []


def test_a_checkpoint_keeps_the_plan_of_its_loop(tmp_path):
    identities = [
        identity_of(make_job(descending(plan), tmp_path, feeds_back=True), 2)
        for plan in ("log", "epoch")
    ]
    for found, wanted in (identities, identities[::-1]):
        messages = [problem.message for problem in differences(found, wanted)]
        assert any("its loops fed back" in each for each in messages)
    by_log = identities[0]
    assert list(by_log.logs) == ["fed back: descend", "left: descend"]
    assert differences(by_log, by_log) == []


@pytest.mark.parametrize("plan", ["log", "epoch"])
def test_a_checkpoint_keeps_how_long_the_states_of_a_loop_live(tmp_path, plan):
    def counting(state_per_epoch):
        flow = cw.Flow("counts")
        steps = flow.source("steps", Step, time="at")

        def body(stream):
            told = stream.key_by(left, name="by left").apply(seen, name="seen")
            return told.flat_map(fewer)

        settings = {"plan": plan, "state_per_epoch": state_per_epoch}
        flow.sink("out", steps.iterate(body, name="descend", **settings))
        return identity_of(make_job(flow, tmp_path, feeds_back=True), 2)

    kept, per_epoch = counting(False), counting(True)
    for found, wanted in ((kept, per_epoch), (per_epoch, kept)):
        (problem, *_) = differences(found, wanted)
        assert "a state per epoch" in problem.message
    assert differences(per_epoch, per_epoch) == []


@cw.task(initial=0)
def seen(count: int, step: Step) -> tuple[int, list[Step]]:
    return count + 1, [step]
