"""The states of many keys of one step as columns, for vectorised steps.

A key has a slot, through which its row is read and written, for as long as the key exists. A table
that was read from the log but not requested in this process stays undecoded, since only the step
knows how to decode its objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from cutwater.spark.state import changelog
from cutwater.spark.state.changelog import ROW_COST, EntryWriter, RowsPart, cuts

__all__ = [
    "OBJECT_OVERHEAD",
    "TABLE_KEY_OVERHEAD",
    "Array",
    "ColumnKind",
    "Convert",
    "Slots",
    "StateColumn",
    "StateColumns",
    "StateKindChanged",
    "StateTable",
    "UnopenedTable",
]

ColumnKind = Literal["int", "float", "bool", "object"]
_DTYPES: dict[str, str] = {"int": "<i8", "float": "<f8", "bool": "?", "object": "O"}
_WIDTHS = {"int": 8, "float": 8, "bool": 1, "object": 0}

TABLE_KEY_OVERHEAD = 125
"""Bytes of memory per key beyond the key and its row: two objects, and an entry in a dictionary.
Measured: 110 to 145."""
OBJECT_OVERHEAD = 60
"""Bytes of memory per object beyond its encoded bytes: a guess."""
_SMALLEST = 64
_NOWHERE = -1

Array = npt.NDArray[Any]
Slots = npt.NDArray[np.int64]


class StateKindChanged(Exception):
    """The stored states of a step are of another kind than the requested ones."""


@dataclass(frozen=True)
class StateColumn:
    """The kind of a column; for objects also how a list of them is encoded and decoded."""

    kind: ColumnKind
    encode: Callable[[list[Any]], bytes] | None = None
    decode: Callable[[bytes], list[Any]] | None = None

    def __post_init__(self) -> None:
        if (self.kind == "object") != (self.encode is not None and self.decode is not None):
            raise ValueError("a column of objects, and no other, has encode and decode")

    def to_bytes(self, values: Array) -> bytes:
        """Encode values."""
        if self.encode is not None:
            return self.encode(values.tolist())
        return values.astype(_DTYPES[self.kind], copy=False).tobytes()

    def from_bytes(self, data: bytes) -> Array:
        """Decode values."""
        if self.decode is not None:
            return _array(self.kind, self.decode(data))
        return np.frombuffer(data, _DTYPES[self.kind])


StateColumns = Mapping[str, StateColumn]
Convert = Callable[[dict[str, Any]], dict[str, list[Any]]]
"""Converts the stored columns, as lists by name, to the requested ones. An object column that is
not requested under its name is passed as the stored bytes."""


class StateTable:
    """The rows of a step in one bucket, which of them changed, and the log entry of each."""

    def __init__(self, step: str, columns: StateColumns, convert: Convert | None = None) -> None:
        self._step = step
        self._columns, self._convert = columns, convert
        self._values = {name: _blank(column.kind, 0) for name, column in columns.items()}
        self._slots: dict[bytes, int] = {}
        self._keys = np.empty(0, object)
        self._sizes = np.empty(0, np.int64)
        """The bytes of each row; 0: no row."""
        self._entry_of = np.empty(0, np.int64)
        self._free: list[int] = []
        self._end = 0
        self._touched: list[Slots] = []
        self._removed: dict[bytes, None] = {}
        self.live = 0
        """The bytes of keys and rows."""

    def __len__(self) -> int:
        return len(self._slots)

    # --- for steps -----------------------------------------------------------------------------

    def slots(self, keys: Sequence[bytes]) -> Slots:
        """The slot of each key; -1: none."""
        return np.fromiter(map(self._slots.get, keys, repeat(_NOWHERE)), np.int64, len(keys))

    def add(self, keys: Sequence[bytes]) -> Slots:
        """Allot slots to distinct keys without one; raises `ValueError` if a key has a slot."""
        slots = self._allot(keys)
        self._touched.append(slots)
        return slots

    def read(self, slots: Slots) -> dict[str, Array]:
        """The columns of some rows."""
        return {name: values[slots] for name, values in self._values.items()}

    def write(self, slots: Slots, columns: Mapping[str, Any]) -> None:
        """Change some or all columns of some rows."""
        for name, values in columns.items():
            is_object = self._columns[name].kind == "object"
            self._values[name][slots] = _array("object", values) if is_object else values
        self._touched.append(np.array(slots, np.int64))

    def remove(self, slots: Slots) -> None:
        """Delete keys with their rows; their slots may be reused."""
        was_written = slots[self._entry_of[slots] != _NOWHERE]
        self._removed.update(dict.fromkeys(self.keys_of(was_written)))
        self._drop(self.keys_of(slots), slots)

    def keys_of(self, slots: Slots) -> list[bytes]:
        """The keys in some slots."""
        found: list[bytes] = self._keys[slots].tolist()
        return found

    def all(self) -> Slots:
        """The slots of all keys."""
        return np.fromiter(self._slots.values(), np.int64, len(self._slots))

    # --- for the changelog ---------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """The approximate memory in bytes."""
        arrays = [*self._values.values(), self._keys, self._sizes, self._entry_of]
        per_key = TABLE_KEY_OVERHEAD + OBJECT_OVERHEAD * self._has_objects - self._width
        return self.live + per_key * len(self) + sum(array.nbytes for array in arrays)

    @property
    def _width(self) -> int:
        """The bytes of a row without its objects."""
        return sum(_WIDTHS[column.kind] for column in self._columns.values())

    @property
    def _has_objects(self) -> bool:
        return any(column.kind == "object" for column in self._columns.values())

    @property
    def has_changes(self) -> bool:
        """Is there anything to write?"""
        return any(map(len, self._touched)) or bool(self._removed)

    @property
    def changed_bytes(self) -> int:
        """The approximate number of bytes to write."""
        removed = sum(map(len, self._removed)) + ROW_COST * len(self._removed)
        return removed + int(self._sizes[self._changed()].sum())

    def fit(self, columns: StateColumns, convert: Convert | None) -> None:
        """Switch to these columns; raises `StateKindChanged` if `convert` is needed but None."""
        if _kinds(self._columns) != _kinds(columns):
            slots, size = self.all(), len(self._keys)
            rows = {name: values[slots].tolist() for name, values in self._values.items()}
            converted = self._converted(rows, columns, convert)
            self._values = {name: _blank(column.kind, size) for name, column in columns.items()}
            for name, values in converted.items():
                self._values[name][slots] = values
        self._columns, self._convert = columns, convert

    def apply(self, part: RowsPart, sequence: int) -> None:
        """Apply a part of an entry."""
        gone = [key for key in part.removed if key in self._slots]
        self._drop(gone, self.slots(gone))
        if not part.keys:
            return
        columns, keys = self._read_columns(part), part.keys
        if None in keys:
            current = [number for number, key in enumerate(keys) if key is not None]
            keys = [keys[number] for number in current]
            columns = {name: values[current] for name, values in columns.items()}
        self._take(cast(list[bytes], keys), columns, sequence, _bytes_per_object(part))

    def keep(self, part: RowsPart, sequence: int) -> None:
        """Mark what is current in an entry to be written again: the entry will be removed."""
        slots = self.slots([key for key in part.keys if key is not None])
        slots = slots[slots != _NOWHERE]
        self._touched.append(slots[self._entry_of[slots] == sequence])

    def keep_all(self) -> None:
        """Mark everything to be written again."""
        self._touched.append(self.all())

    def write_to(self, writer: EntryWriter) -> None:
        """Write what changed to entries."""
        if not self.has_changes:
            return
        self._write_removed(writer, list(self._removed))
        slots = self._changed()
        sizes = self._sizes[slots]
        for cut, _ in cuts(int(sizes.sum()), sizes, len(slots)):
            self._write_rows(writer, slots[cut])
        self._touched, self._removed = [], {}

    def _write_removed(self, writer: EntryWriter, keys: list[bytes]) -> None:
        sizes = [len(key) + ROW_COST for key in keys]
        for cut, size in cuts(sum(sizes), sizes, len(keys)):
            writer.add(RowsPart(self._step, [], {}, keys[cut]), size)

    def _write_rows(self, writer: EntryWriter, slots: Slots) -> None:
        part = self._part(slots)
        if (
            part.size > 2 * changelog.ENTRY_BYTES and len(slots) > 1
        ):  # objects have grown since they were measured
            self._write_rows(writer, slots[: len(slots) // 2])
            self._write_rows(writer, slots[len(slots) // 2 :])
            return
        self._entry_of[slots] = writer.add(part, part.size)
        if self._has_objects:
            self._measure(slots, _bytes_per_object(part))

    def _part(self, slots: Slots) -> RowsPart:
        columns: dict[str, tuple[str, bytes]] = {
            name: (column.kind, column.to_bytes(self._values[name][slots]))
            for name, column in self._columns.items()
        }
        return RowsPart(self._step, [*self.keys_of(slots)], columns, [])

    def _changed(self) -> Slots:
        """The distinct slots of rows to write."""
        slots = np.sort(np.concatenate([np.empty(0, np.int64), *self._touched]))
        is_first = np.ones(len(slots), bool)
        is_first[1:] = slots[1:] != slots[:-1]
        current: Slots = slots[is_first & (self._sizes[slots] > 0)]
        self._touched = [current]
        return current

    # --- slots ---------------------------------------------------------------------------------

    def _take(
        self, keys: list[bytes], columns: dict[str, Array], sequence: int, object_bytes: int
    ) -> None:
        slots = self.slots(keys)
        is_new = slots == _NOWHERE
        if is_new.any():
            slots[is_new] = self._allot([keys[number] for number in np.flatnonzero(is_new)])
        for name, values in columns.items():
            self._values[name][slots] = values
        self._entry_of[slots] = sequence
        if self._has_objects:
            self._measure(slots, object_bytes)

    def _allot(self, keys: Sequence[bytes]) -> Slots:
        count = len(keys)
        reused = self._free[max(0, len(self._free) - count) :]
        del self._free[len(self._free) - len(reused) :]
        fresh = count - len(reused)
        self._grow(self._end + fresh)
        slots = np.array([*reused, *range(self._end, self._end + fresh)], np.int64)
        self._end += fresh
        before = len(self._slots)
        self._slots.update(zip(keys, slots.tolist(), strict=True))
        if len(self._slots) != before + count:
            raise ValueError("a key that has a slot cannot be added")
        self._keys[slots] = np.fromiter(keys, object, count)
        for name, values in self._values.items():
            values[slots] = None if self._columns[name].kind == "object" else 0
        self._entry_of[slots] = _NOWHERE
        self._measure(slots, 0)
        return slots

    def _grow(self, size: int) -> None:
        if size <= len(self._keys):
            return
        size = max(_SMALLEST, size, 2 * len(self._keys))
        self._keys = _longer(self._keys, size)
        self._sizes, self._entry_of = _longer(self._sizes, size), _longer(self._entry_of, size)
        self._values = {name: _longer(values, size) for name, values in self._values.items()}

    def _measure(self, slots: Slots, object_bytes: int) -> None:
        """Record the sizes of rows."""
        lengths = np.fromiter(map(len, self.keys_of(slots)), np.int64, len(slots))
        sizes = lengths + (ROW_COST + self._width + object_bytes)
        self.live += int(sizes.sum() - self._sizes[slots].sum())
        self._sizes[slots] = sizes

    def _drop(self, keys: list[bytes], slots: Slots) -> None:
        for key in keys:
            del self._slots[key]
        self.live -= int(self._sizes[slots].sum())
        self._sizes[slots] = 0
        self._entry_of[slots] = _NOWHERE
        self._keys[slots] = None
        for name, column in self._columns.items():
            if column.kind == "object":
                self._values[name][slots] = None
        self._free.extend(slots.tolist())

    # --- stored columns ------------------------------------------------------------------------

    def _read_columns(self, part: RowsPart) -> dict[str, Array]:
        if {name: kind for name, (kind, _) in part.columns.items()} == _kinds(self._columns):
            data = ((name, data) for name, (_, data) in part.columns.items())
            return {name: self._columns[name].from_bytes(values) for name, values in data}
        raw = {name: self._raw(name, kind, data) for name, (kind, data) in part.columns.items()}
        return self._converted(raw, self._columns, self._convert)

    def _raw(self, name: str, kind: str, data: bytes) -> Any:
        if kind != "object":
            return np.frombuffer(data, _DTYPES[kind]).tolist()
        wanted = self._columns.get(name)
        return wanted.decode(data) if wanted and wanted.decode else data

    def _converted(
        self, rows: dict[str, Any], columns: StateColumns, convert: Convert | None
    ) -> dict[str, Array]:
        if convert is None:
            raise StateKindChanged(
                f"step '{self._step}' keeps columns {sorted(rows)}, not {sorted(columns)}"
            )
        converted = convert(rows)
        return {name: _array(column.kind, converted[name]) for name, column in columns.items()}


class UnopenedTable:
    """A table as it was read, not decoded yet: its step has not requested it."""

    def __init__(self, step: str) -> None:
        self._step = step
        self._parts: dict[int, list[RowsPart]] = {}
        self._rows: dict[int, int] = {}
        """The number of current keys of each entry."""
        self._entry_of: dict[bytes, int] = {}
        self._kept: list[RowsPart] = []
        self.live = 0
        """The bytes of parts that have current keys."""

    def __len__(self) -> int:
        return len(self._entry_of)

    @property
    def memory(self) -> int:
        """The approximate memory in bytes."""
        return self.live + TABLE_KEY_OVERHEAD * len(self)

    @property
    def has_changes(self) -> bool:
        """Is there anything to write? Rows do not change here, but compaction may move parts."""
        return bool(self._kept)

    @property
    def changed_bytes(self) -> int:
        """The approximate number of bytes to write."""
        return sum(part.size for part in self._kept)

    def open(self, columns: StateColumns, convert: Convert | None) -> StateTable:
        """The decoded table, with these columns."""
        table = StateTable(self._step, columns, convert)
        for sequence in sorted(self._parts):
            for part in self._parts[sequence]:
                table.apply(self._current(part, sequence), sequence)
        return table

    def current(self) -> Iterator[RowsPart]:
        """The parts, with current keys only."""
        for sequence, parts in sorted(self._parts.items()):
            yield from (self._current(part, sequence) for part in parts)

    def apply(self, part: RowsPart, sequence: int) -> None:
        """Apply a part of an entry."""
        for key in part.removed:
            self._leave(self._entry_of.pop(key, None))
        self._hold(part, sequence)

    def keep(self, part: RowsPart, sequence: int) -> None:
        """Mark what is current in an entry to be written again: the entry will be removed."""
        current = self._current(part, sequence)
        if any(key is not None for key in current.keys):
            self._kept.append(current)

    def keep_all(self) -> None:
        """Mark everything to be written again."""
        for sequence, parts in self._parts.items():
            for part in parts:
                self.keep(part, sequence)

    def write_to(self, writer: EntryWriter) -> None:
        """Write the marked parts to entries."""
        for part in self._kept:
            self._hold(part, writer.add(part, part.size))
        self._kept = []

    def _hold(self, part: RowsPart, sequence: int) -> None:
        keys = [key for key in part.keys if key is not None]
        if not keys:
            return
        self._parts.setdefault(sequence, []).append(part)
        self.live += part.size
        self._rows[sequence] = self._rows.get(sequence, 0) + len(keys)
        for key in keys:
            self._leave(self._entry_of.get(key))
            self._entry_of[key] = sequence

    def _leave(self, sequence: int | None) -> None:
        """Count one current key less in an entry; drop its parts if none is left."""
        if sequence is None:
            return
        self._rows[sequence] -= 1
        if not self._rows[sequence]:
            del self._rows[sequence]
            self.live -= sum(part.size for part in self._parts.pop(sequence))

    def _current(self, part: RowsPart, sequence: int) -> RowsPart:
        """The part, with all keys masked that are not current."""
        keys = [
            key if key is not None and self._entry_of.get(key) == sequence else None
            for key in part.keys
        ]
        return RowsPart(self._step, keys, part.columns, [])


def _kinds(columns: StateColumns) -> dict[str, str]:
    return {name: column.kind for name, column in columns.items()}


def _bytes_per_object(part: RowsPart) -> int:
    all_bytes = sum(len(data) for kind, data in part.columns.values() if kind == "object")
    return all_bytes // max(1, len(part.keys))


def _blank(kind: str, size: int) -> Array:
    return np.empty(size, object) if kind == "object" else np.zeros(size, _DTYPES[kind])


def _array(kind: str, values: Iterable[Any]) -> Array:
    return np.fromiter(values, _DTYPES[kind])


def _longer(array: Array, size: int) -> Array:
    longer = np.empty(size, object) if array.dtype == object else np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
