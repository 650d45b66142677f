"""At every step the timeline knows all that the run itself was."""

import json

import msgspec
import pytest
from support.report import toy_runs
from support.report.toy_runs import ToyRun

from cutwater.jsonable import shown
from cutwater.report import Timeline, timeline_of
from cutwater.report.run_history import RunHistory
from cutwater.trace import TraceStep

FAILS = [(5, "split"), (9, "count"), (11, "split"), (25, "count"), (40, "split")]


def runs() -> list[ToyRun]:
    """Runs of both flows, in many orders."""
    lines = [toy_runs.word_count().play(seed, FAILS) for seed in range(12)]
    averages = [
        toy_runs.averages(4).play(seed, [(3, "average"), (9, "average"), (15, "average")])
        for seed in range(6)
    ]
    return lines + averages


def message_keys(timeline: Timeline, numbers) -> list[tuple]:
    messages = [timeline.messages[number] for number in numbers]
    return [(m.n, m.epoch, m.text) for m in messages]


def configuration(timeline: Timeline, history: RunHistory, at: int) -> dict:
    """A configuration as the timeline tells it, values as text."""
    return {
        "states": [changes.value(at) for changes in history.states],
        "epochs": [changes.value(at) for changes in history.epochs],
        "archives": [
            {
                epoch: state
                for epoch, state, since, until in zip(
                    archive.epochs, archive.states, archive.since, archive.until, strict=True
                )
                if since <= at and (until is None or at < until)
            }
            for archive in history.snapshots
        ],
        "reads": [[changes.value(at) for changes in places] for places in history.reads],
        "streams": [message_keys(timeline, content.present(at)) for content in history.streams],
        "common": history.common.value(at),
    }


def as_text(found: dict) -> dict:
    """A configuration as the run tells it, values as text."""

    def content(message):
        return message.n, message.epoch, None if message.barrier else shown(message.event)

    return {
        **found,
        "states": [
            None if epoch is None else shown(state)
            for state, epoch in zip(found["states"], found["epochs"], strict=True)
        ],
        "archives": [{e: shown(v) for e, v in archive.items()} for archive in found["archives"]],
        "streams": [[content(message) for message in stream] for stream in found["streams"]],
    }


def observed(timeline: Timeline, history: RunHistory, at: int) -> list[tuple]:
    common = history.common.value(at)
    return [
        (index, *key)
        for index, stream in enumerate(timeline.streams)
        if stream.is_observed
        for key in message_keys(timeline, history.streams[index].present(at))
        if key[1] <= common
    ]


@pytest.mark.parametrize("run", runs(), ids=lambda run: f"{run.header.flow}-{len(run.steps)}")
def test_every_configuration_of_the_run_is_reported(run):
    timeline = timeline_of(run.explained())
    for at, expected in enumerate(run.configurations):
        assert configuration(timeline, timeline.run, at) == as_text(expected)


@pytest.mark.parametrize("run", runs(), ids=lambda run: f"{run.header.flow}-{len(run.steps)}")
def test_an_observer_sees_the_same_in_the_failure_free_run(run):
    explanation = run.explained()
    assert explanation.holds
    timeline = timeline_of(explanation)
    for at, mapped in enumerate(timeline.mapping):
        ours = observed(timeline, timeline.run, at)
        assert ours == observed(timeline, timeline.failure_free, mapped)


@pytest.mark.parametrize("run", runs(), ids=lambda run: f"{run.header.flow}-{len(run.steps)}")
def test_both_runs_end_in_the_latest_common_snapshot(run):
    run.fail(next(iter(run.tasks)))
    run.recover()
    timeline = timeline_of(run.explained())
    run_end = configuration(timeline, timeline.run, len(timeline.steps))
    assert run_end == configuration(timeline, timeline.failure_free, len(timeline.kept))


def test_the_fate_of_every_step():
    timeline = timeline_of(toy_runs.shown_run())
    fates = [(step.rule, step.fate, step.generation) for step in timeline.steps]
    assert fates[6:14] == [
        ("barrier", "kept", 0),
        ("barrier", "kept", 0),
        ("event", "discarded", 0),
        ("fail", "failure", 0),
        ("event", "discarded", 0),
        ("barrier", "discarded", 0),
        ("event", "discarded", 0),
        ("recover", "failure", 0),
    ]
    assert [timeline.steps[index].place for index in timeline.kept] == list(range(21))
    assert [step.commit for step in timeline.steps if step.commit] == [1, 2, 3]


def test_steps_that_the_end_of_the_run_leaves_uncommitted_are_open():
    run = toy_runs.word_count()
    run.take("split", "lines")
    timeline = timeline_of(run.explained())
    assert [step.fate for step in timeline.steps] == ["open"]


def test_a_message_that_is_sent_again_is_another_one():
    timeline = timeline_of(toy_runs.shown_run())
    undone, again = (timeline.steps[index].produced for index in (8, 14))
    assert message_keys(timeline, undone) == message_keys(timeline, again)
    assert not set(undone) & set(again)


def test_a_consumed_message_names_the_step_that_sent_it():
    timeline = timeline_of(toy_runs.shown_run())
    for index, step in enumerate(timeline.steps):
        for message in (timeline.messages[number] for number in step.consumed):
            is_input = timeline.streams[message.stream].is_input
            assert (message.sender is None) == is_input
            if message.sender is not None:
                assert message.sender < index
                assert timeline.steps[message.sender].generation == step.generation


def test_without_sinks_the_streams_that_no_task_reads_are_observed():
    run = toy_runs.word_count()
    run.header = msgspec.structs.replace(run.header, sinks={})
    streams = timeline_of(run.explained()).streams
    assert [stream.is_observed for stream in streams] == [False, False, True]


def test_an_observer_sees_what_the_sinks_show():
    run = toy_runs.word_count()
    run.header = msgspec.structs.replace(run.header, sinks={"a": ("words",), "b": ("counts",)})
    streams = timeline_of(run.explained()).streams
    assert [stream.is_observed for stream in streams] == [False, True, True]


def test_a_timeline_grows_with_the_run_and_not_faster():
    sizes = []
    for steps in (1000, 2000):
        run = toy_runs.averages(steps // 4)
        fails = [(at, "average") for at in range(50, steps, 100)]
        sizes.append(len(timeline_of(run.play(1, fails).explained()).json()))
    assert sizes[1] < 2.3 * sizes[0]


def test_a_timeline_is_json():
    found = json.loads(timeline_of(toy_runs.shown_run()).json())
    assert found["tasks"][1] == {"name": "count", "inputs": [1], "output": 2}
    assert found["generations"][0] == {"start": 0, "stop": 14, "epoch": 1, "is_recovered": True}
    assert found["verdict"]["holds"] is True


def test_a_long_value_is_cut():
    run = toy_runs.word_count([["x" * 5000]]).play(0)
    assert max(len(m.text or "") for m in timeline_of(run.explained()).messages) == 400


def test_a_wrong_trace_is_still_reported():
    run = toy_runs.word_count().play(0)
    run.steps = [step for step in run.steps if step.task != "split"]
    timeline = timeline_of(run.explained())
    assert timeline.verdict.step == 0
    assert timeline.verdict.words == "not explained: at step 0 'words' has no message 0 yet"


def test_a_recovery_to_nowhere_is_still_reported():
    run = toy_runs.word_count().play(0)
    run.steps.append(TraceStep("recover", None, -5))
    assert timeline_of(run.explained()).verdict.step == len(run.steps) - 1


def test_a_run_that_nothing_explains_is_shown_to_its_end():
    timeline = timeline_of(toy_runs.impure_run())
    assert not timeline.verdict.holds
    assert len(timeline.steps) > timeline.verdict.step
    assert "it depends on more than its state" in timeline.verdict.words
