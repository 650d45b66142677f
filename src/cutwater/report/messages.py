"""The messages of a run, each with a unique number.

A message that is resent after a recovery has the same position on its stream as the one that was
rolled back, but it is another message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from cutwater.jsonable import JsonValue
from cutwater.trace import Header, TraceMessage, TraceStep

__all__ = ["Numbered", "TimelineMessage", "number_messages"]

_FIRST_EPOCH = 1


@dataclass(frozen=True, slots=True)
class TimelineMessage:
    """A message on a stream."""

    stream: int
    n: int
    """Its sequence number on the stream."""
    epoch: int
    text: str | None
    """What it carries; None for a barrier."""
    sender: int | None
    """The step that sent it; None if it was there from the start."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """All messages, and the numbers of those that each step consumed and produced."""

    messages: tuple[TimelineMessage, ...]
    consumed: tuple[tuple[int, ...], ...]
    produced: tuple[tuple[int, ...], ...]


def number_messages(
    header: Header, steps: Iterable[TraceStep], text: Callable[[JsonValue], str]
) -> Numbered:
    """Number the messages of a run: those of the inputs first, then in the order they are sent."""
    numbering = _Numbering(header, text)
    consumed, produced = [], []
    for index, step in enumerate(steps):
        consumed.append(tuple(numbering.place_of(message) for message in step.consumed))
        produced.append(tuple(numbering.add(message, index) for message in step.produced))
        if step.rule == "recover":
            numbering.take_back(step.epoch)
    return Numbered(tuple(numbering.messages), tuple(consumed), tuple(produced))


class _Numbering:
    def __init__(self, header: Header, text: Callable[[JsonValue], str]) -> None:
        self.messages: list[TimelineMessage] = []
        self._text = text
        self._streams = {name: index for index, name in enumerate(header.streams)}
        self._present: dict[tuple[int, int], int] = {}
        self._sent: list[list[int]] = [[] for _ in header.streams]
        for message in _inputs(header):
            self.add(message, None)

    def add(self, message: TraceMessage, sender: int | None) -> int:
        """Add a message; returns its number."""
        stream = self._streams[message.stream]
        text = None if message.event is msgspec.UNSET else self._text(message.event)
        number = len(self.messages)
        self.messages.append(TimelineMessage(stream, message.n, message.epoch, text, sender))
        self._present[stream, message.n] = number
        if sender is not None:
            self._sent[stream].append(number)
        return number

    def place_of(self, message: TraceMessage) -> int:
        """The number of a message; one that was never sent, as in an invalid trace, is added."""
        found = self._present.get((self._streams[message.stream], message.n))
        return self.add(message, None) if found is None else found

    def take_back(self, epoch: int) -> None:
        """Roll back the messages sent after an epoch; the inputs stay."""
        for stream, sent in enumerate(self._sent):
            while sent and self.messages[sent[-1]].epoch > epoch:
                self._present.pop((stream, self.messages[sent.pop()].n), None)


def _inputs(header: Header) -> Iterable[TraceMessage]:
    for stream, epochs in header.inputs.items():
        n = 0
        for epoch, events in enumerate(epochs, _FIRST_EPOCH):
            for event in events:
                yield TraceMessage(stream, n, epoch, event)
                n += 1
            yield TraceMessage(stream, n, epoch, barrier=True)
            n += 1
