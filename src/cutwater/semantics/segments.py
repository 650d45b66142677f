"""A running segment: it processes its input rows in the total order of the run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cutwater.errors import Problem, RunError
from cutwater.events import Data, Event, Watermark
from cutwater.flow.fusing import Segment
from cutwater.flow.lowering import key_bytes_of
from cutwater.flow.steps import JoinClocks, Sink
from cutwater.operators.frontier import Frontier, ProductFrontier
from cutwater.operators.keyed import Emitted, Keyed
from cutwater.ordering import AFTER_DATA, NO_KEY
from cutwater.semantics.snapshots import OnLoss, SnapshotCodecs, refuse
from cutwater.times import maximal

__all__ = ["AFTER_KEYS", "Row", "RowOrder", "SegmentState", "last_row"]

RowOrder = tuple[int | bytes, ...]

AFTER_KEYS = b"\xff"
"""Sorts after the canonical bytes of every key."""


@dataclass(frozen=True, slots=True)
class Row:
    """An event between segments."""

    order: RowOrder
    """Its position in the total order of the epoch."""
    key: Any
    key_bytes: bytes
    event: Event


def last_row(segment: Segment, time: Any) -> Row:
    """A watermark derived by a source's rule, as a sink sees it at the end of an epoch."""
    return Row((AFTER_DATA, segment.stage, 1, AFTER_KEYS), None, NO_KEY, Watermark(time))


class SegmentState:
    """The states of a segment's keys and its frontier.

    Parameters
    ----------
    segment
        The segment.
    ports
        For each incoming stream the inputs it feeds; each has its own watermark.
    owns
        Which keys are its own, by their canonical bytes; default: all.
    on_loss
        Called for an event or a state that its codec does not round-trip unchanged.
    sinks
        The sinks that it feeds.
    """

    def __init__(
        self,
        segment: Segment,
        ports: Sequence[int],
        owns: Callable[[bytes], bool] | None = None,
        on_loss: OnLoss = refuse,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self.segment = segment
        self.keyed = Keyed(segment.operator)
        has_clocks = isinstance(segment.steps[0], JoinClocks)
        self.frontier: Frontier | ProductFrontier = (
            ProductFrontier.of(ports) if has_clocks else Frontier.of(len(ports) or 1)
        )
        self._owns = owns
        self._snapshots = SnapshotCodecs(segment, on_loss, sinks)

    def copy(self) -> SegmentState:
        """An independent copy."""
        other = copy.copy(self)
        other.keyed = self.keyed.copy()
        return other

    def process(self, number: int, port: int, row: Row) -> list[Row]:
        """The outputs of a row that arrived on a stream, by one of the segment's inputs."""
        if isinstance(row.event, Watermark):
            return self._watermark(number, row, row.event.time)
        return self._data(port, row, row.event)

    def _data(self, port: int, row: Row, event: Data) -> list[Row]:
        segment = self.segment
        event = self._snapshots.event(port, event)
        key, key_bytes = row.key, row.key_bytes
        if segment.key is not None:
            key = segment.key(event.value)
            key_bytes = key_bytes_of(segment.steps[0], key)
            if self._snapshots.key is not None:
                self._snapshots.key(key)
        elif segment.placement != "by key":  # keyed rows may have been merged with others
            key, key_bytes = None, NO_KEY
        if self._owns is not None and not self._owns(key_bytes):
            return []
        side = segment.inputs[port].side if segment.inputs else None
        if side is not None:
            event = Data(side(event.time), event.value)
        emitted = [(key_bytes, key, self.keyed.data(key, key_bytes, event))]
        return self._rows(row.order, emitted, segment.first_index(port))

    def _watermark(self, number: int, row: Row, time: Any) -> list[Row]:
        """A watermark among the events: what it completes, key by key, and then itself."""
        rank = self.segment.rank
        # in an unfused chain the watermark keeps the order in which it entered
        cause = row.order[:-4] if self.segment.depth else row.order
        rows: list[Row] = []
        for index, completed in enumerate(self._common(number, time)):
            order = (*cause, AFTER_KEYS, rank, 0, index) if index else cause
            rows += self._rows(order, self.keyed.watermarks([completed]))
            last = (*order, AFTER_KEYS, rank, 0, 0)
            rows.append(Row(last, None, NO_KEY, Watermark(completed)))
        return rows

    def end_epoch(self, advances: Iterable[tuple[int, Any]]) -> tuple[list[Row], list[Any]]:
        """The outputs of the barrier, then the watermarks that sources derived by their rules.

        Also returns the watermarks that all inputs have reached.
        """
        stage = self.segment.stage
        rows = self._rows((AFTER_DATA, stage, 0), self.keyed.barrier())
        common: list[Any] = []
        for number, time in advances:
            common += self._common(number, time)
        common = maximal(common)
        rows += self._rows((AFTER_DATA, stage, 1), self.keyed.watermarks(common))
        self.snapshot()
        return rows, common

    def snapshot(self) -> None:
        """Replace the states by what a snapshot of them restores."""
        self.keyed.snapshot(self._snapshots.state)

    def finish(self) -> list[Row]:
        """The outputs of the end of the input."""
        return self._rows((AFTER_DATA + 1, self.segment.stage, 0), self.keyed.finish())

    def _rows(self, order: RowOrder, emitted: Iterable[Emitted], first: int = 0) -> list[Row]:
        rank, depth = self.segment.rank, self.segment.depth
        rows = [
            Row((*order, key_bytes, rank, depth, index), key, key_bytes, event)
            for key_bytes, key, outputs in emitted
            for index, event in enumerate(outputs, first)
        ]
        for row in rows:
            self._snapshots.emitted(row.event)
        return rows

    def _common(self, number: int, time: Any) -> list[Any]:
        """The watermarks that all inputs have reached now that one has advanced."""
        try:
            self.frontier, common = self.frontier.advance(number, [time])
        except TypeError as error:
            raise RunError(
                Problem(
                    "times-do-not-compare",
                    f"{self.segment.steps[0].title} reads streams whose times cannot be compared: "
                    f"{error}",
                    "give their sources times of one kind",
                )
            ) from None
        return common
