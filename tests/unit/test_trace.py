"""Traces as files: written and read back the same, and damage named by its line."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.test_jsonable import VALUES

from cutwater.errors import InputError
from cutwater.jsonable import plain
from cutwater.trace import (
    Header,
    TaskShape,
    Trace,
    TraceMessage,
    TraceStep,
    read_trace,
    write_trace,
)

TASKS = (TaskShape("a", ("x",), "y", {"$tuple": []}), TaskShape("b", ("y",), "z"))
HEADER = Header("flow", TASKS, {"x": ((1,), (2,))}, {"out": ("z",)}, "0.1", "a note")
STEPS = (
    TraceStep(
        "event", "a", 1, (TraceMessage("x", 0, 1, event=1),), (TraceMessage("y", 0, 1, event=1),), 1
    ),
    TraceStep("fail", "a", 1),
    TraceStep("recover", None, 0),
)
TRACE = Trace(HEADER, STEPS)

plain_values = VALUES.map(plain)
messages = st.builds(
    TraceMessage, st.sampled_from("xyz"), st.integers(0, 9), st.integers(1, 3), event=plain_values
) | st.builds(TraceMessage, st.just("x"), st.integers(0, 9), st.just(1), barrier=st.just(True))
steps = st.builds(
    TraceStep,
    st.sampled_from(["event", "barrier", "fail"]),
    st.sampled_from("ab"),
    st.integers(0, 9),
    st.lists(messages, max_size=2).map(tuple),
    st.lists(messages, max_size=2).map(tuple),
    plain_values | st.just(msgspec.UNSET),
) | st.builds(TraceStep, st.just("recover"), st.none(), st.integers(0, 9))


def read_back(trace, folder):
    path = Path(folder) / "trace.jsonl"
    write_trace(trace, path)
    return read_trace(path)


@given(st.lists(steps, max_size=4).map(tuple), st.lists(plain_values, max_size=3).map(tuple))
def test_a_trace_written_and_read_back_is_the_same(found, words):
    header = msgspec.structs.replace(HEADER, inputs={"x": (words, ())})
    trace = Trace(header, found)
    with TemporaryDirectory() as folder:
        again = read_back(trace, folder)
    assert again == trace
    assert repr(again) == repr(trace)


def test_a_message_that_carries_none_is_no_barrier(tmp_path):
    step = TraceStep("event", "a", 1, (TraceMessage("x", 0, 1, event=None),), (), None)
    (again,) = read_back(Trace(HEADER, (step,)), tmp_path).steps
    assert again.consumed[0].event is None
    assert again.state is None
    assert STEPS[1].state is msgspec.UNSET


def test_the_file_is_one_line_for_the_header_and_one_for_each_step(tmp_path):
    path = tmp_path / "trace.jsonl"
    write_trace(TRACE, path)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + len(STEPS)
    assert json.loads(lines[0])["trace"] == 1
    assert json.loads(lines[2]) == {"rule": "fail", "task": "a", "epoch": 1}


def test_lemma_b2_a_file_that_ends_early_at_the_end_of_a_line_is_a_prefix(tmp_path):
    path = tmp_path / "trace.jsonl"
    write_trace(TRACE, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        assert read_trace(path) == Trace(HEADER, STEPS[: count - 1])


def test_streams_are_inputs_first_then_outputs():
    assert HEADER.streams == ("x", "y", "z")


def as_file(tmp_path, *lines):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(lines))
    return path


HEAD = msgspec.json.encode(HEADER) + b"\n"
FIRST = msgspec.json.encode(STEPS[0]) + b"\n"


def line(**fields):
    return json.dumps({"rule": "event", "task": "a", "epoch": 1, **fields}).encode() + b"\n"


def message(**fields):
    return {"stream": "x", "n": 0, "epoch": 1, "event": 1, **fields}


DAMAGED = {
    "empty file": ([b""], 1, "is empty"),
    "no header": ([FIRST], 1, "not the header of a trace"),
    "header cut off": ([HEAD[:-1]], 1, "cut off before its end"),
    "header of another format": (
        [HEAD.replace(b'"trace":1', b'"trace":2')], 1, "a trace of format 2; this version reads 1",
    ),
    "garbage header": ([b"\x00\xff\n"], 1, "not the header of a trace"),
    "step cut off": ([HEAD, FIRST, FIRST[:20]], 3, "cut off before its end"),
    "last end of line missing": ([HEAD, FIRST[:-1]], 2, "cut off before its end"),
    "garbage step": ([HEAD, b"garbage\n"], 2, "not a step of a trace"),
    "bytes that are no text": ([HEAD, b'"\xff\xfe"\n'], 2, "not a step of a trace"),
    "empty line": ([HEAD, b"\n"], 2, "not a step of a trace"),
    "a list": ([HEAD, b"[]\n"], 2, "not a step of a trace"),
    "nested without end": ([HEAD, b"[" * 100_000 + b"\n"], 2, "not a step of a trace"),
    "wrong type": ([HEAD, line(epoch="one")], 2, "not a step of a trace"),
    "wrong rule": ([HEAD, line(rule="jump")], 2, "not a step of a trace"),
    "wrong type of message": ([HEAD, line(consumed=[message(n=1.5)])], 2, "not a step of a trace"),
    "unknown field": ([HEAD, line(colour="red")], 2, "not a step of a trace"),
    "missing field": ([HEAD, b'{"rule":"fail","task":"a"}\n'], 2, "not a step of a trace"),
    "unknown task": ([HEAD, FIRST, line(task="c")], 3, "a step of 'c', which the header does not"),
    "no task": ([HEAD, line(task=None)], 2, "a step of None, which the header does not name"),
    "a recovery of one task": ([HEAD, line(rule="recover")], 2, "a recovery of 'a'; it is of all"),
    "a recovery of an unknown task": (
        [HEAD, line(rule="recover", task="c")], 2, "a recovery of 'c'; it is of all",
    ),
    "unknown stream consumed": (
        [HEAD, line(consumed=[message(stream="w")])], 2, "a step on the unknown stream 'w'",
    ),
    "unknown stream produced": (
        [HEAD, line(produced=[message(stream="w")])], 2, "a step on the unknown stream 'w'",
    ),
    "event and barrier": (
        [HEAD, line(consumed=[message(barrier=True)])], 2, "not either an event or a barrier",
    ),
    "neither event nor barrier": (
        [HEAD, line(consumed=[{"stream": "x", "n": 0, "epoch": 1}])], 2, "not either an event or",
    ),
    "a task that reads an unknown stream": (
        [HEAD.replace(b'"inputs":["x"]', b'"inputs":["w"]')], 1,
        "not the header of a trace: task 'a' reads the unknown stream 'w'",
    ),
    "inputs of unequal lengths": (
        [HEAD.replace(b'"x":[[1],[2]]', b'"x":[[1],[2]],"v":[[1]]')], 1,
        "not the header of a trace: its inputs do not have the same number of epochs",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "number", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named_by_its_line(tmp_path, lines, number, message):
    path = as_file(tmp_path, *lines)
    with pytest.raises(InputError) as raised:
        read_trace(path)
    (problem,) = raised.value.problems
    assert problem.code == "damaged-trace"
    assert problem.message.startswith(f"line {number} of {path} is ")
    assert message in problem.message
    assert ("wrote" if number == 1 else "the lines before this one are intact") in problem.hint


@given(st.data())
def test_any_damage_of_a_file_is_a_sentence_or_another_trace(data):
    """Some bytes are changed, left out or cut off: never a crash."""
    whole = HEAD + b"".join(msgspec.json.encode(step) + b"\n" for step in STEPS)
    at = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 5))
    put = data.draw(st.binary(max_size=3) | st.sampled_from([b"\n", b'"', b"}", b"1", b"null"]))
    with TemporaryDirectory() as folder:
        path = as_file(Path(folder), whole[:at] + put + whole[at + length :])
        message = None
        try:
            read_trace(path)
        except InputError as error:
            message = str(error)
    assert message is None or message.startswith("[damaged-trace] line ")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file") as raised:
        read_trace(tmp_path / "none")
    assert raised.value.problems[0].code == "unreadable-file"


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="cannot be written: No such file") as raised:
        write_trace(TRACE, tmp_path / "none" / "trace.jsonl")
    assert raised.value.problems[0].code == "unwritable-file"
