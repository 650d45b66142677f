"""Times: hashable values whose ``<=`` is a partial order.

Numbers, strings and datetimes are times already. `Product` pairs two times, `Left` and
`Right` keep two sets of times apart (P4's disjoint sum), and your own class is a time as
soon as it is hashable and has ``<=``. `check_order` checks that it is a partial order.

Inside nested loops a time is ``Product(t, rounds)``: `rounds` is a tuple with a counter for each
loop, outermost first, and tuples are ordered lexicographically.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, Self, runtime_checkable

from cutwater.errors import InputError, Problem

__all__ = [
    "Antichain",
    "Left",
    "Product",
    "Right",
    "Time",
    "check_order",
    "in_rounds",
    "just_before",
    "maximal",
    "minimal",
    "rounds_of",
]


@runtime_checkable
class Time(Protocol):
    """Any hashable value whose ``<=`` is a partial order."""

    def __hash__(self) -> int: ...
    def __le__(self, other: Any, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Product:
    """A pair of times, ordered component by component.

    >>> Product(1, 5) <= Product(2, 5)
    True
    >>> Product(1, 5) <= Product(2, 0), Product(2, 0) <= Product(1, 5)
    (False, False)
    """

    first: Any
    second: Any

    def __le__(self, other: object) -> bool:
        if not isinstance(other, Product):
            return NotImplemented
        return bool(self.first <= other.first and self.second <= other.second)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Product):
            return NotImplemented
        return self <= other and self != other


def rounds_of(time: Any) -> tuple[int, ...]:
    """The loop counters of a time, outermost first; empty outside of loops.

    >>> rounds_of(Product(7, (2, 0))), rounds_of(7), rounds_of(Product(7, 2))
    ((2, 0), (), ())
    """
    if isinstance(time, Product) and isinstance(time.second, tuple):
        return time.second
    return ()


def in_rounds(time: Any, rounds: tuple[int, ...]) -> Any:
    """The time with its loop counters replaced by these; with none, the time outside of loops.

    Counters are compared lexicographically: the next round of the outer loop comes after every
    round of the inner one.

    >>> in_rounds(7, (2, 0)), in_rounds(Product(7, (2, 0)), ())
    (Product(first=7, second=(2, 0)), 7)
    >>> in_rounds(7, (0, 9)) <= in_rounds(7, (1, 0)), in_rounds(7, (0, 9)) <= in_rounds(8, (0, 8))
    (True, False)
    """
    outside = time.first if rounds_of(time) else time
    return Product(outside, rounds) if rounds else outside


@dataclass(frozen=True, slots=True)
class _Side:
    time: Any

    def __le__(self, other: object) -> bool:
        if not isinstance(other, _Side):
            return NotImplemented
        return type(self) is type(other) and bool(self.time <= other.time)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, _Side):
            return NotImplemented
        return self <= other and self != other


@dataclass(frozen=True, slots=True)
class Left(_Side):
    """A time of the first of two inputs (P4's ``Inl``); unrelated to every `Right`.

    >>> Left(1) <= Left(2), Left(1) <= Right(2)
    (True, False)
    """

    @property
    def opposite(self) -> Right:
        """The same time on the other side."""
        return Right(self.time)


@dataclass(frozen=True, slots=True)
class Right(_Side):
    """A time of the second of two inputs (P4's ``Inr``); unrelated to every `Left`."""

    @property
    def opposite(self) -> Left:
        """The same time on the other side."""
        return Left(self.time)


class Antichain:
    """A set of pairwise incomparable times: the minimal ones of those inserted.

    Immutable: `insert` returns an antichain that includes the time, or the same object if nothing
    changes.

    >>> a = Antichain().insert(2)
    >>> a.insert(3) is a
    True
    >>> a.less_equal(2), a.less_equal(3), a.less_equal(1), Antichain().less_equal(0)
    (True, True, False, False)
    >>> Antichain([Product(1, 5), Product(2, 0), Product(3, 3)])
    Antichain([Product(first=1, second=5), Product(first=2, second=0)])
    """

    __slots__ = ("_elements",)

    def __init__(self, times: Iterable[Any] = ()) -> None:
        self._elements: tuple[Any, ...] = tuple(minimal(times))

    def insert(self, time: Any) -> Self:
        """The antichain that also covers `time`."""
        if self.less_equal(time):
            return self
        return type(self)((*self._elements, time))

    def less_equal(self, time: Any) -> bool:
        """Is some element ``<=`` the time?"""
        return any(element <= time for element in self._elements)

    def less_than(self, time: Any) -> bool:
        """Is some element ``<=`` the time and not equal to it?"""
        return any(element <= time and element != time for element in self._elements)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Antichain):
            return NotImplemented
        return frozenset(self._elements) == frozenset(other._elements)

    def __hash__(self) -> int:
        return hash(frozenset(self._elements))

    def __repr__(self) -> str:
        return f"Antichain({list(self._elements)!r})"


def maximal(times: Iterable[Any]) -> list[Any]:
    """The distinct maximal times, in order of first occurrence (P4's ``maximal_antichain_list``).

    >>> maximal([1, 3, 2, 3])
    [3]
    >>> maximal([Left(1), Right(0), Left(2)])
    [Right(time=0), Left(time=2)]
    """
    found: list[Any] = []
    for time in times:
        if not any(time <= other for other in found):
            found = [other for other in found if not other <= time]
            found.append(time)
    return found


def minimal(times: Iterable[Any]) -> list[Any]:
    """The distinct minimal times, in order of first occurrence.

    >>> minimal([3, 1, 2, 1])
    [1]
    """
    found: list[Any] = []
    for time in times:
        if not any(other <= time for other in found):
            found = [other for other in found if not time <= other]
            found.append(time)
    return found


def check_order(samples: Iterable[Any]) -> None:
    """Raise `InputError` if ``<=`` is not a partial order on the samples.

    Checks every triple, so pass tens of samples, not thousands. Times must also be hashable, and
    equal times must have equal hashes, since times are kept in sets.

    >>> check_order([Product(a, b) for a in range(3) for b in range(3)])
    >>> check_order([1.0, float("nan")])
    Traceback (most recent call last):
    ...
    cutwater.errors.InputError: [not-an-order] nan is not <= itself; an order is reflexive
      hint: a value that is not equal to itself cannot be a time
    """
    times = list(samples)
    for a in times:
        _check_hashable(a)
        if not _is_below(a, a):
            raise _broken(
                f"{a!r} is not <= itself; an order is reflexive",
                "a value that is not equal to itself cannot be a time",
            )
    above = [[_is_below(a, b) for b in times] for a in times]
    for i, a in enumerate(times):
        for j, b in enumerate(times):
            _check_pair(a, b, above[i][j] and above[j][i])
            if not above[i][j]:
                continue
            for k, c in enumerate(times):
                if above[j][k] and not above[i][k]:
                    raise _broken(
                        f"{a!r} <= {b!r} and {b!r} <= {c!r}, but not {a!r} <= {c!r}; "
                        "an order is transitive",
                        "define <= so that it holds along every chain",
                    )


def _check_hashable(time: Any) -> None:
    try:
        hash(time)
    except TypeError:
        raise _broken(
            f"{time!r} cannot be hashed; times are kept in sets",
            "define __hash__ from what __eq__ compares",
        ) from None


def _is_below(a: Any, b: Any) -> bool:
    try:
        return bool(a <= b)
    except TypeError:
        raise _broken(
            f"{a!r} and {b!r} cannot be compared by <=; unrelated times are not <= each other",
            "return False where neither comes before the other",
        ) from None


def _check_pair(a: Any, b: Any, both_ways: bool) -> None:
    if both_ways and a != b:
        raise _broken(
            f"{a!r} <= {b!r} and {b!r} <= {a!r}, but they are not equal; an order is antisymmetric",
            "make == compare what <= compares",
        )
    if a == b and not both_ways:
        raise _broken(
            f"{a!r} == {b!r}, but one is not <= the other; an order is reflexive",
            "make == compare what <= compares",
        )
    if a == b and hash(a) != hash(b):
        raise _broken(
            f"{a!r} == {b!r}, but their hashes differ; times are kept in sets",
            "define __hash__ from what __eq__ compares",
        )


def _broken(message: str, hint: str) -> InputError:
    return InputError(Problem("not-an-order", message, hint))


def just_before(time: Any) -> Any:
    """The largest smaller time of the same type.

    Watermarks are inclusive, so "everything before 10 is complete" is ``Watermark(9)`` for ints.
    `InputError` for the smallest time of a type, which has none, and for times of other types.

    >>> just_before(10), just_before(dt.date(2024, 3, 1))
    (9, datetime.date(2024, 2, 29))
    """
    try:
        before = _step_back(time)
        if before < time:
            return before
    except ArithmeticError:  # raised by dates and decimals at their limits
        pass
    raise _no_predecessor(
        f"{time!r} has no {type(time).__name__} before it", "leave this watermark out"
    )


def _step_back(time: Any) -> Any:
    match time:
        case bool():
            pass
        case int():
            return time - 1
        case float():
            return math.nextafter(time, -math.inf)
        case Decimal():
            return time.next_minus()
        case dt.datetime() | dt.timedelta():
            return time - dt.timedelta(microseconds=1)
        case dt.date():
            return time - dt.timedelta(days=1)
    raise _no_predecessor(
        f"{time!r} is a {type(time).__name__}; only numbers, dates, datetimes and durations "
        "have a time just before them",
        "give watermarks as events, or use a number, date or datetime as the time",
    )


def _no_predecessor(message: str, hint: str) -> InputError:
    return InputError(Problem("time-has-no-predecessor", message, hint))
