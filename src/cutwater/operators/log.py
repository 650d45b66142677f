"""An immutable sequence whose append is cheap, for operators that buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["Log"]

_T = TypeVar("_T")


class Log(Generic[_T]):
    """An immutable sequence with constant-time append.

    Buffering n events in tuples copies n²/2 references. A log is a view of the first `size`
    items of a list that may be longer; appending to the longest view extends the list in place,
    appending to any other copies it, so no view ever changes.

    >>> one = Log(["a"])
    >>> two, other = one.append("b"), one.append("c")
    >>> one, two, other
    (Log(['a']), Log(['a', 'b']), Log(['a', 'c']))
    """

    __slots__ = ("_items", "_size")

    def __init__(self, items: Iterable[_T] = ()) -> None:
        self._items = list(items)
        self._size = len(self._items)

    def append(self, item: _T) -> Log[_T]:
        """The log with one more item."""
        items = self._items if len(self._items) == self._size else self._items[: self._size]
        items.append(item)
        longer = Log.__new__(Log)
        longer._items, longer._size = items, self._size + 1
        return longer

    def __iter__(self) -> Iterator[_T]:
        return iter(self._items[: self._size])

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Log) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Log({list(self)!r})"
