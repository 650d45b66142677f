"""The columns that each segment needs with its events, derived from the plan alone.

Times, keys and watermarks have a cost, so they are sent only where they are used.

**Watermarks need not travel between segments.** On Spark they come only from the rules of sources
and from numbering; both are known when an epoch is planned, and both are totally ordered. Then the
frontier of `operators.frontier` over any number of inputs is the least of what its inputs completed
last, and so the frontier of a segment is the least watermark of all its upstream sources, however
many segments lie between. Behind a join of two clocks it is the product of the frontiers of the two
sides, each the least watermark of its own sources. Every bucket receives the watermarks of the
sources, once an epoch and only if one moved, and derives the rest; it applies them after the data
and the barrier, as in `semantics.simulator`. Where the watermarks of several sources meet, a bucket
keeps the last ones in its state, since a source whose watermark did not move sends none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cutwater.errors import Problem, RefusedError
from cutwater.flow import steps as s
from cutwater.flow.fusing import Plan, Segment
from cutwater.times import Product

__all__ = ["ColumnRequirements", "least_and_greatest", "makes_watermarks", "needs_watermarks"]


def needs_watermarks(step: s.Step) -> bool:
    """Does the step act when times are complete?"""
    return step.waits or (isinstance(step, s.Apply) and step.expire_after is not None)


def makes_watermarks(source: s.Source) -> bool:
    """Does the source have watermarks: by a rule, or because its records are numbered?"""
    if isinstance(source, s.FromLog):
        return source.has_watermarks
    return source.watermark is not None or source.time is None


class ColumnRequirements:
    """Which segments need times, keys and watermarks."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.sources: dict[int, frozenset[str]] = {}
        """The upstream sources of each segment."""
        for segment in plan.segments:
            above = (self.sources[edge.segment] for edge in segment.inputs)
            own = {segment.name} if segment.source else set()
            self.sources[segment.number] = frozenset(own).union(*above)
        self.clocks: dict[int, _Clocks] = {}
        """For each segment the sources of each of its clocks."""
        for segment in plan.segments:
            self.clocks[segment.number] = self._clocks_of(segment)
        self.times = self._backwards(_reads_times, lambda _reader: True)
        """Segments whose events carry times, for themselves or for segments downstream."""
        self.keys = self._backwards(_uses_keys, _takes_keys)
        """Segments that are given keys, not just the canonical bytes of them."""
        makers = {s.name for s in plan.segments if s.source and makes_watermarks(s.source)}
        self.watermarks = frozenset(
            segment.number
            for segment in plan.segments
            if _needs_watermarks(segment) and self.sources[segment.number] <= makers
        )
        """Segments that act when times are complete, and have watermarks."""
        self.watermark_sources = frozenset(
            name for number in self.watermarks for name in self.sources[number]
        )
        """Sources whose watermarks matter to a segment."""
        self.watermarks_meet = any(len(self.sources[number]) > 1 for number in self.watermarks)
        """Must a bucket remember watermarks, since one may come without the other?"""

    def _backwards(self, uses: Any, passes: Any) -> frozenset[int]:
        """Segments that use something, and all upstream of one."""
        found: set[int] = set()
        before = -1
        while before < len(found):  # feedback is read by segments that come earlier
            before = len(found)
            for segment in reversed(self._plan.segments):
                readers = [*self._readers(segment), *self._readers_of_logs(segment)]
                if uses(segment) or any(r.number in found and passes(r) for r in readers):
                    found.add(segment.number)
        return frozenset(found)

    def _readers(self, segment: Segment) -> Iterator[Segment]:
        return (self._plan.segments[n] for n, _ in self._plan.readers[segment.number])

    def _readers_of_logs(self, segment: Segment) -> Iterator[Segment]:
        """The segments that read the log that this one writes."""
        names = {
            step.name
            for step, number in self._plan.sinks
            if isinstance(step, s.ToLog) and number == segment.number
        }
        return (
            r for r in self._plan.segments if isinstance(r.source, s.FromLog) and r.name in names
        )

    def met_by(self, source: str) -> frozenset[str]:
        """The other sources with which a source leads to segments that use watermarks."""
        groups = (group for number in self.watermarks for group in _groups(self.clocks[number]))
        return frozenset().union(*(names for names in groups if source in names)) - {source}

    def completed(self, segment: Segment, watermarks: Mapping[str, Any]) -> Any | None:
        """What is complete at all inputs of a segment; None if nothing is."""
        names = self.sources[segment.number]
        if not names <= watermarks.keys():
            return None
        return _completed(
            self.clocks[segment.number], watermarks, f"{segment.steps[0].title} reads"
        )

    def _goes_round(self, number: int) -> bool:
        """Is it what a loop feeds back? It has the clocks of what enters the loop."""
        source = self._plan.segments[number].source
        return isinstance(source, s.FromLog) and source.is_again

    def entering(self, loop: str) -> Segment:
        """The segment whose outputs enter a loop that is cut."""
        merged = next(each for each in self._plan.segments if _is_merge_of(each, loop))
        reads = (edge.segment for edge in merged.inputs)
        return next(self._plan.segments[n] for n in reads if not self._goes_round(n))

    def _clocks_of(self, segment: Segment) -> _Clocks:
        reads = (edge.segment for edge in segment.inputs)
        before = [self.clocks[number] for number in reads if not self._goes_round(number)]
        if isinstance(segment.steps[0], s.JoinClocks):
            return before[0], before[1]
        own = frozenset([segment.name] if segment.source else [])
        pairs = [each for each in before if isinstance(each, tuple)]
        if pairs and any(each != pairs[0] for each in before):
            raise RefusedError(_other_clocks(segment))
        return (
            pairs[0] if pairs else own.union(*(group for each in before for group in _groups(each)))
        )


def _is_merge_of(segment: Segment, loop: str) -> bool:
    first = segment.steps[0]
    return isinstance(first, s.Merge) and first.name == loop


_Clocks = frozenset[str] | tuple["_Clocks", "_Clocks"]
"""The sources whose least watermark is complete, or two such clocks whose product is."""


def _groups(clocks: _Clocks) -> Iterator[frozenset[str]]:
    """The sources of each clock."""
    if isinstance(clocks, frozenset):
        yield clocks
    else:
        yield from (group for side in clocks for group in _groups(side))


def _completed(clocks: _Clocks, watermarks: Mapping[str, Any], who: str) -> Any:
    if isinstance(clocks, frozenset):
        return least_and_greatest({name: watermarks[name] for name in clocks}, who)[0]
    return Product(*(_completed(side, watermarks, who) for side in clocks))


def least_and_greatest(watermarks: Mapping[str, Any], who: str) -> tuple[Any, Any]:
    """The least and the greatest of what sources have completed; `who` begins the sentence."""
    least, *others = (watermarks[name] for name in sorted(watermarks))
    greatest = least
    try:
        for watermark in others:
            least = least if least <= watermark else watermark
            greatest = watermark if greatest <= watermark else greatest
    except TypeError as error:
        raise RefusedError(_do_not_compare(who, error)) from None
    return least, greatest


def _needs_watermarks(segment: Segment) -> bool:
    return any(needs_watermarks(step) for step in segment.steps)


def _reads_times(segment: Segment) -> bool:
    return _needs_watermarks(segment) or any(step.reads_times for step in segment.steps)


def _uses_keys(segment: Segment) -> bool:
    is_named = any(part.operator.start for part in segment.parts)
    return is_named and segment.placement == "by key"


def _takes_keys(reader: Segment) -> bool:
    """Does the segment use the keys of its input rather than set its own?"""
    return reader.key is None and reader.placement == "by key"


def _other_clocks(segment: Segment) -> Problem:
    return Problem(
        "clocks-do-not-meet",
        f"{segment.steps[0].title} reads streams whose times are products of different clocks, so "
        "a watermark of one completes no time of the others",
        "merge the sources before their clocks are joined",
    )


def _do_not_compare(who: str, error: TypeError) -> Problem:
    return Problem(
        "times-do-not-compare",
        f"{who} streams whose times cannot be compared: {error}",
        "give their sources times of one kind",
    )
