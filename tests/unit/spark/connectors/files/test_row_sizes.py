"""The bytes of a row, compared with what its values say of themselves."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutwater.spark.connectors.files.row_sizes import row_sizes

TYPES = {
    "text": (pa.string(), st.text(max_size=5)),
    "large": (pa.large_binary(), st.binary(max_size=5)),
    "number": (pa.int32(), st.integers(0, 100)),
    "numbered": (pa.dictionary(pa.int8(), pa.string()), st.text(max_size=5)),
    "list": (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=3), max_size=3)),
    "record": (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.int64()))]),
        st.fixed_dictionaries({"a": st.text(max_size=3), "b": st.lists(st.just(7), max_size=2)}),
    ),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.text(max_size=2), st.just(7), max_size=2).map(lambda d: [*d.items()]),
    ),
}


def size_of(value, number_bytes):
    """What a value takes, by Python's own account."""
    if value is None:
        return 0
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, int):
        return number_bytes
    parts = value.values() if isinstance(value, dict) else value
    return sum(size_of(part, number_bytes) for part in parts)


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=30)
@given(data=st.data())
def test_row_sizes_are_the_sums_of_their_values(kind, data):
    tp, values = TYPES[kind]
    column = data.draw(st.lists(st.none() | values, min_size=1, max_size=6))
    start = data.draw(st.integers(0, len(column) - 1))
    batch = pa.record_batch({"x": pa.array(column, tp), "y": ["ab"] * len(column)})
    wanted = [size_of(value, 4 if kind == "number" else 8) + 2 for value in column]
    assert row_sizes(batch).tolist() == wanted
    assert row_sizes(batch.slice(start, 2)).tolist() == wanted[start : start + 2]
