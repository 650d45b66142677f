"""Rows between tasks: one for each receiver, and one behind it that says nothing."""

import pytest

from cutwater.spark.realtime.wire import NO_SENDER, barrier_rows, nudge_rows, tick_rows, unpack_rows

RECEIVERS = {7: 0, 8: 1, 9: 0}
PARCELS = [(7, 0, 0, b"a"), (8, 0, 0, b"b"), (9, 0, 0, b"c")]


def rows_of(batches):
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "batches", [lambda: tick_rows(3, 5, PARCELS, RECEIVERS, 2), lambda: barrier_rows(3, 5, 2)]
)
def test_behind_each_row_comes_one_for_the_same_receiver_that_says_nothing(batches):
    """Spark hands a row to a receiver when it has another one for it."""
    rows = rows_of(batches())
    for receiver in (0, 1):
        senders = [row["sender"] for row in rows if row["receiver"] == receiver]
        assert senders == [3, NO_SENDER]


def test_a_tick_is_one_row_for_each_receiver():
    found = {
        row["receiver"]: list(unpack_rows([row["body"]]))
        for row in rows_of(tick_rows(3, 5, PARCELS, RECEIVERS, 2))
        if row["sender"] == 3
    }
    assert found == {0: [PARCELS[0], PARCELS[2]], 1: [PARCELS[1]]}


def test_a_barrier_has_no_body():
    sent = [row for row in rows_of(barrier_rows(3, 5, 2)) if row["sender"] != NO_SENDER]
    assert [(row["tick"], row["body"]) for row in sent] == [(5, b""), (5, b"")]


@pytest.mark.parametrize(
    "batches",
    [
        lambda: tick_rows(3, 5, PARCELS, RECEIVERS, 2),
        lambda: barrier_rows(3, 5, 2),
        lambda: nudge_rows(2),
    ],
)
def test_what_is_sent_at_once_is_one_message(batches):
    """Each batch is a message to the JVM of its own."""
    assert len(list(batches())) == 1


def test_a_nudge_has_an_empty_row_for_each_receiver():
    (batch,) = nudge_rows(2)
    assert [(row["receiver"], row["sender"]) for row in batch.to_pylist()] == [
        (0, NO_SENDER),
        (1, NO_SENDER),
    ]
