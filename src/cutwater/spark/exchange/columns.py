"""Values held as columns, and converted to objects only on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from cutwater.codec import codec_of
from cutwater.vectors import Layout
from cutwater.vectors.layouts import Columns

__all__ = [
    "DictionaryEncoding",
    "RecordCodec",
    "Records",
    "joined_values",
    "number_keys",
    "objects",
    "record_codec",
]

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[int, list[bytes]]).decode
_DTYPES = {"int": "<i8", "float": "<f8", "bool": "?"}
_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True)
class DictionaryEncoding:
    """A dictionary-encoded column: each distinct value once, and per row the index of its value."""

    values: list[Any]
    of: np.ndarray


class Records(Sequence[Any]):
    """Many values of a type, with one column per field."""

    __slots__ = ("_values", "columns", "layout", "numberings")

    def __init__(
        self, layout: Layout, columns: Columns, numberings: Mapping[str, DictionaryEncoding] = _NONE
    ) -> None:
        self.layout = layout
        self.columns = columns
        self.numberings = numberings
        """Of the columns that were dictionary-encoded when they were read."""
        self._values: list[Any] | None = None

    @staticmethod
    def of(layout: Layout, values: Sequence[Any]) -> Records:
        """The columns of values."""
        if isinstance(values, Records) and values.layout.type is layout.type:
            return values
        return Records(layout, layout.of_values(values))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Records(self.layout, {name: c[index] for name, c in self.columns.items()})
        return self.values[index]

    @property
    def values(self) -> list[Any]:
        """The values themselves; made on first access, then cached."""
        if self._values is None:
            self._values = self.layout.to_values(self.columns)
        return self._values

    def take(self, indices: Any) -> Records:
        """The values at these indices."""
        rows = np.asarray(indices, np.intp)
        return Records(self.layout, {name: c[rows] for name, c in self.columns.items()})

    def fields(self, names: Sequence[str]) -> list[Any] | None:
        """One field of each value, or several as a tuple; None if not all of them are columns."""
        if not names or not all(name in self.columns for name in names):
            return None
        columns = [self.columns[name].tolist() for name in names]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def joined_values(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The concatenation of values; `Records` if all parts are, of the same type."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Records) and all(
        isinstance(part, Records) and part.layout.type is first.layout.type for part in parts
    ):
        columns = [part.columns for part in parts if isinstance(part, Records)]
        names = first.columns
        return Records(first.layout, {n: np.concatenate([c[n] for c in columns]) for n in names})
    return [value for part in parts for value in part]


class RecordCodec:
    """Encodes and decodes many values of a type by column; numbers as little-endian arrays."""

    def __init__(self, tp: Any) -> None:
        self.layout = Layout.of(tp)
        self._codings = {
            name: _coding(kind, self.layout.declared[name])
            for name, kind in self.layout.columns.items()
        }

    def encode(self, records: Records) -> bytes:
        """The bytes of many values."""
        columns = records.columns
        return _pack((len(records), [e(columns[n]) for n, (e, _) in self._codings.items()]))

    def decode(self, data: bytes) -> Records:
        """The values that bytes stand for."""
        _, parts = _unpack(data)
        decoders = zip(self._codings.items(), parts, strict=True)
        return Records(self.layout, {n: decode(part) for (n, (_, decode)), part in decoders})


@lru_cache(maxsize=512)
def record_codec(tp: Any) -> RecordCodec:
    """The codec for many values of a type; cached, since making one is expensive."""
    return RecordCodec(tp)


_Coding = tuple[Callable[[np.ndarray], bytes], Callable[[bytes], np.ndarray]]


def _coding(kind: str, declared: Any) -> _Coding:
    if kind == "object":
        codec = codec_of(list[declared])
        return (
            lambda column: codec.encode(column.tolist()),
            lambda data: objects(codec.decode(data)),
        )
    dtype = _DTYPES[kind]
    return (
        lambda column: column.astype(dtype, copy=False).tobytes(),
        lambda data: np.frombuffer(data, dtype),
    )


def objects(values: Iterable[Any]) -> np.ndarray:
    """An array of objects."""
    found = list(values)
    return np.fromiter(found, object, count=len(found))


def number_keys(keys: list[bytes]) -> tuple[list[bytes], np.ndarray]:
    """The distinct keys in order of appearance, and for each key its index among these."""
    found = dict.fromkeys(keys)
    if len(found) == len(keys):
        return keys, np.arange(len(keys))
    numbers = dict(zip(found, range(len(found)), strict=True))
    return list(found), np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))
