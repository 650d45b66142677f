"""The meaning of a flow, run in memory: no JVM, no clock, one result.

Each epoch runs the segments one after the other. A segment sorts the events it was sent by the
total order (``order.py``), works on them, and sends on what they cause; then comes the epoch's
border. Watermarks that a source derives by its own rule take effect once, after the border, so
that the result does not depend on how sources are split and nothing comes too late; watermarks
among the events take effect where they stand. The end of the input is an epoch of its own, in
which every operator finishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cutwater.errors import Problem, RunError, TargetError
from cutwater.events import Data, Event, Watermark
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import Plan, Segment, plan
from cutwater.flow.lowering import key_bytes_of
from cutwater.operators.frontier import Frontier
from cutwater.operators.keyed import Emitted, Keyed
from cutwater.order import AFTER_DATA, NO_KEY
from cutwater.semantics.inputs import SourceReader, epochs_of
from cutwater.times import maximal

__all__ = ["Order", "Simulation", "simulate"]

Order = tuple[int | bytes, ...]

_AFTER_KEYS = b"\xff"
"""Sorts after the canonical bytes of every key."""


@dataclass(frozen=True, slots=True)
class _Row:
    order: Order
    key: Any
    key_bytes: bytes
    event: Event


@dataclass(frozen=True)
class Simulation:
    """What a simulated run showed, by sink and epoch; epochs count from 1.

    The last epoch is the end of the input; it has what operators held back till then.
    """

    epochs: int
    """How many epochs there were, the end of the input included."""
    events: Mapping[str, Sequence[Sequence[Event]]]
    """For each sink and epoch the events it saw, watermarks among them."""
    late: Mapping[str, int] = field(default_factory=dict)
    """For each source how many events were dropped as late."""

    def __getitem__(self, sink: str) -> list[Any]:
        """All values a sink saw, in order."""
        return [value for epoch in self.by_epoch(sink) for value in epoch]

    def by_epoch(self, sink: str) -> list[list[Any]]:
        """The values a sink saw in each epoch."""
        if sink not in self.events:
            raise TargetError(
                Problem(
                    "unknown-sink",
                    f"'{sink}' is no sink of this flow",
                    f"its sinks: {', '.join(self.events)}",
                )
            )
        return [[e.value for e in epoch if isinstance(e, Data)] for epoch in self.events[sink]]


def simulate(
    flow: Flow,
    inputs: Mapping[str, Iterable[Any]],
    *,
    epoch_size: int | None = None,
    fuse: bool = True,
) -> Simulation:
    """Run a flow in memory, deterministically, and show what each sink sees in each epoch.

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`.
    inputs
        For each source its values, or events (`Data`, `Watermark`), or both. `BORDER` ends an
        epoch. Plain values get their time from the source's ``time=`` field, else 0, 1, 2, …
    epoch_size
        Where there are no borders, how many items an epoch has; None: one epoch for all.
    fuse
        Whether steps are fused into segments; the result is the same.

    Examples
    --------
    >>> from cutwater.flow import Flow, task
    >>> @task(initial=0)
    ... def count(seen: int, word: str) -> tuple[int, list[tuple[str, int]]]:
    ...     return seen + 1, [(word, seen + 1)]
    >>> flow = Flow("word count")
    >>> counted = flow.source("words", str).key_by(str.lower).apply(count)
    >>> _ = flow.sink("counts", counted)
    >>> simulate(flow, {"words": ["a", "b", "A"]})["counts"]
    [('a', 1), ('b', 1), ('A', 2)]
    """
    return _Run(plan(flow, fuse=fuse)).run(inputs, epoch_size)


class _Node:
    """A segment at work: its states, its frontier, and what it was sent."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.keyed = Keyed(segment.operator)
        self.frontier = Frontier.of(len(segment.inputs) or 1)
        self.rows: list[tuple[int, _Row]] = []
        self.advances: list[tuple[int, Any]] = []


class _Run:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes = [_Node(segment) for segment in plan.segments]
        self.seen: dict[str, list[list[_Row]]] = {sink.name: [] for sink, _ in plan.sinks}
        sources = sorted(
            (node for node in self.nodes if node.segment.source), key=lambda n: n.segment.name
        )
        self.readers = [(node, SourceReader(node.segment.source)) for node in sources]  # type: ignore[arg-type]

    def run(self, inputs: Mapping[str, Iterable[Any]], epoch_size: int | None) -> Simulation:
        cut = epochs_of([reader.source for _, reader in self.readers], inputs, epoch_size)
        for items in cut:
            self._begin_epoch()
            self._read(items)
            for node in self.nodes:
                self._work(node)
                self._emit(node, (AFTER_DATA, node.segment.stage, 0), node.keyed.border())
                self._advance(node)
        self._begin_epoch()
        for node in self.nodes:
            self._work(node)
            self._emit(node, (AFTER_DATA + 1, node.segment.stage, 0), node.keyed.finish())
        late = {reader.source.name: reader.late for _, reader in self.readers}
        return Simulation(len(cut) + 1, {n: _sorted(e) for n, e in self.seen.items()}, late)

    def _begin_epoch(self) -> None:
        for epochs in self.seen.values():
            epochs.append([])

    def _read(self, items: Mapping[str, list[Any]]) -> None:
        for rank, (node, reader) in enumerate(self.readers):
            for position, event in reader.read(items[reader.source.name]):
                node.rows.append((0, _Row((rank, 0, position), None, NO_KEY, event)))
            time = reader.watermark()
            if time is not None:
                node.advances.append((0, time))

    def _work(self, node: _Node) -> None:
        rows, node.rows = sorted(node.rows, key=lambda item: item[1].order), []
        for port, row in rows:
            if isinstance(row.event, Watermark):
                self._watermark(node, port, row, row.event.time)
            else:
                self._data(node, port, row, row.event)

    def _data(self, node: _Node, port: int, row: _Row, event: Data) -> None:
        segment = node.segment
        key, key_bytes = row.key, row.key_bytes
        if segment.key is not None:
            key = segment.key(event.value)
            key_bytes = key_bytes_of(segment.steps[0], key)
        elif segment.placement != "by key":  # keyed streams may have met others
            key, key_bytes = None, NO_KEY
        side = segment.inputs[port].side if segment.inputs else None
        if side is not None:
            event = Data(side(event.time), event.value)
        emitted = [(key_bytes, key, node.keyed.data(key, key_bytes, event))]
        self._emit(node, row.order, emitted, segment.first_index(port))

    def _watermark(self, node: _Node, port: int, row: _Row, time: Any) -> None:
        """A watermark among the events: what it completes, key by key, and then itself."""
        rank = node.segment.rank
        # within a chain it is still the watermark that came to the chain
        cause = row.order[:-4] if node.segment.depth else row.order
        common = _common(node, port, time)
        for number, completed in enumerate(common):
            order = (*cause, _AFTER_KEYS, rank, 0, number) if number else cause
            self._emit(node, order, node.keyed.watermarks([completed]))
            last = (*order, _AFTER_KEYS, rank, 0, 0)
            self._send(node, _Row(last, None, NO_KEY, Watermark(completed)))

    def _advance(self, node: _Node) -> None:
        """The watermarks that sources derived by their rules, all inputs at once."""
        order = (AFTER_DATA, node.segment.stage, 1)
        advances, node.advances = node.advances, []
        common: list[Any] = []
        for port, time in advances:
            common += _common(node, port, time)
        common = maximal(common)
        self._emit(node, order, node.keyed.watermarks(common))
        for time in common:
            for number, port in self.plan.readers[node.segment.number]:
                self.nodes[number].advances.append((port, time))
            self._show(node, _Row((*order, _AFTER_KEYS), None, NO_KEY, Watermark(time)))

    def _emit(self, node: _Node, order: Order, emitted: Iterable[Emitted], first: int = 0) -> None:
        segment = node.segment
        for key_bytes, key, outputs in emitted:
            for index, event in enumerate(outputs, first):
                place = (*order, key_bytes, segment.rank, segment.depth, index)
                self._send(node, _Row(place, key, key_bytes, event))

    def _send(self, node: _Node, row: _Row) -> None:
        for number, port in self.plan.readers[node.segment.number]:
            self.nodes[number].rows.append((port, row))
        self._show(node, row)

    def _show(self, node: _Node, row: _Row) -> None:
        for sink, number in self.plan.sinks:
            if number == node.segment.number:
                self.seen[sink.name][-1].append(row)


def _common(node: _Node, port: int, time: Any) -> list[Any]:
    """What is complete at all inputs now that one has a watermark."""
    try:
        node.frontier, common = node.frontier.advance(port, [time])
    except TypeError as error:
        raise RunError(
            Problem(
                "times-do-not-compare",
                f"{node.segment.steps[0].title} reads streams whose times cannot be compared: "
                f"{error}",
                "give their sources times of one kind",
            )
        ) from None
    return common


def _sorted(epochs: list[list[_Row]]) -> list[list[Event]]:
    return [[row.event for row in sorted(rows, key=lambda r: r.order)] for rows in epochs]
