"""Snapshot codecs: how an operator's state becomes a value of a known type that can be encoded.

An operator's state is whatever makes its step fast; its codec defines what a snapshot contains.
Each stateful operator has its snapshot codec beside it, made for the types of its stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["SnapshotCodec", "counter_of", "many_of", "pairs_of", "row_of"]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class SnapshotCodec:
    """How a state that is not blank is frozen into a value at the end of an epoch, and thawed.

    >>> held = SnapshotCodec(list[int], freeze=sorted, thaw=frozenset)
    >>> held.thaw(held.freeze(frozenset([2, 1])))
    frozenset({1, 2})
    """

    type: Any
    """The type of the frozen value."""
    freeze: Callable[[Any], Any] = _same
    """``state -> frozen value``."""
    thaw: Callable[[Any], Any] = _same
    """``frozen value -> state``."""


def row_of(*types: Any) -> Any:
    """The type of a tuple with elements of these types.

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
    """The type of a tuple of ``(time, value)`` pairs."""
    return many_of(row_of(time, value))


def counter_of(value: Any) -> Any:
    """The type of a count for each value."""
    return dict if value is Any else Counter[value]
