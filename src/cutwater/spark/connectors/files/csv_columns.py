"""Decodes plain CSV by column: numbers and text without quotes, parsed by Arrow.

All other CSV is left to the row-by-row reader, which can say what is wrong with a row. Both agree
on everything that is plain: an integer counts as plain only in its canonical form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from cutwater.spark.exchange.arrow import records_in
from cutwater.spark.exchange.columns import Records
from cutwater.vectors import Layout

__all__ = ["PlainRows", "plain_layout", "plain_rows", "records_of"]

_FLOAT = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$"
_ARROW = {int: pa.int64(), float: pa.float64()}


def plain_layout(tp: Any) -> Layout | None:
    """The columns of records that Arrow may parse; None if a field has another type."""
    layout = Layout.of(tp)
    is_plain = layout.is_record and set(layout.declared.values()) <= {int, float, str}
    return layout if is_plain and not hasattr(tp, "__post_init__") else None


class PlainRows(Sequence[bytes]):
    """Lines that are not split yet."""

    def __init__(self, data: bytes, starts: np.ndarray) -> None:
        self.data = data
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: Any) -> Any:
        return self._lines[index]

    @cached_property
    def _lines(self) -> list[bytes]:
        return self.data.removesuffix(b"\n").split(b"\n")


def plain_rows(data: bytes, run_bytes: int) -> Iterator[tuple[PlainRows, np.ndarray]] | None:
    """Lines, about `run_bytes` at a time, and the offset of each; None if they are not plain."""
    if b'"' in data or b"\r" in data or b"\n\n" in data or data.startswith(b"\n"):
        return None
    return _split(data, run_bytes)


def _split(data: bytes, run_bytes: int) -> Iterator[tuple[PlainRows, np.ndarray]]:
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin + run_bytes - 1) + 1 or len(data)
        part = data[begin:end]
        ends = np.flatnonzero(np.frombuffer(part, np.uint8) == ord("\n")) + 1
        starts = np.concatenate([[0], ends[ends < len(part)]])
        yield PlainRows(part, starts), starts + begin
        begin = end


def records_of(
    rows: PlainRows, layout: Layout, names: Sequence[str], delimiter: str
) -> Records | None:
    """The records of lines whose columns have these names; None if a value is not plain."""
    try:
        table = csv.read_csv(
            pa.py_buffer(rows.data),
            csv.ReadOptions(use_threads=False, block_size=len(rows.data) + 1, column_names=names),
            csv.ParseOptions(delimiter=delimiter, quote_char=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[],
                include_columns=names,
            ),
        )
        if len(table) != len(rows):
            return None
        arrays = [_typed(table[name].combine_chunks(), layout.declared[name]) for name in names]
    except pa.ArrowInvalid:
        return None
    if any(array is None for array in arrays):
        return None
    by_name = dict(zip(names, arrays, strict=True))
    return records_in(layout, [by_name[name] for name in layout.columns], "CSV")


def _typed(texts: pa.Array, tp: type) -> pa.Array | None:
    if tp is str:
        return texts
    values = texts.cast(_ARROW[tp])
    is_plain = (
        values.cast(pa.string()).equals(texts)
        if tp is int
        else pc.all(pc.match_substring_regex(texts, _FLOAT)).as_py() is not False
    )
    return values if is_plain else None
