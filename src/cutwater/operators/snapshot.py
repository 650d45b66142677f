"""Forms: the state of an operator as a value of a type, so that it can be encoded.

An operator's state is whatever makes its step quick; its form says what of it is kept. Each
operator that keeps something has its form beside it, made for the types of its stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Form", "counter_of", "many_of", "pairs_of", "row_of"]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Form:
    """How a state that is not blank, at the end of an epoch, becomes a value and comes back.

    >>> held = Form(list[int], freeze=sorted, thaw=frozenset)
    >>> held.thaw(held.freeze(frozenset([2, 1])))
    frozenset({1, 2})
    """

    type: Any
    """The type of what is kept."""
    freeze: Callable[[Any], Any] = _same
    """``state -> what is kept``."""
    thaw: Callable[[Any], Any] = _same
    """``what is kept -> state``."""


def row_of(*types: Any) -> Any:
    """The type of a tuple with these types in it.

    >>> row_of(int, str)
    tuple[int, str]
    """
    return tuple.__class_getitem__(types)


def many_of(tp: Any) -> Any:
    """The type of a tuple of any length.

    >>> many_of(int)
    tuple[int, ...]
    """
    return tuple[tp, ...]


def pairs_of(time: Any, value: Any) -> Any:
    """The type of times with their values, in order."""
    return many_of(row_of(time, value))


def counter_of(value: Any) -> Any:
    """The type of how often each value occurs."""
    return dict if value is Any else Counter[value]
