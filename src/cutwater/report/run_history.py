"""The history of a run: states, snapshots, read positions, and the content of each stream.

Configuration 0 is before the first step, configuration k + 1 after step k (counted from 0). Only
changes are recorded, each with the configuration in which it happens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cutwater.report.messages import TimelineMessage
from cutwater.trace import Rule

__all__ = [
    "Act",
    "RunHistory",
    "SnapshotHistory",
    "StreamHistory",
    "TaskStreams",
    "ValueHistory",
    "history_of",
]

_FIRST_EPOCH = 1


@dataclass(frozen=True, slots=True)
class TaskStreams:
    """A task: its name, and the streams it reads and writes."""

    name: str
    inputs: tuple[int, ...]
    output: int


@dataclass(frozen=True, slots=True)
class Act:
    """A step, reduced to what it changes."""

    rule: Rule
    task: int | None
    epoch: int
    consumed: tuple[int, ...]
    produced: tuple[int, ...]
    state: str | None
    """The state after the step; None if it was not recorded."""


@dataclass(frozen=True, slots=True)
class ValueHistory:
    """A value over time: ``values[i]`` from configuration ``at[i]`` on."""

    at: tuple[int, ...]
    values: tuple[Any, ...]

    def value(self, configuration: int) -> Any:
        """The value in a configuration."""
        return self.values[bisect_right(self.at, configuration) - 1]


@dataclass(frozen=True, slots=True)
class StreamHistory:
    """All messages that were ever on a stream, in order of arrival: columns of equal length."""

    messages: tuple[int, ...]
    since: tuple[int, ...]
    """The first configuration with the message."""
    until: tuple[int | None, ...]
    """The first configuration in which the message is gone; None if it stays."""

    def present(self, configuration: int) -> tuple[int, ...]:
        """The messages on the stream in a configuration."""
        rows = zip(self.messages, self.since, self.until, strict=True)
        return tuple(
            message
            for message, since, until in rows
            if since <= configuration and (until is None or configuration < until)
        )


@dataclass(frozen=True, slots=True)
class SnapshotHistory:
    """The archive of a task: columns of equal length."""

    epochs: tuple[int, ...]
    states: tuple[str | None, ...]
    since: tuple[int, ...]
    until: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The history of a run, as the changes its steps make."""

    epochs: tuple[ValueHistory, ...]
    """The epoch of each task; None while it is down."""
    states: tuple[ValueHistory, ...]
    """The state of each task as text; None if it is lost or was not recorded."""
    snapshots: tuple[SnapshotHistory, ...]
    """The archive of each task."""
    reads: tuple[tuple[ValueHistory, ...], ...]
    """The number of messages each task has read on each of its inputs."""
    streams: tuple[StreamHistory, ...]
    common: ValueHistory
    """The greatest common epoch."""


def history_of(
    tasks: Sequence[TaskStreams],
    is_input: Sequence[bool],
    messages: Sequence[TimelineMessage],
    initial: Sequence[str],
    acts: Sequence[Act],
) -> RunHistory:
    """The history of a run, built from its steps."""
    recorder = _Recorder(tasks, is_input, messages, initial)
    for configuration, act in enumerate(acts, 1):
        recorder.take(configuration, act)
    return recorder.history()


@dataclass(slots=True)
class _Changing:
    """A builder of `ValueHistory`."""

    at: list[int]
    values: list[Any]

    def set(self, configuration: int, value: Any) -> None:
        if self.values[-1] != value:
            self.at.append(configuration)
            self.values.append(value)

    def done(self) -> ValueHistory:
        return ValueHistory(tuple(self.at), tuple(self.values))


@dataclass(slots=True)
class _Spans:
    """A builder of items, each present from one configuration to another."""

    items: list[Any] = field(default_factory=list)
    since: list[int] = field(default_factory=list)
    until: list[int | None] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    def begin(self, configuration: int, item: Any) -> None:
        self.open.append(len(self.items))
        self.items.append(item)
        self.since.append(configuration)
        self.until.append(None)

    @property
    def last(self) -> Any:
        return self.items[self.open[-1]]

    def end_while(self, configuration: int, is_ending: Callable[[Any], bool]) -> None:
        """End items from the last one back while the predicate holds: epochs only grow."""
        while self.open and is_ending(self.last):
            self.until[self.open.pop()] = configuration


class _Recorder:
    def __init__(
        self,
        tasks: Sequence[TaskStreams],
        is_input: Sequence[bool],
        messages: Sequence[TimelineMessage],
        initial: Sequence[str],
    ) -> None:
        self._tasks, self._is_input, self._messages = tasks, is_input, messages
        self._epochs = [_Changing([0], [_FIRST_EPOCH]) for _ in tasks]
        self._states = [_Changing([0], [state]) for state in initial]
        self._archives = [_Spans() for _ in tasks]
        self._reads = [[_Changing([0], [0]) for _ in task.inputs] for task in tasks]
        self._streams = [_Spans() for _ in is_input]
        self._common = _Changing([0], [_FIRST_EPOCH - 1])
        for archive, state in zip(self._archives, initial, strict=True):
            archive.begin(0, (_FIRST_EPOCH - 1, state))
        for number, message in enumerate(messages):
            if message.sender is None and is_input[message.stream]:
                self._streams[message.stream].begin(0, number)

    def take(self, configuration: int, act: Act) -> None:
        if act.rule == "recover" or act.task is None:
            self._recover(configuration, act.epoch)
        elif act.rule == "fail":
            self._epochs[act.task].set(configuration, None)
            self._states[act.task].set(configuration, None)
        else:
            self._work(configuration, act, act.task)

    def _work(self, configuration: int, act: Act, task: int) -> None:
        for number in act.consumed:
            message = self._messages[number]
            if message.stream in self._tasks[task].inputs:
                port = self._tasks[task].inputs.index(message.stream)
                self._reads[task][port].set(configuration, message.n + 1)
        for number in act.produced:
            self._streams[self._messages[number].stream].begin(configuration, number)
        if act.rule == "barrier":
            self._barrier(configuration, act, task)
        else:
            self._states[task].set(configuration, act.state)

    def _barrier(self, configuration: int, act: Act, task: int) -> None:
        if act.state is not None:
            self._states[task].set(configuration, act.state)
        self._archives[task].begin(configuration, (act.epoch, self._states[task].values[-1]))
        self._epochs[task].set(configuration, act.epoch + 1)
        self._common.set(configuration, min(archive.last[0] for archive in self._archives))

    def _recover(self, configuration: int, epoch: int) -> None:
        for archive in self._archives:
            archive.end_while(configuration, lambda snapshot: snapshot[0] > max(epoch, 0))
        for is_input, spans in zip(self._is_input, self._streams, strict=True):
            if not is_input:
                spans.end_while(configuration, lambda m: self._messages[m].epoch > epoch)
        for number, task in enumerate(self._tasks):
            self._epochs[number].set(configuration, epoch + 1)
            self._states[number].set(configuration, self._archives[number].last[1])
            for port, stream in enumerate(task.inputs):
                self._reads[number][port].set(configuration, self._until(stream, epoch))

    def _until(self, stream: int, epoch: int) -> int:
        """The number of messages on a stream that belong to epochs up to this one."""
        spans = self._streams[stream]
        return bisect_right(spans.open, epoch, key=lambda r: self._messages[spans.items[r]].epoch)

    def history(self) -> RunHistory:
        return RunHistory(
            epochs=tuple(changing.done() for changing in self._epochs),
            states=tuple(changing.done() for changing in self._states),
            snapshots=tuple(
                SnapshotHistory(
                    tuple(epoch for epoch, _ in archive.items),
                    tuple(state for _, state in archive.items),
                    tuple(archive.since),
                    tuple(archive.until),
                )
                for archive in self._archives
            ),
            reads=tuple(tuple(place.done() for place in places) for places in self._reads),
            streams=tuple(
                StreamHistory(tuple(spans.items), tuple(spans.since), tuple(spans.until))
                for spans in self._streams
            ),
            common=self._common.done(),
        )
