"""Counterexamples to failure transparency are made small, and say what did not matter."""

from pathlib import Path

import pytest
from support.models import shapes
from support.models.broken import UNSAFE
from support.repo.pinned import assert_pinned

from cutwater.checking import explain, find_counterexample
from cutwater.checking.transparency.explainability import is_unexplained
from cutwater.semantics.barrier_model import BarrierModel, Barriers, Fail
from cutwater.trace import read_trace, write_trace

SNAPSHOTS = Path(__file__).parent.parent / "snapshots" / "model"

SHAPES = {
    "a": shapes.SHORT_PIPELINE,
    "b": shapes.TWO_SOURCES,
    "c": shapes.TWO_SOURCES,
    "d": shapes.SHORT_PIPELINE,
    "e": shapes.ONE,
    "g, hidden counter": shapes.ONE,
    "g, shared snapshot": shapes.ONE,
}


def start_with(letter):
    """More input, and more crashes, than it takes."""
    sources = ["x", "y"] if SHAPES[letter] is shapes.TWO_SOURCES else ["x"]
    return {s: [[f"{s}{epoch}{i}" for i in (1, 2)] for epoch in (1, 2)] for s in sources}


def build(tasks, protocol):
    return lambda inputs, crashes: BarrierModel(
        shapes.start(tasks, **inputs), crashes=crashes, protocol=protocol()
    )


@pytest.fixture(params=UNSAFE, scope="module")
def found(request):
    letter = request.param
    make = build(SHAPES[letter], UNSAFE[letter])
    return letter, make, find_counterexample(make, start_with(letter), crashes=2)


def test_it_reads_like_this(found):
    letter, _, small = found
    assert_pinned(
        SNAPSHOTS / f"broken-{letter.replace(', ', '-').replace(' ', '-')}.txt", f"{small}\n"
    )


def test_one_crash_is_enough_and_no_event_can_be_left_out(found):
    _, make, small = found
    assert small.crashes == sum(isinstance(move, Fail) for move in small.moves) == 1
    for stream, epochs in small.inputs.items():
        for number, words in enumerate(epochs):
            for index in range(len(words)):
                less = [list(e) for e in epochs]
                del less[number][index]
                assert find_counterexample(make, {**small.inputs, stream: less}, crashes=1) is None


def test_no_move_can_be_left_out(found):
    _, make, small = found
    model = make(small.inputs, small.crashes)
    assert is_unexplained(model, model.failure_free(), small.moves)
    for index in range(len(small.moves)):
        fewer = [*small.moves[:index], *small.moves[index + 1 :]]
        assert not is_unexplained(model, model.failure_free(), fewer)


def test_what_is_marked_as_any_value_can_be_any(found):
    _, make, small = found
    for stream, number, index in small.any_value:
        other = [list(epoch) for epoch in small.inputs[stream]]
        other[number][index] = "something else"
        assert find_counterexample(make, {**small.inputs, stream: other}, crashes=1) is not None


def test_its_trace_survives_a_file(found, tmp_path):
    _, _, small = found
    write_trace(small.trace, tmp_path / "run.jsonl")
    assert read_trace(tmp_path / "run.jsonl") == small.trace


def test_a_trace_of_a_protocol_that_keeps_positions_is_no_run_of_the_real_one():
    small = find_counterexample(build(shapes.ONE, UNSAFE["e"]), {"x": [["x1"], ["x2"]]}, crashes=1)
    assert not explain(small.trace).holds


def test_the_real_protocol_has_none():
    for tasks in (shapes.ONE, shapes.SHORT_PIPELINE):
        assert find_counterexample(build(tasks, Barriers), {"x": [["x1"], ["x2"]]}) is None
