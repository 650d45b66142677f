"""A scenario: a flow with an input, as the checks of flows get it."""

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
from cutwater.semantics.barriers import EventContent as BarrierEvent
from cutwater.semantics.barriers import Message
from cutwater.semantics.flow_tasks import FlowTasks, Payload, Sent, shown_payload
from cutwater.semantics.frozen import hashable_form
from cutwater.semantics.inputs import BARRIER, epochs_of
from cutwater.semantics.recording import record
from cutwater.semantics.snapshots import OnLoss, refuse
from cutwater.trace import Trace

__all__ = ["ObserveFunction", "Scenario"]

ObserveFunction = Callable[[Mapping[str, Sequence[Any]]], Any]
"""Given the values that each sink shows so far; returns what is observed of them."""


@dataclass(frozen=True)
class Scenario:
    """A flow with an input, and how it is run."""

    flow: Flow
    inputs: Mapping[str, list[Any]]
    epoch_size: int | None
    instances: int
    observe: ObserveFunction | None = None
    """What is observed of the values that the sinks show; default: all of it."""
    watch: Callable[[Step], Step] | None = None
    """Replaces each step by one that records its calls; None: steps are not replaced."""
    on_loss: OnLoss = refuse
    """Called with what does not survive a snapshot or an exchange; default: refuse it."""

    @cached_property
    def has_watermarks(self) -> bool:
        """Are there watermarks among the inputs?"""
        return any(isinstance(item, Watermark) for item in self.items())

    def items(self) -> Iterator[Any]:
        """The events and barriers of all sources."""
        return (item for items in self.inputs.values() for item in items)

    @property
    def size(self) -> int:
        """The number of items."""
        return sum(map(len, self.inputs.values()))

    @property
    def is_small(self) -> bool:
        """Is the input small enough to explore all of it?"""
        return self.size <= 60

    def payloads(self, tasks: FlowTasks) -> dict[str, list[list[Payload]]]:
        """What the sources send to the tasks, epoch by epoch."""
        sources = [step for step in self.flow.steps if isinstance(step, Source)]
        return tasks.read(epochs_of(sources, self.inputs, self.epoch_size))[0]

    def tasks(self, on_call: Callable[..., Any] | None = None, *, fuse: bool = True) -> FlowTasks:
        """The flow as tasks; one for each step if they are not fused."""
        fused = plan(self.flow, fuse=fuse, watch=self.watch)
        return FlowTasks(fused, instances=self.instances, on_call=on_call, on_loss=self.on_loss)

    def model(self, crashes: int, tasks: FlowTasks) -> BarrierModel:
        """All runs of the flow on this input."""
        return BarrierModel(tasks.initial(self.payloads(tasks)), crashes=crashes)

    def observed(self, seen: Mapping[str, Sequence[Sequence[Any]]]) -> Any:
        """What is observed of the values that each sink shows in each epoch."""
        if self.observe is None:
            return seen
        return self.observe({sink: [v for epoch in e for v in epoch] for sink, e in seen.items()})

    def view_of(self, tasks: FlowTasks) -> Callable[[frozenset[Message]], Hashable]:
        """What is observed, as a function of the messages that are committed."""
        known: dict[frozenset[Message], Hashable] = {}

        def looked_at(out: frozenset[Message]) -> Hashable:
            if out not in known:
                known[out] = hashable_form(self.observed(_values(tasks, out)))
            return known[out]

        return looked_at

    def cut(self, epochs: int, size: int) -> Scenario:
        """The first `epochs` epochs, and of each source the first `size` items in each of them."""
        sources = [step for step in self.flow.steps if isinstance(step, Source)]
        kept: dict[str, list[Any]] = {source.name: [] for source in sources}
        for number, items in enumerate(epochs_of(sources, self.inputs, self.epoch_size)[:epochs]):
            for name, found in items.items():
                kept[name] += [BARRIER] if number else []
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
            show=shown_payload,
            show_value=lambda value: value.shown(),
        )
        return Trace(msgspec.structs.replace(trace.header, note=note), trace.steps)


def _values(tasks: FlowTasks, out: frozenset[Message]) -> dict[str, list[list[Any]]]:
    """The values each sink shows, in one list for all epochs, sorted by epoch and position."""
    shown: dict[str, list[list[Any]]] = {}
    for sink, streams in tasks.sinks.items():
        found = sorted((m for m in out if m.stream in streams), key=_position)
        payloads = (m.content.payload.thaw() for m in found if isinstance(m.content, BarrierEvent))
        rows = (payload.row.event for payload in payloads if isinstance(payload, Sent))
        shown[sink] = [[event.value for event in rows if isinstance(event, Data)]]
    return shown


def _position(message: Message) -> tuple[int, str, int]:
    return message.epoch, message.stream, message.n
