"""What the ledger of topics says, by the notes that were read: no broker is needed."""

import json

import pytest

from cutwater.endings import CHANGE, exit_code
from cutwater.errors import RefusedError
from cutwater.spark.connectors.kafka.ledger import (
    Account,
    KafkaLedger,
    owner_key,
    slot_key,
    writer_key,
)

STRANGE = {
    "text": (b"garbage", b"x"),
    "no-key": (None, b"x"),
    "a-number": (b"1", b"x"),
    "short": (b'["t"]', b"{}"),
    "other-kind": (b'["topic","sink","query","guest"]', b"{}"),
    "unhashable": (b'["topic","sink","query",[]]', b"{}"),
    "no-slot": (b'["topic","sink","query","slot"]', b"{}"),
    "slot-of-text": (b'["topic","sink","query","slot","0"]', b"not json"),
    "slot-without-epoch": (b'["topic","sink","query","slot","0"]', b"{}"),
    "owner-without-generation": (b'["topic","sink","query","owner"]', b"{}"),
    "writer-of-no-generation": (b'["topic","sink","query","writer",true,"0"]', b""),
}
MINE = Account("topic", "sink", "query")
OTHERS = [
    Account("other", "sink", "query"),
    Account("topic", "other", "query"),
    Account("topic", "sink", "other"),
]


@pytest.fixture
def ledger():
    return KafkaLedger(None, "ledger", "sink 'sink'")


def owner(generation, **more):
    return json.dumps({"format": 1, "generation": generation, **more}).encode()


def slot(epoch, generation=1, labels=(1,)):
    entry = {"generation": generation, "epoch": epoch, "buckets": list(labels), "rows": 0}
    return json.dumps(entry).encode()


def test_nothing_is_known_of_an_account_that_never_wrote(ledger):
    assert ledger.generation(MINE) == 0
    assert not ledger.is_out(MINE)
    assert ledger.writers(MINE) == []
    assert ledger.slots(MINE) == {}
    assert ledger.newest_epoch(MINE) == -1


def test_the_newest_note_of_an_owner_counts(ledger):
    ledger._note(owner_key(MINE), owner(1))
    ledger._note(owner_key(MINE), owner(3))
    assert ledger.generation(MINE) == 3
    assert ledger.owners("topic") == {MINE: {"format": 1, "generation": 3}}


@pytest.mark.parametrize("state", ["leaving", "gone"])
def test_an_account_that_another_took_over_is_out(ledger, state):
    ledger._note(owner_key(MINE), owner(2, state=state))
    assert ledger.is_out(MINE)


@pytest.mark.parametrize("other", OTHERS)
def test_each_account_has_its_own_notes(ledger, other):
    ledger._note(owner_key(other), owner(7, state="gone"))
    ledger._note(writer_key(other, 7, "0"), b"")
    ledger._note(slot_key(other, "0"), slot(9))
    assert ledger.generation(MINE) == 0
    assert not ledger.is_out(MINE)
    assert ledger.writers(MINE) == []
    assert ledger.slots(MINE) == {}
    assert ledger.newest_epoch(MINE) == -1


def test_every_account_of_a_topic_is_an_owner_of_it(ledger):
    for account in (MINE, *OTHERS):
        ledger._note(owner_key(account), owner(1))
    assert set(ledger.owners("topic")) == {MINE, *OTHERS[1:]}


def test_writers_are_listed_by_generation_and_slot_until_they_are_ended(ledger):
    ledger._note(writer_key(MINE, 1, "0"), b"")
    ledger._note(writer_key(MINE, 2, "driver"), b"")
    assert ledger.writers(MINE) == [(1, "0"), (2, "driver")]
    ledger._note(writer_key(MINE, 1, "0"), None)
    ledger._note(writer_key(MINE, 9, "never there"), None)
    assert ledger.writers(MINE) == [(2, "driver")]


def test_the_newest_epoch_is_that_of_the_slot_that_is_furthest(ledger):
    ledger._note(slot_key(MINE, "0"), slot(4))
    ledger._note(slot_key(MINE, "1"), slot(6))
    ledger._note(slot_key(MINE, "2"), slot(5))
    ledger._note(slot_key(MINE, "0"), slot(3))
    assert ledger.newest_epoch(MINE) == 6
    assert {name: found.epoch for name, found in ledger.slots(MINE).items()} == {
        "0": 3,
        "1": 6,
        "2": 5,
    }


def test_each_kind_of_note_is_read_as_what_it_is(ledger):
    ledger._note(owner_key(MINE), owner(2))
    ledger._note(writer_key(MINE, 2, "0"), b"")
    ledger._note(slot_key(MINE, "0"), slot(4))
    assert ledger.generation(MINE) == 2
    assert ledger.writers(MINE) == [(2, "0")]
    assert list(ledger.slots(MINE)) == ["0"]


@pytest.mark.parametrize("kind", STRANGE)
def test_a_record_that_no_flow_has_written_is_a_sentence_until_a_tombstone_ends_it(ledger, kind):
    key, value = STRANGE[kind]
    ledger._note(key, value)
    with pytest.raises(RefusedError, match="damaged-ledger") as refused:
        ledger._refuse_strange()
    assert exit_code(refused.value) == CHANGE
    ledger._note(key, None)
    ledger._refuse_strange()
    assert (ledger.owners("topic"), ledger.writers(MINE), ledger.slots(MINE)) == ({}, [], {})


def test_a_record_that_took_the_place_of_anothers_is_not_passed_over(ledger):
    ledger._note(slot_key(MINE, "0"), slot(4))
    ledger._note(slot_key(MINE, "0"), b"{}")
    with pytest.raises(RefusedError, match="damaged-ledger"):
        ledger._refuse_strange()
    ledger._note(slot_key(MINE, "0"), slot(5))
    ledger._refuse_strange()
    assert ledger.newest_epoch(MINE) == 5
