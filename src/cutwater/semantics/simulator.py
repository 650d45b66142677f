"""The meaning of a flow, run in memory: no JVM, no clock, one result.

Each epoch runs the segments one after the other. A segment sorts its input events by the total
order (`ordering`), processes them, and forwards its outputs; then comes the epoch's barrier.
Watermarks that a source derives by its own rule take effect once, after the barrier, so that the
result does not depend on how sources are split and no event becomes late; watermarks among the
events take effect at their position. The end of the input is an epoch of its own, in which every
operator finishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cutwater.errors import InputError, Problem, TargetError
from cutwater.events import Data, Event
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import Plan, Segment, plan
from cutwater.flow.steps import Sink
from cutwater.ordering import NO_KEY
from cutwater.semantics.crashing import run_with_crashes
from cutwater.semantics.hanging import patient
from cutwater.semantics.inputs import Crash, SourceReader, as_lists, epochs_of
from cutwater.semantics.segments import Row, SegmentState, last_row
from cutwater.trace import Trace

__all__ = ["Simulation", "events_of_epochs", "simulate"]


@dataclass(frozen=True)
class Simulation:
    """The outputs of a simulated run, by sink and epoch; epochs count from 1.

    The last epoch is the end of the input; it has what operators held back until then.
    """

    epochs: int
    """The number of epochs, including the end of the input."""
    events: Mapping[str, Sequence[Sequence[Event]]]
    """For each sink and epoch the events it saw, including watermarks."""
    late: Mapping[str, int] = field(default_factory=dict)
    """For each source the number of events left out as late."""
    late_events: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """For each source that keeps them the values of its late events."""
    trace: Trace | None = None
    """The run step by step, if it was requested or had crashes."""

    def __getitem__(self, sink: str) -> list[Any]:
        """All values a sink saw, in order."""
        return [value for epoch in self.by_epoch(sink) for value in epoch]

    def by_epoch(self, sink: str) -> list[list[Any]]:
        """The values a sink saw in each epoch."""
        if sink not in self.events:
            raise TargetError(
                Problem(
                    "unknown-sink",
                    f"'{sink}' is not a sink of this flow",
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
    trace: bool = False,
    instances: int = 1,
) -> Simulation:
    """Run a flow in memory, deterministically, and show what each sink sees in each epoch.

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`. A function that does not return in half a minute,
        or emits without end, raises `StepError`.
    inputs
        For each source its values, or events (`Data`, `Watermark`), or both. `BARRIER` ends an
        epoch. Plain values get their time from the source's ``time=`` field, else 0, 1, 2, …
        Where a source reaches `CRASH`, every step crashes, and all restore their snapshots of the
        last barrier they all passed; ``crash("step")`` is the crash of one step.
    epoch_size
        The number of items per epoch, for inputs without barriers; None: one epoch for all.
    fuse
        Whether steps are fused into segments; the result is the same.
    trace
        Whether to keep the run step by step, by the rules of barrier snapshots; the result is
        the same. A run with crashes always has a trace.
    instances
        For a trace: the number of instances of a keyed step.

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
    lists = as_lists(inputs)
    if instances < 1:
        raise InputError(
            Problem("too-small", f"instances is {instances}; it is at least 1", "use 1")
        )
    with patient():
        if trace or any(isinstance(item, Crash) for items in lists.values() for item in items):
            return _traced(plan(flow), lists, epoch_size, instances)
        return _Run(plan(flow, fuse=fuse)).run(lists, epoch_size)


def _traced(
    plan: Plan, inputs: Mapping[str, Iterable[Any]], epoch_size: int | None, instances: int
) -> Simulation:
    run = run_with_crashes(plan, inputs, epoch_size=epoch_size, instances=instances)
    events = {sink: events_of_epochs(epochs) for sink, epochs in run.rows.items()}
    return Simulation(run.epochs, events, run.late, run.late_events, run.trace)


class _Node:
    """A running segment, and its pending input."""

    def __init__(self, segment: Segment, sinks: Sequence[Sink]) -> None:
        self.segment = segment
        self.work = SegmentState(segment, range(len(segment.inputs)), sinks=sinks)
        self.rows: list[tuple[int, Row]] = []
        self.advances: list[tuple[int, Any]] = []


class _Run:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes = [_Node(segment, plan.sinks_of(segment)) for segment in plan.segments]
        self.seen: dict[str, list[list[Row]]] = {sink.name: [] for sink, _ in plan.sinks}
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
                self._end_epoch(node)
        self._begin_epoch()
        for node in self.nodes:
            self._work(node)
            self._send(node, node.work.finish())
        late = {reader.source.name: reader.late for _, reader in self.readers}
        kept = {reader.source.name: reader.late_events for _, reader in self.readers}
        return Simulation(
            len(cut) + 1, {n: events_of_epochs(e) for n, e in self.seen.items()}, late, kept
        )

    def _begin_epoch(self) -> None:
        for epochs in self.seen.values():
            epochs.append([])

    def _read(self, items: Mapping[str, list[Any]]) -> None:
        for rank, (node, reader) in enumerate(self.readers):
            for position, event in reader.read(items[reader.source.name]):
                node.rows.append((0, Row((rank, 0, position), None, NO_KEY, event)))
            time = reader.watermark()
            if time is not None:
                node.advances.append((0, time))

    def _work(self, node: _Node) -> None:
        rows, node.rows = sorted(node.rows, key=lambda item: item[1].order), []
        for port, row in rows:
            self._send(node, node.work.process(port, port, row))

    def _end_epoch(self, node: _Node) -> None:
        advances, node.advances = node.advances, []
        rows, common = node.work.end_epoch(advances)
        self._send(node, rows)
        for time in common:
            for number, port in self.plan.readers[node.segment.number]:
                self.nodes[number].advances.append((port, time))
            self._show(node, last_row(node.segment, time))

    def _send(self, node: _Node, rows: Iterable[Row]) -> None:
        readers = self.plan.readers[node.segment.number]
        for row in rows:
            for number, port in readers:
                self.nodes[number].rows.append((port, row))
            self._show(node, row)

    def _show(self, node: _Node, row: Row) -> None:
        for sink, number in self.plan.sinks:
            if number == node.segment.number:
                self.seen[sink.name][-1].append(row)


def events_of_epochs(epochs: Iterable[Iterable[Row]]) -> list[list[Event]]:
    """The rows of each epoch as a sink shows them: events, in order."""
    return [[row.event for row in sorted(rows, key=lambda r: r.order)] for rows in epochs]
