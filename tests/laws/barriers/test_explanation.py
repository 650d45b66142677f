"""Explaining runs (P1, section 6.2), verified here with the rules themselves; and replaying."""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from support.barriers import paper
from support.checking.random_systems import (
    drawn_run,
    keep,
    random_run,
    random_system,
    replayed,
    seeds,
)

from cutwater.checking.transparency import explanation
from cutwater.checking.transparency.explainability import is_monotonically_explained
from cutwater.checking.transparency.explanation import Generation, explain
from cutwater.checking.transparency.replay import Replayer
from cutwater.jsonable import plain
from cutwater.semantics.barrier_model import (
    BarrierModel,
    Fail,
    Point,
    Recover,
    TakeBarrier,
    TakeEvent,
)
from cutwater.semantics.barriers import (
    BARRIER,
    FAILED,
    EventContent,
    Message,
    Task,
    greatest_common_epoch,
    initial_configuration,
    output,
)
from cutwater.semantics.recording import record
from cutwater.semantics.wellformed import checked_configuration, graph_of
from cutwater.trace import TraceMessage, TraceStep, read_trace, write_trace


def recorded(run):
    return record(run.initial, run.moves, "random")


@given(seeds)
def test_the_explanation_is_a_failure_free_run_that_shows_the_same(seed):
    run = drawn_run(seed)
    found = explain(recorded(run))
    assert found.holds
    kept = [run.moves[i] for i in found.kept]
    assert not any(isinstance(move, Fail | Recover) for move in kept)
    explaining = replayed(run.initial, kept)
    assert explaining is not None
    assert len(found.mapping) == len(run.configurations)
    for m, c in enumerate(run.configurations):
        assert output(c) == output(explaining[found.mapping[m]])
    assert list(found.mapping) == sorted(found.mapping)  # a monotone explanation
    shown = [output(c) for c in run.configurations]
    assert is_monotonically_explained(shown, [output(c) for c in explaining])


@given(seeds)
def test_generations_commits_and_what_is_kept(seed):
    run = drawn_run(seed)
    trace = recorded(run)
    found = explain(trace)
    ends = [i + 1 for i, move in enumerate(run.moves) if isinstance(move, Recover)]
    bounds = sorted({0, *ends, len(run.moves)})
    spans = list(pairwise(bounds)) or [(0, 0)]
    assert [(g.start, g.stop) for g in found.generations] == spans
    for g in found.generations:
        assert g.is_recovered == (g.stop in ends)
        assert g.epoch == greatest_common_epoch(run.configurations[g.stop])
    epoch_of = {i: g.epoch for g in found.generations for i in range(g.start, g.stop)}
    assert list(found.kept) == [
        i
        for i, step in enumerate(trace.steps)
        if step.rule in ("event", "barrier") and step.epoch <= epoch_of[i]
    ]
    commons = [greatest_common_epoch(c) for c in run.configurations]
    raising = [i for i in range(len(run.moves)) if commons[i] != commons[i + 1]]
    assert [(c.step, c.epoch) for c in found.commits] == [(i, commons[i + 1]) for i in raising]
    assert [found.kept[c.place] for c in found.commits] == raising


@given(seeds)
def test_a_run_without_failures_is_explained_by_its_committed_part(seed):
    found = explain(recorded(drawn_run(seed, crashes=0)))
    (generation,) = found.generations
    assert found.holds
    assert not generation.is_recovered
    assert list(found.kept) == sorted(found.kept)


def shown_streams(c):
    """The streams of a configuration as a replay has them."""
    streams: dict[str, list[TraceMessage]] = {}
    for m in sorted(c.messages, key=lambda m: m.n):
        fields = {"barrier": True} if m.content is BARRIER else {"event": plain(m.content.payload)}
        streams.setdefault(m.stream, []).append(TraceMessage(m.stream, m.n, m.epoch, **fields))
    return streams


@given(seeds)
def test_the_replayer_is_the_rules(seed):
    run = drawn_run(seed)
    trace = recorded(run)
    machine = Replayer(trace.header)
    for step, c in zip((None, *trace.steps), run.configurations, strict=True):
        if step is not None:
            assert machine.take(step) is None
        assert {s: ms for s, ms in machine.streams.items() if ms} == shown_streams(c)
        assert machine.common == greatest_common_epoch(c)
        for number, task in enumerate(c.graph.tasks):
            volatile = c.states[number].volatile
            assert (task.name in machine.failed) == (volatile is FAILED)
            assert machine.positions[task.name] == {s: c.position(number, s) for s in task.inputs}
            if volatile is not FAILED:
                assert machine.epoch[task.name] == volatile.epoch
        epoch = machine.common
        if epoch:
            before = {m for m in output(c) if m.epoch == epoch}
            assert sum(map(len, machine.added(epoch).values())) == len(before)


@given(seeds)
def test_a_trace_says_of_every_step_what_definition_6_1_asks(seed):
    run = drawn_run(seed, longest=60)
    trace = recorded(run)
    pairs = zip(run.moves, trace.steps, pairwise(run.configurations), strict=True)
    for move, step, (before, after) in pairs:
        if isinstance(move, Recover):
            assert (step.rule, step.task) == ("recover", None)
            assert step.epoch == greatest_common_epoch(before)
            continue
        number = before.graph.number[move.task]
        assert step.task == move.task
        assert step.epoch == before.states[number].newest + 1
        for stream, n in zip(
            before.graph.tasks[number].streams, before.positions[number], strict=True
        ):
            of_stream = [m for m in (*step.consumed, *step.produced) if m.stream == stream]
            assert [m.n for m in of_stream] == list(range(n, after.position(number, stream)))
        if isinstance(move, Fail):
            assert step.state is msgspec.UNSET
        else:
            assert step.state == plain(after.states[number].volatile.value)


def test_a_system_without_epochs_is_recorded_and_explained():
    """Regression: an input without messages was no stream of the trace, and recovering failed."""
    c = checked_configuration(
        initial_configuration(graph_of([Task("t", keep, ("x",), "y", ())]), {"x": []})
    )
    trace = record(c, [Fail("t"), Recover(), Fail("t")])
    assert trace.header.inputs == {"x": ()}
    assert explain(trace).holds


# -- damage


def damaged(trace, drawn):
    """The trace with one thing changed."""
    steps = list(trace.steps)
    at = drawn.randrange(len(steps))
    steps[at : at + 1] = drawn.choice(
        [changed_step, changed_step, changed_message, changed_message, without, doubled, swapped]
    )(trace, steps, at, drawn)
    return msgspec.structs.replace(trace, steps=tuple(steps))


def without(trace, steps, at, drawn):
    return []


def doubled(trace, steps, at, drawn):
    return [steps[at], steps[at]]


def swapped(trace, steps, at, drawn):
    other = drawn.randrange(len(steps))
    mine, steps[other] = steps[at], steps[at]
    return [steps[other] if other == at else mine]


def changed_step(trace, steps, at, drawn):
    step = steps[at]
    tasks = [task.name for task in trace.header.tasks]
    change = drawn.choice(
        [
            {"rule": drawn.choice(["event", "barrier", "fail"])},
            {"task": drawn.choice(tasks)},
            {"epoch": step.epoch + drawn.choice([-1, 1])},
            {"consumed": step.consumed[1:]},
            {"produced": step.produced[1:]},
            {"consumed": (*step.consumed, *step.consumed)},
            {"produced": (*step.produced, *step.produced)},
            {"consumed": step.consumed[::-1]},
            {"produced": step.produced[::-1]},
            {"consumed": step.produced, "produced": step.consumed},
        ]
    )
    if step.rule == "recover":
        change = drawn.choice([{"epoch": step.epoch + 1}, {"epoch": step.epoch - 1},
                               {"rule": "fail", "task": drawn.choice(tasks)}])  # fmt: skip
    return [msgspec.structs.replace(step, **change)]


def changed_message(trace, steps, at, drawn):
    step = steps[at]
    part = drawn.choice(["consumed", "produced"])
    messages = list(getattr(step, part))
    if not messages:
        return [step]
    i = drawn.randrange(len(messages))
    message = messages[i]
    change = drawn.choice(
        [
            {"n": message.n + drawn.choice([-1, 1])},
            {"epoch": message.epoch + drawn.choice([-1, 1])},
            {"stream": drawn.choice(trace.header.streams)},
            {"barrier": True, "event": msgspec.UNSET},
            {"barrier": False, "event": "another"},
        ]
    )
    messages[i] = msgspec.structs.replace(message, **change)
    return [msgspec.structs.replace(step, **{part: tuple(messages)})]


def test_a_damaged_trace_is_rejected_unless_it_is_a_run_again():
    """A change of one thing is found, or what there is now is a run of these tasks.

    Whether it is one is decided by `paper.is_run`, which knows no more than the trace: a function
    that produced something else, once, is a function.
    """
    verdicts = {True: 0, False: 0}
    for seed in range(1500):
        drawn = random.Random(seed)
        c = random_system(drawn, tasks=3, sources=2, epochs=2, events=2)
        run = random_run(c, drawn, longest=40)
        trace = recorded(run)
        if not trace.steps:
            continue
        if seed % 10 == 0:
            assert paper.is_run(trace.header, trace.steps)
        other = damaged(trace, drawn)
        is_run = paper.is_run(other.header, other.steps)
        assert explain(other).holds == is_run, seed
        verdicts[is_run and other != trace] += 1
    assert verdicts[False] > 600  # most are no runs
    assert verdicts[True] > 50  # and some are other runs


def pipeline():
    return checked_configuration(
        initial_configuration(
            graph_of([Task("a", keep, ("x",), "y", ()), Task("b", keep, ("y",), "z", ())]),
            {"x": [[1], [2]]},
        )
    )


@pytest.fixture
def trace():
    """A run with a crash in the second epoch, by hand: steps 0-3 commit, 4 is done twice."""
    c = pipeline()
    model = BarrierModel(c, crashes=1)
    point, moves = Point(c, 1), []
    for task in ("a", "a", "b", "b", "a", "crash", "recover", "a", "a", "b", "b"):
        moves.append(
            {"crash": Fail("a"), "recover": Recover()}.get(task)
            or next(move for move in model.actions(point) if move.task == task)
        )
        point = model.step(point, moves[-1])
    return record(c, moves)


@pytest.mark.parametrize(
    ("at", "change", "reason"),
    [
        (0, {"epoch": 2}, "'a' is in epoch 1, not 2"),
        (0, {"consumed": ()}, "an event step consumes one event"),
        (1, {"rule": "event"}, "an event step consumes one event"),
        (0, {"rule": "barrier"}, "a barrier step of 'a' consumes one barrier from every input"),
        (1, {"consumed": ()}, "a barrier step of 'a' consumes one barrier from every input"),
        (1, {"produced": ()}, "a barrier step produces one barrier"),
        (0, {"task": "b"}, "'b' does not read 'x'"),
        (5, {"consumed": (TraceMessage("x", 2, 2, event=2),)}, "a crash consumes and produces not"),
        (6, {"epoch": 0}, "a recovery goes back to epoch 1 and moves no message"),
        (6, {"rule": "fail", "task": "b", "epoch": 2}, "'a' has crashed and takes no step before"),
        (5, {"rule": "recover", "task": None, "epoch": 1}, "a recovery follows a crash"),
    ],
)  # fmt: skip
def test_the_reason_names_what_is_wrong(trace, at, change, reason):
    assert explain(trace).holds
    steps = list(trace.steps)
    steps[at] = msgspec.structs.replace(steps[at], **change)
    refusal = explain(msgspec.structs.replace(trace, steps=tuple(steps))).refusal
    assert refusal is not None
    assert refusal.reason.startswith(reason)
    assert refusal.step >= at


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n": 1}, "'a' is at 0 of 'x', not at 1"),
        ({"event": 7}, "message 0 of 'x' differs"),
        ({"epoch": 2}, "message 0 of 'x' differs"),
        ({"stream": "z"}, "'a' does not read 'z'"),
    ],
)
def test_the_reason_names_the_message_that_is_not_there(trace, change, reason):
    first = trace.steps[0]
    message = msgspec.structs.replace(first.consumed[0], **change)
    steps = (msgspec.structs.replace(first, consumed=(message,)), *trace.steps[1:])
    refusal = explain(msgspec.structs.replace(trace, steps=steps)).refusal
    assert (refusal.step, refusal.reason) == (0, reason)


def test_a_message_that_is_not_there_yet(trace):
    """The reader comes before its writer."""
    step = trace.steps[2]
    assert (step.task, step.consumed[0].stream) == ("b", "y")
    refusal = explain(msgspec.structs.replace(trace, steps=(step,))).refusal
    assert refusal.reason == "'y' has no message 0 yet"


def test_a_task_that_is_no_function_is_found(trace):
    """The event is taken again after the recovery; what comes of it is another."""
    again = next(i for i in range(7, len(trace.steps)) if trace.steps[i].rule == "event")
    produced = tuple(
        msgspec.structs.replace(m, event="another") for m in trace.steps[again].produced
    )
    steps = list(trace.steps[: again + 1])
    steps[again] = msgspec.structs.replace(steps[again], produced=produced)
    refusal = explain(msgspec.structs.replace(trace, steps=tuple(steps))).refusal
    assert refusal.step == again
    assert refusal.reason == (
        "'a' was given the same events again and produced ['another'] instead of "
        "[(1, 2)]: it depends on more than its state and its events"
    )


def test_a_barrier_step_that_also_takes_an_event_is_no_step(trace):
    """The event and the barrier of one input, as one step."""
    event, barrier = trace.steps[:2]
    both = msgspec.structs.replace(barrier, consumed=(*event.consumed, *barrier.consumed))
    refusal = explain(msgspec.structs.replace(trace, steps=(both,))).refusal
    assert refusal.reason == "a barrier step of 'a' consumes one barrier from every input"


def test_a_task_that_is_no_function_is_found_behind_an_empty_epoch():
    """What it does first is known again after a recovery to an epoch in which it did nothing."""
    c = checked_configuration(
        initial_configuration(graph_of([Task("a", keep, ("x",), "y", ())]), {"x": [[], [1]]})
    )
    barrier = TakeBarrier("a")
    event = TakeEvent("a", Message(1, "x", 2, EventContent(1)))
    trace = record(c, [barrier, event, Fail("a"), Recover(), event])
    assert explain(trace).holds
    *steps, last = trace.steps
    other = msgspec.structs.replace(last.produced[0], event="another")
    last = msgspec.structs.replace(last, produced=(other,))
    refusal = explain(msgspec.structs.replace(trace, steps=(*steps, last))).refusal
    assert refusal.step == 4
    assert "was given the same events again" in refusal.reason


def test_the_construction_is_not_trusted(trace, monkeypatch):
    """Were too much kept, the replay of what it made would say so."""
    monkeypatch.setattr(explanation, "_is_kept", lambda step, _: step.rule in ("event", "barrier"))
    refusal = explain(trace).refusal
    assert refusal.step == 7  # the event that was taken before the crash, again
    assert refusal.reason == (
        "without the failures this step is not possible: 'a' is at 3 of 'x', not at 2"
    )


@pytest.mark.parametrize(
    ("mine", "other", "step"),
    [
        ([(3, 1, {"y": 1}), (9, 2, {})], [(3, 1, {"y": 1})], 9),
        ([(3, 1, {"y": 1})], [(3, 1, {"y": 1}), (9, 2, {})], 9),
        ([(3, 1, {"y": 1}), (9, 2, {})], [(3, 1, {"y": 1}), (9, 2, {"y": 2})], 9),
    ],
    ids=["a commit is missing", "a commit too many", "a commit that adds something else"],
)
def test_what_each_commit_adds_is_compared(mine, other, step):
    shown = [explanation._Replayed(commits, {}, None, 10) for commits in (mine, other)]
    found = explanation._difference(*shown)
    assert found.step == step
    assert found.reason == "commit 2 adds different output without failures"
    assert explanation._difference(shown[0], shown[0]) is None


def test_an_explanation_is_refused_with_its_parts_kept(trace):
    """What is known up to the wrong step stays readable."""
    wrong = TraceStep("recover", None, 5)
    found = explain(msgspec.structs.replace(trace, steps=(*trace.steps[:5], wrong)))
    assert not found.holds
    assert found.refusal.step == 5
    assert [c.epoch for c in found.commits] == [1]
    assert replace(found, refusal=None).holds


def test_nothing_is_explained_by_nothing():
    found = explain(record(pipeline(), []))
    assert found.holds
    assert (found.kept, found.mapping, found.commits) == ((), (0,), ())
    assert found.generations == (Generation(0, 0, 0, is_recovered=False),)


@given(seeds)
def test_a_recorded_run_written_and_read_back_is_the_same(seed):
    trace = recorded(drawn_run(seed, longest=40))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        write_trace(trace, path)
        assert read_trace(path) == trace
