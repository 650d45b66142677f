"""What every kind of feed keeps to: chunks as JSON has them, and what a kind must say."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.postgres.source import PostgresRows
from cutwater.spark.connectors.registry import SOURCE_CLASSES, source_class
from cutwater.spark.microbatch.source_reader import shares

KINDS = {kind: source_class(kind) for kind in SOURCE_CLASSES}

positions = st.one_of(
    st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.text(max_size=3)).map(list)
)


@given(
    st.integers(-1, 9),
    positions,
    positions,
    st.dictionaries(st.sampled_from(["topic", "size", "xid"]), positions),
)
def test_a_chunk_comes_back_from_the_log_as_it_was(number, start, end, about):
    chunk = Chunk(number, start, end, about, newest_after={"newest": 1}, first=3, planned=0.5)
    assert Chunk.of_json(json.loads(json.dumps(chunk.to_json()))) == chunk
    assert chunk.is_decision == (start == end)


def test_checkpoints_and_classes_call_a_kind_the_same():
    assert {kind: found.kind for kind, found in KINDS.items()} == {kind: kind for kind in KINDS}
    assert source_class("no such kind") is None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_says_what_it_is_for_people(kind):
    assert kind.kind
    assert kind.pieces
    assert kind.unit
    assert kind.smallest_share >= 1
    chunk = Chunk(0, 5, 8, {"path": "in/a", "rows": 3, "topic": "t"})
    assert kind.tally(chunk) == 3
    assert kind.piece(chunk) in ("in/a", "t 0", "")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_positions_sort_as_their_bytes_do(kind):
    feed = kind.__new__(kind)
    numbers = [0, 1, 255, 256, 65_535, 1 << 40]
    is_pair = kind is PostgresRows  # whose positions are a transaction and a key
    orders = feed.orders([(number, number) for number in numbers] if is_pair else numbers)
    assert orders == sorted(orders)
    assert len({len(order) for order in orders}) == 1


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_decision_of_a_source_without_input_is_nobodys_work(kind):
    assert list(shares(kind.__new__(kind), [Chunk(-1, 0, 0)], 2)) == []
