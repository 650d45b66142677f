"""Parcels: what is packed comes out again, by address, in the order it was put in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.spark import rows
from cutwater.spark.rows import DATA, ROW_SCHEMA, Outbox, pack, to_columns, unpack

ENTRIES = st.tuples(st.binary(), st.binary(), st.none() | st.binary(), st.binary())


@given(st.lists(ENTRIES))
def test_unpack_of_pack_is_the_identity(entries):
    assert unpack(pack(entries)) == entries


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), ENTRIES, st.booleans())),
    st.integers(1, 60),
)
def test_nothing_is_lost_doubled_or_reordered(sent, parcel_bytes):
    """Whenever full parcels are taken, and however large a parcel may be."""
    usual, rows.PARCEL_BYTES = rows.PARCEL_BYTES, parcel_bytes
    try:
        outbox, parcels = Outbox(), []
        for label, target, entry, is_time_to_take in sent:
            outbox.add(label, target, entry)
            if is_time_to_take:
                parcels += outbox.take_closed()
        parcels += outbox.take_all()
    finally:
        rows.PARCEL_BYTES = usual
    for address in {(label, target) for label, target, _, _ in sent}:
        wanted = [entry for label, target, entry, _ in sent if (label, target) == address]
        bodies = [body for label, target, _, body in parcels if (label, target) == address]
        assert [entry for body in bodies for entry in unpack(body)] == wanted
    assert all(kind == DATA for _, _, kind, _ in parcels)
    assert list(outbox.take_all()) == []


def test_a_parcel_is_closed_when_it_is_full(monkeypatch):
    monkeypatch.setattr(rows, "PARCEL_BYTES", 10)
    outbox = Outbox()
    outbox.add(1, 2, (b"o" * 4, b"k" * 4, None, b"p"))
    assert outbox.take_closed() == []
    outbox.add(1, 2, (b"", b"", None, b"p"))
    assert [parcel[:2] for parcel in outbox.take_closed()] == [(1, 2)]
    assert list(outbox.take_all()) == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_columns_have_the_names_of_the_schema(count):
    columns = to_columns([(1, 2, DATA, b"x")] * count)
    assert [len(column) for column in columns] == [count] * len(ROW_SCHEMA.names)
