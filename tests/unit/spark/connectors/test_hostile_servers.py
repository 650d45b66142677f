"""Hostile records in a topic and in a table; see `hostile_records`."""

import itertools
import math
from dataclasses import replace

import psycopg
import pytest
from confluent_kafka import Producer
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support.connectors.hostile_records import (
    HUGE,
    LONE,
    Item,
    among_neighbours,
    assert_carried_or_refused,
    hostile_items,
    in_json,
    mutated,
    mutations,
    read_json,
)

from cutwater.spark import postgres_rows
from cutwater.spark.connectors.kafka.source import KafkaMessages

pytestmark = pytest.mark.slow

EXAMPLES = 25
"""Each makes a topic or a table."""
numbers = itertools.count()
no_json = st.lists(st.none() | st.binary(max_size=8), max_size=2)


@settings(max_examples=EXAMPLES)
@given(hostile_items, mutations, no_json)
@example([Item(1, LONE), Item(3, "", 2**127), Item(5, "", 0, math.nan)], [], [None, b"", b"[" * 9])
def test_a_topic(broker, tmp_path_factory, items, changes, others):
    """Values are bytes of any kind, or are not there at all."""
    values = [mutated(in_json(item), changes) for item in items] + others
    all_values, neighbours = among_neighbours(values, in_json)
    hostile = read_json([value or b"" for value in values], neighbours)
    assume(hostile is not None)
    topic = broker.topic()
    producer = Producer({"bootstrap.servers": broker.servers})
    for number, value in enumerate(all_values):
        producer.produce(topic, value, key=b"\xff%d" % number)
    producer.flush()

    def make(_root):
        return KafkaMessages(topic=topic, servers=broker.servers, max_rows_per_epoch=4)

    assert_carried_or_refused(tmp_path_factory.mktemp("topic"), make, hostile, neighbours)


@settings(max_examples=EXAMPLES)
@given(hostile_items, st.lists(st.sampled_from(["NaN", "Infinity", "0.5", None]), max_size=2))
@example([Item(1, HUGE), Item(3, "", 2**127), Item(5, "", 0, math.nan)], ["NaN", None])
def test_a_table(postgres, tmp_path_factory, items, others):
    """Numbers have any size or are none; texts are what the database takes."""
    items = [replace(item, text=storable(item.text)) for item in items]
    hostile = {item.id: item for item in items}
    rows = [vars(item) for item in items]
    for number in others:
        id_ = 2 * len(rows) + 1
        hostile[id_] = None
        rows.append({"id": id_, "text": "", "number": number, "weight": 0.0})
    all_rows, neighbours = among_neighbours(rows, vars)
    table = f"hostile_{next(numbers)}"
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, text text, number numeric,"
            " weight float8, xid xid8 NOT NULL DEFAULT pg_current_xact_id())"
        )
        for row in all_rows:
            connection.execute(
                f"INSERT INTO {table} VALUES (%(id)s, %(text)s, %(number)s, %(weight)s)",
                {**row, "number": None if row["number"] is None else str(row["number"])},
            )

    def make(_root):
        return postgres_rows(
            table=table, dsn=postgres.dsn, key="id", transaction="xid", max_rows_per_epoch=4
        )

    assert_carried_or_refused(tmp_path_factory.mktemp("table"), make, hostile, neighbours)


def storable(text: str) -> str:
    """What a database in UTF-8 takes of a text."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode()
