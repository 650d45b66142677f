"""Which times are complete at each step, and which source or partition holds the next one.

On Spark times only move with sources: what a source has completed is written to its log when an
epoch is planned. So the live pointstamps (P3) are one for each source, or for each of its
partitions, just after what it has completed; `progress` says what they hold. Where two clocks are
joined a step has a frontier by each of them.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from cutwater.errors import Problem, RefusedError
from cutwater.operators.windows import windows_of
from cutwater.progress import Edge, Graph, Progress
from cutwater.spark.checkpoint.loop_progress import LoopProgress, loop_progress
from cutwater.spark.checkpoint.store import Checkpoint, no_checkpoint
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.base.watermarks import (
    PartitionTimes,
    PartitionWatermarkTracker,
    SourceTracker,
    WatermarkTracker,
)
from cutwater.spark.telemetry.iterating import IteratingInput, iterating_inputs
from cutwater.spark.telemetry.topology import FlowShape, StepTimes, read_topology
from cutwater.times import Product, just_before

__all__ = [
    "FrontierTracker",
    "Frontiers",
    "Position",
    "StepFrontier",
    "frontiers_in",
    "positions_of",
]

_Moment = tuple[Any, ...]
"""A time, or the position just after one, or before all times; totally ordered."""
_BEFORE_ALL: _Moment = (0,)


def _at(t: Any) -> _Moment:
    return (1, t, 0)


def _after(t: Any | None) -> _Moment:
    return _BEFORE_ALL if t is None else (1, t, 1)


@dataclass(frozen=True)
class Position:
    """The progress of a source or one of its partitions; or a loop that is not empty."""

    source: str
    partition: str | None = None
    newest: Any = None
    """Its newest time; None: it has had no record, or no step uses times."""
    completed: Any = None
    """The time up to which nothing more can arrive; None: none."""
    last_input: float | None = None
    """When its input was last planned, in seconds of the wall clock; None: never."""
    follows: bool = False
    """Is it idle, so that it follows the watermark of the other sources?"""
    is_loop: bool = False
    """Is it a loop, by its name, in which something circulates?"""

    @property
    def title(self) -> str:
        """Its name in messages."""
        of = f"{'loop' if self.is_loop else 'source'} '{self.source}'"
        return of if self.partition is None else f"partition {self.partition} of {of}"

    @property
    def label(self) -> str:
        """Its name in metrics."""
        return self.source if self.partition is None else f"{self.source}[{self.partition}]"


@dataclass(frozen=True)
class StepFrontier:
    """What is complete at a step, and what holds the next time back."""

    step: str
    verb: str
    waits: bool
    """Does it act when times are complete?"""
    completed: Any
    """The time up to which everything has arrived, a `Product` of several clocks; None: none."""
    next_end: Any
    """The end of its next window; None: it has none, or that depends on events."""
    asked: Any
    """The time that was asked for; None: whatever is next."""
    is_complete: bool
    """Has everything arrived: up to the time that was asked for, or because the input ended?"""
    holders: tuple[Position, ...]
    """What holds the next time, or the one that was asked for; those that follow others last."""
    clocks: tuple[tuple[str, ...], ...]
    """Its upstream sources, by clock."""
    depth: int = 0
    """The number of loops around it. In a loop a time is complete when it is so in each round."""


@dataclass(frozen=True)
class Frontiers:
    """The frontiers of all steps of a flow, as its checkpoint has them."""

    flow: str
    epoch: int
    """The newest epoch that was planned; -1: none."""
    is_closed: bool
    topology: FlowShape
    positions: tuple[Position, ...]
    steps: tuple[StepFrontier, ...]
    loop: LoopProgress | None = None
    """The progress of the loop that feeds back through a log; None if none does, or it is empty."""
    unit: str = "epoch"
    """What `epoch` counts: epochs, or ticks of a real-time run."""
    iterating: tuple[IteratingInput, ...] = ()
    """The input epochs in that loop, oldest first."""


class FrontierTracker:
    """The frontiers of all steps of a flow while its sources move."""

    def __init__(self, topology: FlowShape) -> None:
        self.topology = topology
        graph = Graph(_edges(topology))
        self._clocks = _clock_numbers(topology)
        self._progress = {clock: Progress(graph) for clock in sorted(set(self._clocks.values()))}
        """One for each clock, since times of two clocks do not compare."""
        self._positions: Sequence[Position] = ()

    def move(self, positions: Sequence[Position]) -> None:
        """Set the positions of sources and partitions; those not named have ended."""
        for moved, change in ((positions, +1), (self._positions, -1)):
            for each in moved:
                progress = self._progress[self._clocks[each.source]]
                progress.update(_input(each.source), _after(each.completed), change)
        self._positions = positions

    def steps(self, asked: str | None = None) -> tuple[StepFrontier, ...]:
        """The frontier of every step, each loop followed by the steps of its body.

        `asked` is a time as it is typed, of the type that the sources of each step have; steps
        without such times are left out.
        """
        found: list[StepFrontier] = []
        for number, step in enumerate(self.topology.steps):
            by_clock = [
                self._by_clock(number, clock, None if asked is None else self._typed(asked, clock))
                for clock in self.topology.clocks_of(number)
            ]
            if asked is None or any(each.asked is not None for each in by_clock):
                found += _with_body(step, self._frontier(number, step, by_clock))
        return tuple(found)

    def steps_after_loop(
        self,
        loop: str,
        released: Sequence[Position],
        steps: Sequence[StepFrontier],
        asked: str | None = None,
    ) -> tuple[StepFrontier, ...]:
        """The frontiers of steps; a loop that is not empty holds those of steps downstream of it.

        Sources are at `released`: where they were when the newest input epoch that left was read.
        """
        self.move(released)
        downstream = self.topology.downstream_of(loop)
        earlier = {each.step: each for each in self.steps(asked) if each.step in downstream}
        return tuple(
            _held_by_loop(earlier.get(each.step, each), loop, downstream) for each in steps
        )

    def entered(self, loop: str, positions: Sequence[Position]) -> tuple[Any, Any]:
        """What is complete where a loop begins with sources at `positions`, and their newest time.

        None each if it is not known, as where two clocks meet.
        """
        number = next(n for n, s in enumerate(self.topology.steps) if s.name == loop)
        sources = self.topology.sources_of(number)
        if len(self.topology.clocks_of(number)) > 1:
            return None, None
        self.move(positions)
        newest = [each.newest for each in positions if each.source in sources]
        known = [time for time in newest if time is not None]
        return self._by_clock(number, sources, None).completed, max(known, default=None)

    def _typed(self, asked: str, sources: Collection[str]) -> Any | None:
        types = {self.topology.sources[name].time_type for name in sources} - {Any}
        there = [p for p in self._positions if p.source in sources]
        known = (t for p in there for t in (p.newest, p.completed) if t is not None)
        return _typed(asked, types, next(known, None))

    def _by_clock(self, number: int, sources: Sequence[str], asked: Any) -> _ByClock:
        progress = self._progress[self._clocks[sources[0]]]
        least = next(iter(progress.frontier(_node(number))), None)
        holders: tuple[Position, ...] = ()
        if least is not None:
            moment = least if asked is None else _at(asked)
            held = self._holders(progress, number, moment)
            holders = tuple(sorted(held, key=lambda each: each.follows))
        completed = None if least in (None, _BEFORE_ALL) else least[1]
        return _ByClock(completed, asked, holders)

    def _frontier(self, number: int, step: StepTimes, by_clock: Sequence[_ByClock]) -> StepFrontier:
        done = [each.completed for each in by_clock]
        completed = None if None in done else functools.reduce(Product, done)
        asked = next((each.asked for each in by_clock if each.asked is not None), None)
        meant = [each for each in by_clock if asked is None or each.asked is not None]
        holders = tuple(holder for each in meant for holder in each.holders)
        return StepFrontier(
            step=step.name,
            verb=step.verb,
            waits=step.waits,
            completed=completed,
            next_end=None if completed is None else _next_end(step, completed),
            asked=asked,
            is_complete=not holders,
            holders=holders,
            clocks=self.topology.clocks_of(number),
        )

    def _holders(self, progress: Progress, number: int, moment: _Moment) -> Iterator[Position]:
        for holder in progress.holders(_node(number), moment):
            for each in self._positions:
                is_there = _input(each.source) == holder.location
                if is_there and _after(each.completed) == holder.time:
                    yield each


def _with_body(step: StepTimes, found: StepFrontier) -> Iterator[StepFrontier]:
    """The frontier of a step and, if it is a loop, of the steps in its body.

    A loop that iterates inside an epoch is at rest in a checkpoint: what was complete where it
    begins is complete in each of its rounds.
    """
    for depth, inner in step.with_body():
        yield (
            found
            if depth == 0
            else replace(
                found,
                step=inner.name,
                verb=inner.verb,
                waits=inner.waits,
                next_end=None,
                depth=depth,
            )
        )


def _held_by_loop(step: StepFrontier, loop: str, downstream: Collection[str]) -> StepFrontier:
    if step.step not in downstream or step.is_complete:
        return step
    return replace(step, holders=(Position(loop, completed=step.completed, is_loop=True),))


class _ByClock(NamedTuple):
    """What is complete at a step by one of its clocks."""

    completed: Any
    asked: Any
    holders: tuple[Position, ...]


def _clock_numbers(topology: FlowShape) -> dict[str, int]:
    """For each source the number of its clock: sources whose times meet anywhere share one."""
    numbers = {name: number for number, name in enumerate(topology.sources)}
    for step in range(len(topology.steps)):
        for clock in topology.clocks_of(step):
            least = min(numbers[name] for name in clock)
            met = {numbers[name] for name in clock}
            numbers |= {name: least for name, number in numbers.items() if number in met}
    return numbers


def _input(source: str) -> str:
    return f"input {source}"


def _node(number: int) -> str:
    return f"step {number}"


def _edges(topology: FlowShape) -> Iterator[Edge]:
    for number, step in enumerate(topology.steps):
        if step.verb == "source":
            yield Edge(_input(step.name), None, _node(number))
        for nth, read in enumerate(step.inputs):
            yield Edge(f"edge {number}.{nth}", _node(read), _node(number))
        yield Edge(f"output {number}", _node(number), None)


def _typed(text: str, types: Collection[Any], known: Any) -> Any | None:
    """A time as it is typed, as one of these types; None if it is none.

    A moment without a zone is one of UTC if the time that is known has a zone; None: none is.
    """
    for tp in types:
        with contextlib.suppress(msgspec.ValidationError, ValueError):
            if tp is not dt.datetime:
                return msgspec.convert(text, tp, strict=False)
            moment = dt.datetime.fromisoformat(text)
            if not isinstance(known, dt.datetime):
                return moment
            has_zone = known.tzinfo is not None
            is_zoned = moment.tzinfo is not None
            return moment if is_zoned == has_zone else _in_utc(moment, has_zone)
    return None


def _in_utc(moment: dt.datetime, with_zone: bool) -> dt.datetime:
    if with_zone:
        return moment.replace(tzinfo=dt.UTC)
    return moment.astimezone(dt.UTC).replace(tzinfo=None)


def _next_end(step: StepTimes, completed: Any) -> Any | None:
    """Where the first window ends that is not complete."""
    windows = step.windows(type(completed))
    if windows is None:
        return None
    ends = [end for _, end in windows_of(windows, completed)]
    later = [end for _, end in windows_of(windows, ends[-1])] if ends else []
    return next((end for end in [*ends, *later] if just_before(end) > completed), None)


def positions_of(source: str, tracker: SourceTracker | None, last: Chunk | None) -> list[Position]:
    """The progress of a source, by the last chunk that an epoch read of it."""
    if last is None:
        return [Position(source)]
    whole = Position(source, last_input=last.planned, follows=last.is_decision)
    if tracker is None:
        return [whole]
    kept = last.newest_after
    newest = (
        tracker.newest_in(kept)
        if isinstance(tracker, WatermarkTracker)
        else tracker.completed(kept)
    )
    whole = replace(whole, newest=newest, completed=tracker.completed(kept))
    parts = tracker.partitions(kept) if isinstance(tracker, PartitionWatermarkTracker) else {}
    return [_partition(whole, name, parts[name]) for name in sorted(parts, key=int)] or [whole]


def _partition(whole: Position, name: str, part: PartitionTimes) -> Position:
    """The progress of a partition; what its source has completed stays so when it falls behind."""
    own, done = part.completed, whole.completed
    completed = own if done is None or (own is not None and own > done) else done
    return replace(
        whole, partition=name, newest=part.newest, completed=completed, last_input=part.seen
    )


def frontiers_in(checkpoint: Checkpoint, asked: str | None = None) -> Frontiers:
    """The frontiers in a checkpoint. Read-only; a run may continue meanwhile."""
    identity = checkpoint.identity()
    if identity is None:
        raise RefusedError(no_checkpoint(checkpoint))
    topology = read_topology(checkpoint.root)
    positions = _positions(topology, checkpoint.last_chunks(identity.sources))
    tracker = FrontierTracker(topology)
    tracker.move(() if identity.is_closed else positions)
    steps = tracker.steps(asked)
    if not steps:
        raise RefusedError(_no_such_time(str(asked), topology))
    loop = loop_progress(checkpoint, identity)
    iterating: tuple[IteratingInput, ...] = ()
    if loop and loop.input_epochs:
        released = _positions(topology, checkpoint.chunks_at(loop.released))
        steps = tracker.steps_after_loop(loop.loop, released, steps, asked)
        entered = functools.partial(_entered, checkpoint, tracker, loop.loop)
        iterating = tuple(iterating_inputs(loop, entered))
    return Frontiers(
        identity.flow,
        checkpoint.next_epoch() - 1,
        identity.is_closed,
        topology,
        () if identity.is_closed else tuple(positions),
        steps,
        loop if loop and loop.input_epochs else None,
        checkpoint.unit,
        iterating,
    )


def _entered(
    checkpoint: Checkpoint, tracker: FrontierTracker, loop: str, entries: Mapping[str, int]
) -> tuple[Any, Any]:
    positions = _positions(tracker.topology, checkpoint.chunks_at(entries))
    return tracker.entered(loop, positions)


def _positions(topology: FlowShape, last: Mapping[str, Chunk | None]) -> list[Position]:
    """The positions of sources that were read up to these chunks."""
    found: list[Position] = []
    for name, times in topology.sources.items():
        found += positions_of(name, times.watermark_tracker(), last.get(name))
    return found


def _no_such_time(text: str, topology: FlowShape) -> Problem:
    kinds = sorted({times.kind for times in topology.sources.values() if times.kind})
    return Problem(
        "not-a-time",
        f"{text!r} is not a time of any source; their types are: {', '.join(kinds) or 'not known'}",
        "write a time as in the input, 2024-05-01T12:05:00Z for example",
    )
