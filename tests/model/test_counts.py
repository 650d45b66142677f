"""Pinned numbers of states of the protocol on small graphs: a change of meaning fails here."""

from math import comb

import pytest
from support.barriers import paper
from support.models.shapes import (
    DIAMOND,
    ONE,
    PIPELINE,
    TWO_SOURCES,
    TWO_SOURCES_TWO_TASKS,
    start,
)

from cutwater.checking import always, check_model, failure_transparency, view
from cutwater.semantics.barrier_model import BarrierModel
from cutwater.semantics.barriers import greatest_common_epoch, latest_common_snapshot, output
from cutwater.semantics.wellformed import ill_formed

INPUTS = {
    "one task": (ONE, {"x": [[1], [2]]}),
    "pipeline": (PIPELINE, {"x": [[1], [2]]}),
    "diamond": (DIAMOND, {"x": [[1], [2]]}),
    "two sources": (TWO_SOURCES, {"x": [[1], [2]], "y": [[3], [4]]}),
    "two sources, two tasks": (TWO_SOURCES_TWO_TASKS, {"x": [[1], [2]], "y": [[3], []]}),
}


def model_of(shape, crashes):
    tasks, inputs = INPUTS[shape]
    return BarrierModel(start(tasks, **inputs), crashes=crashes)


# states in full, and of the reduced model, by the number of crashes that may happen
COUNTS = {
    "one task": [(5, 5), (15, 13), (25, 21)],
    "pipeline": [(35, 13), (175, 41), (420, 79)],
    "diamond": [(201, 21), (1206, 69), (3417, 144)],
    "two sources": [(19, 19), (57, 48), (95, 77)],
    "two sources, two tasks": [(41, 21), (164, 60), (328, 105)],
}


@pytest.mark.parametrize("crashes", [0, 1, 2])
@pytest.mark.parametrize("shape", INPUTS)
def test_the_number_of_states(shape, crashes):
    model = model_of(shape, crashes)
    full = check_model(model, reduce=False)
    assert (full.unique_states, check_model(model).unique_states) == COUNTS[shape][crashes]
    assert check_model(model, reduce=False, search="depth").unique_states == full.unique_states


@pytest.mark.parametrize("crashes", [0, 1, 2])
@pytest.mark.parametrize("shape", INPUTS)
def test_the_number_of_states_is_that_of_the_papers_rules(shape, crashes):
    """Counted once more with the rules over plain sets."""
    tasks, inputs = INPUTS[shape]
    todo = [(paper.translated(start(tasks, **inputs)), crashes)]
    seen = set()
    while todo:
        c, left = todo.pop()
        key = (frozen(c["states"]), frozen(c["N"]), frozenset(c["M"]), left)
        if key in seen:
            continue
        seen.add(key)
        for label, there in paper.successors(c).items():
            spent = label[0] == "fail" and there != c
            if spent <= left:
                todo.append((there, left - spent))
    assert len(seen) == COUNTS[shape][crashes][0]


def frozen(value):
    if isinstance(value, dict):
        return frozenset((k, frozen(v)) for k, v in value.items())
    return tuple(map(frozen, value)) if isinstance(value, tuple) else value


def test_the_states_of_a_pipeline_without_crashes_are_counted_by_a_formula():
    """Three tasks at places i >= j >= k of as many messages: that many ways."""
    for events in range(1, 5):
        model = BarrierModel(start(PIPELINE, x=[[1] * events]))
        assert check_model(model, reduce=False).unique_states == comb(events + 1 + 3, 3)


@pytest.mark.parametrize("crashes", [0, 1, 2])
@pytest.mark.parametrize("shape", INPUTS)
def test_theorem_6_9_the_protocol_is_failure_transparent(shape, crashes):
    model = model_of(shape, crashes)
    for reduce in (True, False):
        found = failure_transparency(model, model.failure_free(), reduce=reduce)
        assert found.holds
        assert found.checked.is_exhaustive
        assert found.checked.is_reduced == reduce
        assert found.counterexample is None


@pytest.mark.parametrize("shape", INPUTS)
def test_the_sinks_view_is_failure_transparent_too(shape):
    """Lemma 5.9: a function of what is observed."""
    model = model_of(shape, 2)
    sink = view(model, lambda out: frozenset(m for m in out if m.stream == "z"))
    for reduce in (True, False):
        found = failure_transparency(model, model.failure_free(), observe=sink, reduce=reduce)
        assert found.holds
        assert found.checked.is_exhaustive


@pytest.mark.parametrize("shape", INPUTS)
def test_every_explored_state_is_well_formed(shape):
    claim = always("well-formed", lambda point: ill_formed(point.configuration) is None)
    found = check_model(model_of(shape, 2), [claim])
    assert (found.holds, found.is_exhaustive) == (True, True)


@pytest.mark.parametrize("shape", INPUTS)
def test_facts_of_every_explored_step(shape):
    """Only a barrier that raises the common epoch is seen; failing and recovering never are."""
    model = model_of(shape, 2)
    todo, seen, commits = list(model.initial_states()), set(), 0
    while todo:
        point = todo.pop()
        if point in seen:
            continue
        seen.add(point)
        c = point.configuration
        for move in model.actions(point):
            there = model.step(point, move)
            after = there.configuration
            is_commit = greatest_common_epoch(after) > greatest_common_epoch(c)
            assert (output(after) != output(c)) == is_commit
            assert not is_commit or type(move).__name__ == "TakeBarrier"
            assert (latest_common_snapshot(after) != latest_common_snapshot(c)) == is_commit
            epoch = greatest_common_epoch(after)
            is_level = not after.is_failed and all(
                state.volatile.epoch == epoch + 1 and not _has_begun(after, i, epoch)
                for i, state in enumerate(after.states)
            )
            if is_commit and is_level:
                assert latest_common_snapshot(after) == after
                commits += 1
            todo.append(there)
    assert commits > 0


def _has_begun(c, number, epoch):
    """Has a task read or written anything of a newer epoch?"""
    task = c.graph.tasks[number]
    return any(
        m.n < c.position(number, m.stream)
        for m in c.messages
        if m.epoch > epoch and m.stream in task.streams
    )
