"""Which types of times are totally ordered, and which durations can be added to them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from cutwater.annotations import members, union_of

__all__ = ["has_predecessors", "is_length", "is_total", "length_in_words", "time_of_bounds"]

_Kind = tuple[tuple[type, ...], str]

# Types that compare with one another, and what a duration between such times is.
_KINDS: tuple[_Kind, ...] = (
    ((int, float, Decimal), "a number"),
    ((str,), ""),
    ((dt.datetime,), "a timedelta"),
    ((dt.date,), "a timedelta of whole days"),
    ((dt.timedelta,), "a timedelta"),
)
_SAMPLES = (0, 0.0, Decimal(0), dt.datetime(2000, 1, 1), dt.date(2000, 1, 1), dt.timedelta())


def _kind_of(tp: Any) -> _Kind | None:
    """The kind that all members of a time type belong to; None if there is none."""
    kinds = {
        next((kind for kind in _KINDS if isinstance(m, type) and issubclass(m, kind[0])), None)
        for m in members(tp)
    }
    return kinds.pop() if len(kinds) == 1 else None


def is_total(tp: Any) -> bool:
    """Is this type of times known to be totally ordered?

    >>> is_total(int | float), is_total(int | str), is_total(Any)
    (True, False, False)
    """
    return _kind_of(tp) is not None


def has_predecessors(tp: Any) -> bool:
    """Has each time of this type a predecessor? Unknown types are assumed to.

    >>> has_predecessors(dt.date), has_predecessors(str), has_predecessors(Any)
    (True, False, True)
    """
    kind = _kind_of(tp)
    return tp is Any or bool(kind and kind[1] and bool not in members(tp))


def length_in_words(tp: Any) -> str:
    """What a duration between such times is, as a phrase.

    >>> length_in_words(dt.datetime)
    'a timedelta'
    """
    kind = _kind_of(tp)
    return kind[1] if kind else "a number or a timedelta"


def is_length(length: Any, time: Any, *, least: int | None) -> bool:
    """Can this be added to such times, and is it at least zero (positive if `least` is None)?

    >>> is_length(10, int, least=None), is_length(10, dt.datetime, least=None)
    (True, False)
    >>> is_length(0, int, least=None), is_length(0, int, least=0)
    (False, True)
    """
    try:
        zero = length * 0
        is_long_enough = length >= zero if least == 0 else length > zero
        return bool(is_long_enough) and all(_can_add(m, length) for m in members(time))
    except TypeError:
        return False


def _can_add(time: Any, length: Any) -> bool:
    """Can the length be added to times of this type without losing any of it?"""
    for sample in _SAMPLES:
        if isinstance(time, type) and issubclass(time, type(sample)):
            sum_is_a_time = isinstance(sample + length, (type(sample), int, float, Decimal))
            return sum_is_a_time and (type(sample) is not dt.date or length == _whole_days(length))
    return True


def _whole_days(length: dt.timedelta) -> dt.timedelta:
    return dt.timedelta(days=length.days)


def time_of_bounds(window: Any, time: Any) -> Any:
    """The type of window bounds: fractional over whole numbers if the lengths are fractional."""
    lengths = [getattr(window, name, None) for name in ("size", "every", "gap", "offset")]
    fractions = [type(length) for length in lengths if isinstance(length, (float, Decimal))]
    return union_of([time, *fractions]) if int in members(time) else time
