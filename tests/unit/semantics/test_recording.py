"""A run as a trace: what the header says, and how words and values are shown."""

import msgspec
import pytest
from support.checking.random_systems import keep

from cutwater.semantics.barrier_model import Fail, Recover, TakeBarrier, TakeEvent
from cutwater.semantics.barriers import EventContent, Message, Task, initial_configuration
from cutwater.semantics.recording import Recorder, record
from cutwater.semantics.wellformed import checked_configuration, graph_of
from cutwater.trace import TaskShape, TraceMessage, TraceStep

JOIN = Task("join", keep, ("x", "y"), "z", ())


@pytest.fixture
def initial():
    return checked_configuration(
        initial_configuration(graph_of([JOIN]), {"y": [[], [2]], "x": [[1], []]})
    )


def take(stream, n, epoch, word):
    return TakeEvent("join", Message(n, stream, epoch, EventContent(word)))


def test_the_header_says_what_was_run(initial):
    trace = record(initial, [], "clicks", sinks={"out": ["z"]}, version="1.2")
    header = trace.header
    assert header.flow == "clicks"
    assert header.tasks == (TaskShape("join", ("x", "y"), "z", {"$tuple": []}),)
    assert header.inputs == {"x": ((1,), ()), "y": ((), (2,))}
    assert (header.sinks, header.version, header.note) == ({"out": ("z",)}, "1.2", "")
    assert trace.steps == ()


def test_each_kind_of_step(initial):
    moves = [take("x", 0, 1, 1), TakeBarrier("join"), Fail("join"), Fail("join"), Recover()]
    assert record(initial, moves).steps == (
        TraceStep(
            "event",
            "join",
            1,
            (TraceMessage("x", 0, 1, event=1),),
            (TraceMessage("z", 0, 1, event={"$tuple": [1]}),),
            {"$tuple": [1]},
        ),
        TraceStep(
            "barrier",
            "join",
            1,
            (TraceMessage("x", 1, 1, barrier=True), TraceMessage("y", 0, 1, barrier=True)),
            (TraceMessage("z", 1, 1, barrier=True),),
            {"$tuple": [1]},
        ),
        TraceStep("fail", "join", 2),
        TraceStep("fail", "join", 2),  # it is down already: the epoch it would go on with
        TraceStep("recover", None, 1),
    )


def test_words_and_values_are_shown_as_asked(initial):
    trace = record(
        initial,
        [take("x", 0, 1, 1)],
        show=lambda word: f"word {word}",
        show_value=lambda value: len(value),
    )
    (step,) = trace.steps
    assert step.consumed[0].event == "word 1"
    assert step.produced[0].event == "word (1,)"
    assert step.state == 1
    assert trace.header.inputs["x"] == (("word 1",), ())
    assert trace.header.tasks[0].initial == 0


def test_a_note_is_given_with_the_trace(initial):
    recorder = Recorder(initial, "clicks")
    assert recorder.trace("what went wrong").header.note == "what went wrong"
    assert recorder.trace().header == msgspec.structs.replace(recorder.header, note="")


def test_an_impossible_move_is_no_run(initial):
    with pytest.raises(ValueError, match="not possible here"):
        record(initial, [TakeBarrier("join")])
    with pytest.raises(ValueError, match="not possible here"):
        record(initial, [Recover()])
    with pytest.raises(ValueError, match="not possible here"):
        record(initial, [Fail("join"), take("x", 0, 1, 1)])
