"""What every kind of source keeps to: chunks as JSON has them, and what a kind must say."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.postgres.source import PostgresRows
from cutwater.spark.connectors.registry import source_class, source_kinds
from cutwater.spark.microbatch.source_reader import shares

NAMES = ("CSV", "JSON lines", "Kafka", "Parquet", "generator", "rows of PostgreSQL")
KINDS = {kind: source_class(kind) for kind in NAMES}

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


def test_every_kind_of_a_configuration_is_known_to_checkpoints():
    classes = {kind.settings and kind.load() for kind in source_kinds().values()}
    names = {getattr(each, "kind", "rows of PostgreSQL") for each in classes}
    assert all(source_class(name) is not None for name in names)
    assert set(NAMES) <= names


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_says_what_it_is_for_people(kind):
    assert kind.kind
    assert kind.partitions_noun
    assert kind.unit
    assert kind.min_task_weight >= 1
    chunk = Chunk(0, 5, 8, {"path": "in/a", "rows": 3, "topic": "t"})
    assert kind.measure(chunk) == 3
    assert kind.partition_name(chunk) in ("in/a", "t 0", "")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_positions_sort_as_their_bytes_do(kind):
    source = kind.__new__(kind)
    numbers = [0, 1, 255, 256, 65_535, 1 << 40]
    is_pair = kind is PostgresRows  # whose positions are a transaction and a key
    orders = source.sort_keys([(number, number) for number in numbers] if is_pair else numbers)
    assert orders == sorted(orders)
    assert len({len(order) for order in orders}) == 1


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_decision_of_a_source_without_input_is_nobodys_work(kind):
    assert list(shares(kind.__new__(kind), [Chunk(-1, 0, 0)], 2)) == []
