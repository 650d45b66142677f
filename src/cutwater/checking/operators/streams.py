"""Random monotone streams over sample times, and the smallest one on which something fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cutwater.errors import CutwaterError, Problem
from cutwater.events import Data, Event, Watermark
from cutwater.times import maximal

__all__ = ["Samples", "StreamSearch", "keep_monotone", "require_hypothesis"]

_LONGEST = 12


@dataclass(frozen=True, slots=True)
class Samples:
    """The events that streams are drawn from, simplest first."""

    data: tuple[Data, ...]
    watermarks: tuple[Watermark, ...]

    @classmethod
    def of(cls, times: Sequence[Any], values: Callable[[Any], Sequence[Any]]) -> Samples:
        """All data and all watermarks over the times; the values may depend on the time."""
        return cls(
            tuple(Data(time, value) for time in times for value in values(time)),
            tuple(Watermark(time) for time in times),
        )

    def closing(self) -> list[Event]:
        """The watermarks that complete every time."""
        return [Watermark(time) for time in maximal(mark.time for mark in self.watermarks)]

    def simpler(self, event: Event) -> Sequence[Event]:
        """The events of the same kind that come before it in the samples."""
        kind = self.data if isinstance(event, Data) else self.watermarks
        return kind[: kind.index(event)]

    def otherwise(self, data: Data) -> list[Data]:
        """The same item with each of its other values."""
        return [other for other in self.data if other.time == data.time and other != data]


def keep_monotone(events: Iterable[Event]) -> list[Event]:
    """The stream without its late data.

    >>> keep_monotone([Data(2, "a"), Watermark(1), Data(1, "late")])
    [Data(time=2, value='a'), Watermark(time=1)]
    """
    completed: list[Any] = []
    kept: list[Event] = []
    for event in events:
        if isinstance(event, Watermark):
            completed = maximal([*completed, event.time])
        elif any(event.time <= time for time in completed):
            continue
        kept.append(event)
    return kept


def require_hypothesis() -> None:
    """Raise `CutwaterError` if hypothesis, which draws and shrinks streams, is not installed."""
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise CutwaterError(
            Problem(
                "hypothesis-missing",
                "check_operator draws and shrinks streams with hypothesis, which is not installed",
                "pip install 'cutwater[dev]'",
            )
        ) from None


@dataclass(frozen=True, slots=True)
class StreamSearch:
    """Tries random monotone streams; the same seed tries the same ones."""

    samples: Samples
    examples: int
    seed: int

    def smallest(self, is_bad: Callable[[list[Event]], bool]) -> list[Event] | None:
        """A shrunk stream on which the predicate is true, or None if none was found."""
        from hypothesis import HealthCheck, Phase, Verbosity, find, settings
        from hypothesis import strategies as st
        from hypothesis.errors import Flaky, NoSuchExample

        found: list[list[Event]] = []

        def noted(stream: list[Event]) -> bool:
            if is_bad(stream):
                found.append(stream)
                return True
            return False

        event: st.SearchStrategy[Event] = st.one_of(
            st.sampled_from(self.samples.data), st.sampled_from(self.samples.watermarks)
        )
        chosen = settings(
            max_examples=self.examples,
            verbosity=Verbosity.quiet,
            derandomize=False,  # the seed decides
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        streams = st.lists(event, max_size=_LONGEST).map(keep_monotone)
        try:
            stream = find(streams, noted, settings=chosen, random=Random(self.seed))
            return self._simplest(stream, is_bad)
        except NoSuchExample:
            return None
        except Flaky:
            # A failure that does not recur is a counterexample, too, but cannot be shrunk.
            return min(found, key=len)

    def _simplest(self, stream: list[Event], is_bad: Callable[[list[Event]], bool]) -> list[Event]:
        """A bad stream in which no event can be removed or replaced by a simpler one."""
        for simpler in self._simpler(stream):
            if is_bad(simpler):
                return self._simplest(simpler, is_bad)
        return stream

    def _simpler(self, stream: list[Event]) -> Iterator[list[Event]]:
        for index, event in enumerate(stream):
            yield keep_monotone([*stream[:index], *stream[index + 1 :]])
            for other in self.samples.simpler(event):
                yield keep_monotone([*stream[:index], other, *stream[index + 1 :]])

    def any_value(
        self, stream: Sequence[Event], is_bad: Callable[[list[Event]], bool]
    ) -> frozenset[int]:
        """The positions of data at which every other value makes the stream just as bad."""
        free = set()
        for index, event in enumerate(stream):
            others = self.samples.otherwise(event) if isinstance(event, Data) else []
            changed = ([*stream[:index], other, *stream[index + 1 :]] for other in others)
            if others and all(is_bad(other) for other in changed):
                free.add(index)
        return frozenset(free)
