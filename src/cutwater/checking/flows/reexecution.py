"""Re-execute a recorded run with the functions of its flow: do they do what it recorded?

`explain` does not have the functions: it replays what the trace records for each task and event.
Here the flow itself makes the moves of the trace again, and each step is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from cutwater.checking.transparency.explanation import NotExplained
from cutwater.errors import InputError, Problem
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.jsonable import JsonValue, plain, shown
from cutwater.semantics.barrier_model import Barriers, Fail, Move, Recover, TakeBarrier, TakeEvent
from cutwater.semantics.barriers import Configuration
from cutwater.semantics.flow_tasks import FlowTasks, shown_payload
from cutwater.semantics.inputs import Barrier, Crash
from cutwater.semantics.recording import Recorder
from cutwater.trace import Header, Trace, TraceStep

__all__ = ["Reexecuted", "reexecute"]

_encode = msgspec.json.Encoder(order="deterministic").encode
_ENDS = ("end of epoch", "end of input")


@dataclass(frozen=True)
class Reexecuted:
    """The result of a re-execution."""

    calls: int
    """The number of calls."""
    refusal: NotExplained | None
    """The first step that differs; None if all are as recorded."""


def reexecute(
    trace: Trace, flow: Flow, inputs: Mapping[str, Iterable[Any]] | None = None
) -> Reexecuted:
    """Repeat the moves of a run with the functions of a flow.

    `inputs` has the values that the trace holds only as text; it is not needed for numbers,
    strings and lists of these. `InputError` if the trace is not one of this flow.
    """
    again = _Again(trace, flow, _Values(inputs or {}))
    for index, step in enumerate(trace.steps):
        message = again.take(step)
        if message:
            return Reexecuted(again.calls, NotExplained(index, message))
    return Reexecuted(again.calls, None)


class _Values:
    """The values behind the plain data of a trace."""

    def __init__(self, inputs: Mapping[str, Iterable[Any]]) -> None:
        self._known = {
            _encode(plain(value)): value
            for values in inputs.values()
            for value in values
            if not isinstance(value, (Barrier, Crash))
        }

    def of(self, event: JsonValue) -> Any:
        """The value with this plain data."""
        encoded = _encode(event)
        if encoded in self._known:
            return self._known[encoded]
        if b'"$' in encoded:
            raise InputError(
                Problem(
                    "unknown-value",
                    f"the trace has an input {shown(event)}, whose value is not known",
                    "give the inputs of the run: --inputs module:name",
                )
            )
        return event


class _Again:
    """The run being re-executed."""

    def __init__(self, trace: Trace, flow: Flow, values: _Values) -> None:
        self.calls = 0
        self.protocol = Barriers()
        for tasks in self._ways_to_run(trace.header, flow):
            self.here = tasks.initial(tasks.read(list(_epochs(trace.header, tasks, values)))[0])
            self.recorder = Recorder(
                self.here, flow.name, show=shown_payload, show_value=lambda value: value.shown()
            )
            mine = self.recorder.header
            if (mine.tasks, mine.inputs) == (trace.header.tasks, trace.header.inputs):
                return
        raise InputError(
            Problem(
                "another-flow",
                f"the trace of '{trace.header.flow}' is not one of the flow '{flow.name}': its "
                "tasks or inputs differ",
                "give the flow that was run, unchanged, and its inputs",
            )
        )

    def _ways_to_run(self, header: Header, flow: Flow) -> Iterator[FlowTasks]:
        """The tasks as the simulator runs them, and as a check does."""
        numbers = [task.name.rpartition("/")[2] for task in header.tasks if "/" in task.name]
        most = max((int(n) for n in numbers if n.isdigit()), default=0) + 1
        for in_order in (True, False):
            for fuse in (True, False):
                yield FlowTasks(
                    plan(flow, fuse=fuse), instances=most, in_order=in_order, on_call=self._call
                )

    def _call(self, instance: Any, value: Any, payload: Any, work: Any) -> Any:
        self.calls += 1
        return work(instance, value, payload)

    def take(self, step: TraceStep) -> str | None:
        """Repeat a step; returns what is different, or None."""
        move = _move(self.here, step)
        if move is None:
            return "the flow has no such message to consume"
        try:
            there = self.protocol.step(self.here, move)
        except ValueError:
            return "the flow cannot take this step"
        self.recorder.add(self.here, move, there)
        self.here = there
        return _difference(step, self.recorder.steps[-1])


def _epochs(header: Header, tasks: FlowTasks, values: _Values) -> Iterator[dict[str, list[Any]]]:
    """The inputs of each epoch; the end of the input, if recorded, is not an epoch."""
    names = [segment.name for segment in tasks.plan.segments if segment.source is not None]
    count = max(map(len, header.inputs.values()), default=0)
    for number in range(count):
        shown_ = {name: header.inputs.get(name, ((),) * count)[number] for name in names}
        if not any(_is_last(event) for events in shown_.values() for event in events):
            yield {
                name: [values.of(event) for event in events if not _is_end(event)]
                for name, events in shown_.items()
            }


def _is_end(event: JsonValue) -> bool:
    return isinstance(event, dict) and str(event.get("$repr", "")).startswith(_ENDS)


def _is_last(event: JsonValue) -> bool:
    return bool(event == {"$repr": "end of input"})


def _move(c: Configuration, step: TraceStep) -> Move | None:
    if step.rule == "recover" or step.task is None:
        return Recover()
    if step.rule == "fail":
        return Fail(step.task)
    if step.rule == "barrier":
        return TakeBarrier(step.task)
    taken = step.consumed[0]
    found = c.messages.at(taken.stream, taken.n)
    return TakeEvent(step.task, found[0]) if found and not taken.barrier else None


def _difference(recorded: TraceStep, made: TraceStep) -> str | None:
    for what in ("consumed", "produced", "state"):
        one, two = getattr(recorded, what), getattr(made, what)
        if one is not msgspec.UNSET and _encode(one) != _encode(two):
            verb = {"consumed": "consumed", "produced": "produced", "state": "reached"}[what]
            then, now = _formatted(one), _formatted(two)
            return f"'{recorded.task}' {verb} {then}; its function now gives {now}"
    return None


def _formatted(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join("a barrier" if m.barrier else shown(m.event) for m in value) or "nothing"
    return shown(value)
