"""Replay a trace without the tasks' functions: is it a run, and what does it show when?

A mutable machine that takes each step in constant time, and a recovery in time linear in tasks and
streams. It implements the rules of `cutwater.semantics.barriers` (a test compares the two on random
runs). The functions are not known, but that each task is *a* function is checked: given the same
history, it must have produced the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from cutwater.jsonable import shown
from cutwater.trace import Header, TraceMessage, TraceStep

__all__ = ["Replayer"]

_encode = msgspec.json.Encoder(order="deterministic").encode


class Replayer:
    """The streams, positions and epochs of a run, step by step."""

    def __init__(self, header: Header) -> None:
        self.tasks = {task.name: task for task in header.tasks}
        self.streams: dict[str, list[TraceMessage]] = {name: [] for name in header.streams}
        self.ends: dict[str, list[int]] = {name: [0] for name in header.streams}
        """The length of each stream at the end of each epoch, from epoch 0."""
        for stream, epochs in header.inputs.items():
            for message in _messages(stream, epochs):
                self._append(message)
        self.inputs = {name: len(self.streams[name]) for name in header.inputs}
        self.positions = {t.name: dict.fromkeys(t.inputs, 0) for t in header.tasks}
        self.epoch = dict.fromkeys(self.tasks, 1)
        self.failed: set[str] = set()
        self.common = 0
        """The greatest common epoch."""
        self._missing = {1: len(self.tasks)}
        self._functions = _Functions()

    def take(self, step: TraceStep) -> str | None:
        """Take a step; returns what is wrong with it, or None."""
        if step.rule == "recover":
            return self._recover(step)
        assert step.task is not None
        if step.epoch != self.epoch[step.task]:
            return f"'{step.task}' is in epoch {self.epoch[step.task]}, not {step.epoch}"
        if step.rule == "fail":
            self.failed.add(step.task)
            return "a crash consumes and produces nothing" if _moves(step) else None
        if step.task in self.failed:
            return f"'{step.task}' has crashed and takes no step before a recovery"
        if step.rule == "event":
            return self._event(step.task, step)
        return self._barrier(step.task, step)

    def added(self, epoch: int) -> dict[str, Sequence[TraceMessage]]:
        """What a committed epoch adds to the observable output, stream by stream."""
        return {
            name: self.streams[name][ends[epoch - 1] : ends[epoch]]
            for name, ends in self.ends.items()
        }

    def _event(self, name: str, step: TraceStep) -> str | None:
        if len(step.consumed) != 1 or step.consumed[0].barrier:
            return "an event step consumes one event"
        taken = step.consumed[0]
        text = self._consume(name, taken) or self._check_produced(name, step)
        if text:
            return text
        if any(message.barrier for message in step.produced):
            return "an event step produces events alone"
        self._produce(step)
        return self._functions.call(name, step, taken)

    def _barrier(self, name: str, step: TraceStep) -> str | None:
        streams = [message.stream for message in step.consumed if message.barrier]
        if sorted(streams) != sorted(self.tasks[name].inputs) or len(streams) < len(step.consumed):
            return f"a barrier step of '{name}' consumes one barrier from every input"
        for message in step.consumed:
            text = self._consume(name, message)
            if text:
                return text
        if len(step.produced) != 1 or not step.produced[0].barrier:
            return "a barrier step produces one barrier"
        text = self._check_produced(name, step)
        if text:
            return text
        self._produce(step)
        self._functions.barrier(name, step.epoch)
        self.epoch[name] = step.epoch + 1
        self._commit(step.epoch)
        return None

    def _commit(self, epoch: int) -> None:
        self._missing[epoch] = self._missing.get(epoch, len(self.tasks)) - 1
        if self._missing[epoch] == 0:
            del self._missing[epoch]
            self.common = epoch
            self._functions.forget(epoch)

    def _recover(self, step: TraceStep) -> str | None:
        if not self.failed:
            return "a recovery follows a crash"
        if step.epoch != self.common or _moves(step):
            return f"a recovery goes back to epoch {self.common} and moves no message"
        self.failed.clear()
        self._missing.clear()
        for stream, messages in self.streams.items():
            if stream not in self.inputs:
                ends = self.ends[stream]
                del ends[self.common + 1 :]
                del messages[ends[self.common] :]
        for name, positions in self.positions.items():
            self.epoch[name] = self.common + 1
            for stream in positions:
                positions[stream] = self.ends[stream][self.common]
        self._functions.recover(self.common)
        return None

    def _consume(self, name: str, message: TraceMessage) -> str | None:
        positions = self.positions[name]
        at = positions.get(message.stream)
        if at is None:
            return f"'{name}' does not read '{message.stream}'"
        if message.n != at:
            return f"'{name}' is at {at} of '{message.stream}', not at {message.n}"
        messages = self.streams[message.stream]
        if at >= len(messages):
            return f"'{message.stream}' has no message {at} yet"
        if not _is_same(messages[at], message):
            return f"message {at} of '{message.stream}' differs"
        if message.epoch != self.epoch[name]:
            return f"'{name}' in epoch {self.epoch[name]} takes a message of {message.epoch}"
        positions[message.stream] = at + 1
        return None

    def _check_produced(self, name: str, step: TraceStep) -> str | None:
        stream = self.tasks[name].output
        length = len(self.streams[stream])
        for n, message in enumerate(step.produced, length):
            if message.stream != stream or message.n != n or message.epoch != step.epoch:
                return f"'{name}' produces message {n} of '{stream}' in epoch {step.epoch} next"
        return None

    def _produce(self, step: TraceStep) -> None:
        for message in step.produced:
            self._append(message)

    def _append(self, message: TraceMessage) -> None:
        self.streams[message.stream].append(message)
        if message.barrier:
            self.ends[message.stream].append(len(self.streams[message.stream]))


def _is_same(one: TraceMessage, other: TraceMessage) -> bool:
    """Are two messages the same? 1, 1.0 and True are different."""
    return one is other or (one == other and _encode(one) == _encode(other))


def _moves(step: TraceStep) -> bool:
    return bool(step.consumed or step.produced)


def _messages(stream: str, epochs: Sequence[Sequence[Any]]) -> Iterator[TraceMessage]:
    n = 0
    for epoch, events in enumerate(epochs, 1):
        for event in events:
            yield TraceMessage(stream, n, epoch, event=event)
            n += 1
        yield TraceMessage(stream, n, epoch, barrier=True)
        n += 1


def _text(encoded: bytes) -> str:
    return shown(msgspec.json.decode(encoded)) if encoded else "none"


class _Functions:
    """What each task did, given its history: if that differs, the task is not a function.

    A history is a number, assigned to the previous history and the message taken. Only
    uncommitted histories can recur, so only they are kept.
    """

    def __init__(self) -> None:
        self._now: dict[str, int] = {}
        self._numbers = 0
        self._known: dict[int, dict[tuple[str, int, bytes], tuple[int, bytes, bytes]]] = {}
        self._at_barrier: dict[int, dict[str, int]] = {0: {}}

    def call(self, task: str, step: TraceStep, taken: TraceMessage) -> str | None:
        """Record a step; returns what is wrong if the same history led to another one before."""
        known = self._known.setdefault(step.epoch, {})
        cause = (task, self._now.get(task, 0), taken.stream.encode() + _encode(taken.event))
        produced = _encode([message.event for message in step.produced])
        state = b"" if step.state is msgspec.UNSET else _encode(step.state)
        if cause not in known:
            self._numbers += 1
            known[cause] = (self._numbers, produced, state)
        self._now[task], before, state_before = known[cause]
        if before == produced and state_before == state:
            return None
        one, two = (before, produced) if before != produced else (state_before, state)
        verb = "produced" if before != produced else "reached the state"
        return (
            f"'{task}' was given the same events again and {verb} {_text(two)} instead of "
            f"{_text(one)}: it depends on more than its state and its events"
        )

    def barrier(self, task: str, epoch: int) -> None:
        """Record the end of an epoch: a history that a recovery may restore."""
        self._at_barrier.setdefault(epoch, {})[task] = self._now.get(task, 0)

    def forget(self, epoch: int) -> None:
        """Drop histories before a committed epoch: no recovery goes back there."""
        for old in [known for known in self._known if known <= epoch]:
            del self._known[old]
        for old in [known for known in self._at_barrier if known < epoch]:
            del self._at_barrier[old]

    def recover(self, epoch: int) -> None:
        """Restore the histories of all tasks at the end of an epoch."""
        self._now = dict(self._at_barrier[epoch])
        for undone in [known for known in self._at_barrier if known > epoch]:
            del self._at_barrier[undone]
