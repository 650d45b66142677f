"""The size of each row of a batch in bytes, for columns of any type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["row_sizes"]


def row_sizes(batch: pa.RecordBatch) -> np.ndarray:
    """The bytes of the values of each row: text, numbers, and the contents of lists and records.

    >>> row_sizes(pa.record_batch({"a": ["xy", None], "b": [[1, 2, 3], []]})).tolist()
    [26, 0]
    """
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        sizes += _sizes(column)
    return sizes


def _sizes(array: pa.Array) -> np.ndarray:
    is_, tp = pa.types, array.type
    if is_.is_dictionary(tp):
        values, indices = _sizes(array.dictionary), array.indices
        found = np.append(values, 0)[pc.fill_null(indices, len(values)).to_numpy()]
        return np.asarray(found)
    if is_.is_struct(tp):
        return np.asarray(sum(map(_sizes, array.flatten()), _none(array)))
    if is_.is_list(tp) or is_.is_large_list(tp) or is_.is_map(tp):
        return _sizes_of_lists(array)
    if is_.is_null(tp):
        return _none(array)
    try:
        return np.where(array.is_valid(), tp.bit_width // 8, 0)
    except ValueError:  # of variable width: text or bytes
        lengths = pc.binary_length(array).fill_null(0)
        return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _sizes_of_lists(array: pa.Array) -> np.ndarray:
    # A slice has the values of the whole array; its offsets select its own.
    items = (
        pa.StructArray.from_arrays([array.keys, array.items], ["k", "v"])
        if pa.types.is_map(array.type)
        else array.values
    )
    until = np.append(0, np.cumsum(_sizes(items)))
    offsets = array.offsets.to_numpy()
    return np.asarray(np.diff(until[offsets]))


def _none(array: pa.Array) -> np.ndarray:
    return np.zeros(len(array), np.int64)
