"""A run of the barrier model as a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from cutwater.jsonable import plain
from cutwater.semantics.barrier_model import Barriers, Fail, Move, Recover, TakeBarrier
from cutwater.semantics.barriers import (
    BARRIER,
    Configuration,
    EventContent,
    Message,
    Running,
    greatest_common_epoch,
)
from cutwater.trace import Header, Rule, TaskShape, Trace, TraceMessage, TraceStep

__all__ = ["Recorder", "Show", "record"]

Show = Callable[[Any], Any]


class Recorder:
    """Records the steps of a run as it executes.

    Parameters
    ----------
    initial
        Where the run starts.
    flow
        The name of what is run.
    show, show_value
        How to display a word and a task's value; default: as plain data.
    """

    def __init__(
        self,
        initial: Configuration,
        flow: str,
        *,
        sinks: Mapping[str, Sequence[str]] | None = None,
        show: Show = plain,
        show_value: Show = plain,
        version: str = "",
    ) -> None:
        self._show, self._show_value = show, show_value
        self._messages: dict[Message, TraceMessage] = {}
        tasks = tuple(
            TaskShape(task.name, task.inputs, task.output, show_value(task.initial))
            for task in initial.graph.tasks
        )
        shown_sinks = {name: tuple(streams) for name, streams in (sinks or {}).items()}
        self.header = Header(flow, tasks, self._inputs(initial), shown_sinks, version)
        self.steps: list[TraceStep] = []

    def add(self, before: Configuration, move: Move, after: Configuration) -> None:
        """Record a step."""
        if isinstance(move, Recover):
            self.steps.append(TraceStep("recover", None, greatest_common_epoch(before)))
            return
        number = before.graph.number[move.task]
        epoch = self._epoch(before, number)
        if isinstance(move, Fail):
            self.steps.append(TraceStep("fail", move.task, epoch))
            return
        rule: Rule = "barrier" if isinstance(move, TakeBarrier) else "event"
        task = before.graph.tasks[number]
        consumed = self._passed(before, after, number, task.inputs)
        produced = self._passed(before, after, number, [task.output])
        volatile = after.states[number].volatile
        value = self._show_value(volatile.value) if isinstance(volatile, Running) else msgspec.UNSET
        self.steps.append(TraceStep(rule, move.task, epoch, consumed, produced, value))

    def trace(self, note: str = "") -> Trace:
        """The trace recorded so far."""
        return Trace(msgspec.structs.replace(self.header, note=note), tuple(self.steps))

    def _epoch(self, c: Configuration, number: int) -> int:
        """The epoch of a task; for a crashed one, the epoch after its newest snapshot."""
        volatile = c.states[number].volatile
        return volatile.epoch if isinstance(volatile, Running) else c.states[number].newest + 1

    def _passed(
        self, before: Configuration, after: Configuration, number: int, streams: Iterable[str]
    ) -> tuple[TraceMessage, ...]:
        """The messages a task has passed on some streams."""
        return tuple(
            self._message(message)
            for stream in streams
            for n in range(before.position(number, stream), after.position(number, stream))
            for message in after.messages.at(stream, n)
        )

    def _message(self, message: Message) -> TraceMessage:
        if message not in self._messages:
            self._messages[message] = (
                TraceMessage(
                    message.stream,
                    message.n,
                    message.epoch,
                    event=self._show(message.content.payload),
                )
                if isinstance(message.content, EventContent)
                else TraceMessage(message.stream, message.n, message.epoch, barrier=True)
            )
        return self._messages[message]

    def _inputs(self, initial: Configuration) -> dict[str, tuple[tuple[Any, ...], ...]]:
        read = {stream for task in initial.graph.tasks for stream in task.inputs}
        streams = {name: [list[Any]()] for name in sorted(read - initial.graph.produced)}
        for message in sorted(initial.inputs, key=lambda m: (m.stream, m.n)):
            epochs = streams.setdefault(message.stream, [[]])
            if message.content is BARRIER:
                epochs.append([])
            elif isinstance(message.content, EventContent):
                epochs[-1].append(self._show(message.content.payload))
        return {name: tuple(map(tuple, epochs[:-1])) for name, epochs in streams.items()}


def record(
    initial: Configuration,
    moves: Iterable[Move],
    flow: str = "",
    *,
    protocol: Barriers | None = None,
    **options: Any,
) -> Trace:
    """The trace of these moves from a configuration; options as for `Recorder`."""
    protocol = protocol or Barriers()
    recorder = Recorder(initial, flow, **options)
    here = initial
    for move in moves:
        there = protocol.step(here, move)
        recorder.add(here, move, there)
        here = there
    return recorder.trace()
