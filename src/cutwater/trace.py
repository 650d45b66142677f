"""Traces: a run as the sequence of its steps (P1, Definition 6.1), and their files.

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
trace Z                                `Trace`: a `Header` and its steps
⟨I-Event, p, N_p, X⟩                   ``TraceStep("event", p, epoch, consumed, produced)``
⟨I-Border, p, N_p, X⟩                  ``TraceStep("barrier", …)``
⟨F-Fail, p⟩                            ``TraceStep("fail", p, epoch)``: the epoch p was in
⟨F-Recover⟩                            ``TraceStep("recover", None, epoch)``: the epoch that is
                                       restored
N_p and X                              ``consumed`` and ``produced``: each message carries its
                                       sequence number, so N_p at its streams can be read off
Π, M_0                                 ``Header.tasks`` (without their functions) and
                                       ``Header.inputs``
=====================================  =====================================================

A trace holds plain data (`cutwater.jsonable`), so it survives being written and read back. Its
file is JSON lines: the header, then one step per line. A file truncated at the end of a line is a
prefix of the trace, which is itself a trace (P1, Lemma B.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from cutwater.errors import InputError, Problem
from cutwater.jsonable import JsonValue

__all__ = [
    "FORMAT",
    "Header",
    "Rule",
    "TaskShape",
    "Trace",
    "TraceMessage",
    "TraceStep",
    "read_trace",
    "write_trace",
]

FORMAT = 1
"""The version of the file format."""

Rule = Literal["event", "barrier", "fail", "recover"]


class TraceMessage(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A message: its position on a stream, its epoch, and an event or a barrier."""

    stream: str
    n: int
    """Its sequence number on the stream, from 0."""
    epoch: int
    event: JsonValue | msgspec.UnsetType = msgspec.UNSET
    """What it carries; unset for a barrier."""
    barrier: bool = False


class TraceStep(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One step of a run."""

    rule: Rule
    task: str | None
    """The task that took the step; None for a recovery, which all tasks take together."""
    epoch: int
    """The epoch the task was in; for a recovery the one it restores."""
    consumed: tuple[TraceMessage, ...] = ()
    produced: tuple[TraceMessage, ...] = ()
    state: JsonValue | msgspec.UnsetType = msgspec.UNSET
    """The task's state after the step, if it was recorded."""


class TaskShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task without its function: its position in the graph."""

    name: str
    inputs: tuple[str, ...]
    output: str
    initial: JsonValue = None
    """The initial state, for the reader only."""


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was run: the flow, its tasks, and its inputs."""

    flow: str
    tasks: tuple[TaskShape, ...]
    """In topological order: each comes after those it reads."""
    inputs: dict[str, tuple[tuple[JsonValue, ...], ...]]
    """The epochs of each input stream, each a sequence of events that a barrier ends."""
    sinks: dict[str, tuple[str, ...]] = {}
    """The streams that each sink shows."""
    version: str = ""
    """The version of the code that wrote it."""
    note: str = ""
    """A title that says what the trace shows; may be empty."""
    trace: int = FORMAT

    @property
    def streams(self) -> tuple[str, ...]:
        """All streams: inputs first, then the tasks' outputs."""
        return (*self.inputs, *(task.output for task in self.tasks))


class Trace(msgspec.Struct, frozen=True):
    """A run: its header, and its steps in order."""

    header: Header
    steps: tuple[TraceStep, ...]


_WRITTEN_BY = "give a file that the option --trace of simulate or check wrote"
_HEADER = msgspec.json.Decoder(Header)
_STEP = msgspec.json.Decoder(TraceStep)


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace as JSON lines."""
    encode = msgspec.json.Encoder().encode
    try:
        with Path(path).open("wb") as file:
            file.write(encode(trace.header) + b"\n")
            file.writelines(encode(step) + b"\n" for step in trace.steps)
    except OSError as error:
        raise InputError(
            Problem(
                "unwritable-file",
                f"{path} cannot be written: {error.strerror}",
                "choose a folder that you may write to",
            )
        ) from None


def read_trace(path: str | Path) -> Trace:
    """Read a trace; `InputError`, with the line, if the file is not one."""
    try:
        with Path(path).open("rb") as file:
            return _parse(file, str(path))
    except OSError as error:
        raise InputError(
            Problem("unreadable-file", f"{path} cannot be read: {error.strerror}", _WRITTEN_BY)
        ) from None


def _parse(lines: Iterable[bytes], path: str) -> Trace:
    numbered = enumerate(lines, 1)
    first = next(numbered, (1, b""))[1]
    header = _decoded(_HEADER, first, path, 1, "not the header of a trace")
    if header.trace != FORMAT:
        raise _damaged(path, 1, f"a trace of format {header.trace}; this version reads {FORMAT}")
    text = _header_problem(header)
    if text:
        raise _damaged(path, 1, f"not the header of a trace: {text}")
    return Trace(header, tuple(_steps(numbered, header, path)))


def _header_problem(header: Header) -> str | None:
    """What is wrong with the graph of a trace; None if it is valid."""
    names, outputs = ([getattr(t, field) for t in header.tasks] for field in ("name", "output"))
    known = set(header.inputs)
    if len(set(names)) < len(names) or len({*outputs, *known}) < len(outputs) + len(known):
        return "two tasks of one name, or two that write one stream"
    for task in header.tasks:
        if not task.inputs or len(set(task.inputs)) < len(task.inputs):
            return f"task {task.name!r} reads nothing, or a stream twice"
        for stream in task.inputs:
            if stream not in header.streams:
                return f"task {task.name!r} reads the unknown stream {stream!r}"
            if stream not in known:
                return f"task {task.name!r} reads {stream!r}, which no task before it writes"
        known.add(task.output)
    if len({len(epochs) for epochs in header.inputs.values()}) > 1:
        return "its inputs do not have the same number of epochs"
    if not known.issuperset(stream for streams in header.sinks.values() for stream in streams):
        return "a sink of an unknown stream"
    return None


def _steps(numbered: Iterator[tuple[int, bytes]], header: Header, path: str) -> Iterator[TraceStep]:
    tasks = {task.name for task in header.tasks}
    streams = set(header.streams)
    for number, line in numbered:
        step = _decoded(_STEP, line, path, number, "not a step of a trace")
        if step.rule == "recover" and step.task is not None:
            raise _damaged(path, number, f"a recovery of {step.task!r}; it is of all tasks at once")
        if step.rule != "recover" and step.task not in tasks:
            raise _damaged(path, number, f"a step of {step.task!r}, which the header does not name")
        for message in (*step.consumed, *step.produced):
            if message.stream not in streams:
                raise _damaged(path, number, f"a step on the unknown stream {message.stream!r}")
            if message.barrier == (message.event is not msgspec.UNSET):
                raise _damaged(path, number, "a message that is not either an event or a barrier")
        yield step


def _decoded(decoder: Any, line: bytes, path: str, number: int, otherwise: str) -> Any:
    if not line.endswith(b"\n"):
        raise _damaged(path, number, "empty" if not line else "cut off before its end")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, number, f"{otherwise}: {error}") from None


def _damaged(path: str, number: int, what: str) -> InputError:
    return InputError(
        Problem(
            "damaged-trace",
            f"line {number} of {path} is {what}",
            "record the trace again; the lines before this one are intact"
            if number > 1
            else _WRITTEN_BY,
        )
    )
