"""A flow with an input: what the checks of flows are given."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from cutwater.events import Data, Watermark
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.flow.steps import Source, Step
from cutwater.semantics.barrier_model import BarrierModel, Move
from cutwater.semantics.barriers import Event as BarrierEvent
from cutwater.semantics.barriers import Message
from cutwater.semantics.flow_tasks import FlowTasks, Sent, Word, shown_word
from cutwater.semantics.frozen import form
from cutwater.semantics.inputs import BORDER, epochs_of
from cutwater.semantics.recording import record
from cutwater.semantics.snapshots import OnLoss, refuse
from cutwater.trace import Trace

__all__ = ["Given", "Observer"]

Observer = Callable[[Mapping[str, Sequence[Any]]], Any]
"""Given for each sink the values it shows so far; returns what is looked at of them."""


@dataclass(frozen=True)
class Given:
    """A flow with an input, and how it is run."""

    flow: Flow
    inputs: Mapping[str, list[Any]]
    epoch_size: int | None
    instances: int
    observe: Observer | None = None
    """What is looked at of the values that the sinks show; default: all of it."""
    watch: Callable[[Step], Step] | None = None
    """Makes of each step the one that works in its place, so that its calls are noted."""
    on_loss: OnLoss = refuse
    """What is done about what does not come back from a snapshot or an exchange."""

    @cached_property
    def has_watermarks(self) -> bool:
        """Are there watermarks among the inputs?"""
        return any(isinstance(item, Watermark) for item in self.items())

    def items(self) -> Iterator[Any]:
        """Events and borders of all sources."""
        return (item for items in self.inputs.values() for item in items)

    @property
    def size(self) -> int:
        """How many items there are."""
        return sum(map(len, self.inputs.values()))

    @property
    def is_small(self) -> bool:
        """Can much be tried on all of it?"""
        return self.size <= 60

    def words(self, tasks: FlowTasks) -> dict[str, list[list[Word]]]:
        """What the sources send the tasks, epoch by epoch."""
        sources = [step for step in self.flow.steps if isinstance(step, Source)]
        return tasks.read(epochs_of(sources, self.inputs, self.epoch_size))[0]

    def tasks(self, on_call: Callable[..., Any] | None = None, *, fuse: bool = True) -> FlowTasks:
        """The flow as tasks that take what comes; one for each step if they are not fused."""
        fused = plan(self.flow, fuse=fuse, watch=self.watch)
        return FlowTasks(fused, instances=self.instances, on_call=on_call, on_loss=self.on_loss)

    def model(self, crashes: int, tasks: FlowTasks) -> BarrierModel:
        """All runs of the flow on this input."""
        return BarrierModel(tasks.initial(self.words(tasks)), crashes=crashes)

    def observed(self, seen: Mapping[str, Sequence[Sequence[Any]]]) -> Any:
        """What is looked at of the values that each sink shows in each epoch."""
        if self.observe is None:
            return seen
        return self.observe({sink: [v for epoch in e for v in epoch] for sink, e in seen.items()})

    def view_of(self, tasks: FlowTasks) -> Callable[[frozenset[Message]], Hashable]:
        """What is looked at, as a function of the messages that an observer may rely on."""
        known: dict[frozenset[Message], Hashable] = {}

        def looked_at(out: frozenset[Message]) -> Hashable:
            if out not in known:
                known[out] = form(self.observed(_values(tasks, out)))
            return known[out]

        return looked_at

    def cut(self, epochs: int, size: int) -> Given:
        """The first epochs, and of each source the first items in each of them."""
        sources = [step for step in self.flow.steps if isinstance(step, Source)]
        kept: dict[str, list[Any]] = {source.name: [] for source in sources}
        for number, items in enumerate(epochs_of(sources, self.inputs, self.epoch_size)[:epochs]):
            for name, found in items.items():
                kept[name] += [BORDER] if number else []
                kept[name] += found[:size]
        return replace(self, inputs=kept, epoch_size=None)

    def trace(
        self, tasks: FlowTasks, model: BarrierModel, moves: Sequence[Move], note: str
    ) -> Trace:
        """The trace of these moves of a model of the tasks."""
        trace = record(
            model.initial,
            moves,
            self.flow.name,
            protocol=model.protocol,
            sinks=tasks.sinks,
            show=shown_word,
            show_value=lambda value: value.shown(),
        )
        return Trace(msgspec.structs.replace(trace.header, note=note), trace.steps)


def _values(tasks: FlowTasks, out: frozenset[Message]) -> dict[str, list[list[Any]]]:
    """For each sink the values of a set of messages, by epoch and place; one list of all epochs."""
    shown: dict[str, list[list[Any]]] = {}
    for sink, streams in tasks.sinks.items():
        found = sorted((m for m in out if m.stream in streams), key=_place)
        words = (m.content.word.thaw() for m in found if isinstance(m.content, BarrierEvent))
        rows = (word.row.event for word in words if isinstance(word, Sent))
        shown[sink] = [[event.value for event in rows if isinstance(event, Data)]]
    return shown


def _place(message: Message) -> tuple[int, str, int]:
    return message.epoch, message.stream, message.n
