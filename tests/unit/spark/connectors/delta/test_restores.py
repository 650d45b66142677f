"""What a RESTORE undid, by the history of a table; made up here, newest version first."""

from types import SimpleNamespace

import pytest

from cutwater.spark.connectors.delta.restores import KeptEpochs, kept_epochs


def epoch(version, number, rows=1, query_id="mine"):
    return {"version": version, "cutwater": {"query_id": query_id, "epoch": number, "rows": rows}}


def restore(version, to):
    asked = {"version": str(to)}
    return {"version": version, "operation": "RESTORE", "operationParameters": asked}


def kept(*history, committed=9):
    table = SimpleNamespace(history=lambda limit: list(history)[:limit])
    return kept_epochs(table, "mine", committed)


def test_the_newest_epoch_stands():
    assert kept(epoch(2, 5), epoch(1, 4)) == KeptEpochs(5)


@pytest.mark.parametrize(
    "other",
    [
        {"version": 3},
        {"version": 3, "cutwater": "damaged"},
        {"version": 3, "cutwater": {"query_id": "mine", "rows": 7}},
        {"version": 3, "cutwater": {"query_id": "mine", "epoch": "7"}},
        epoch(3, 8, query_id="other"),
    ],
)
def test_what_tells_of_no_epoch_is_passed_over(other):
    assert kept(other, epoch(2, 5)) == KeptEpochs(5)


def test_what_a_restore_undid_is_lost_and_what_it_went_back_to_stands():
    history = [restore(4, to=1), epoch(3, 7, rows=2), epoch(2, 6, rows=3), epoch(1, 5)]
    assert kept(*history) == KeptEpochs(5, lost_rows=5)


def test_what_came_after_a_restore_stands():
    assert kept(epoch(5, 6), restore(4, to=1), epoch(3, 7), epoch(1, 5)) == KeptEpochs(6)


def test_where_the_log_ends_before_all_of_it_was_undone():
    assert kept(restore(9, to=1), epoch(8, 7, rows=2), epoch(7, 6)) == KeptEpochs(5, 3)
