"""States of input epochs that overlap: apart, and gone when one is over."""

import pytest
from support.spark.toy_spark import Handle

from cutwater.spark.state.bucket import INPUT, BucketStates, StateStore
from cutwater.spark.state.input_states import StatesOfInput, input_of


@pytest.fixture
def handle():
    return Handle()


def opened(handle, query="q"):
    return BucketStates(StateStore(handle), query, 0, 7)


def test_each_input_epoch_has_its_own_and_none_is_that_of_the_bucket(handle):
    bucket = opened(handle)
    for number in (1, 12):
        StatesOfInput(bucket, number).put("step", b"k", b"%d" % number)
    assert bucket.get("step", b"k") is None
    assert [StatesOfInput(bucket, n).get("step", b"k") for n in (1, 12, 2)] == [b"1", b"12", None]
    assert [input_of(name) for name in bucket.names(INPUT)] == [
        (1, "step"),
        (12, "step"),
        (2, "step"),
    ]


def test_what_is_forgotten_leaves_nothing_not_even_a_name(handle):
    bucket = opened(handle)
    for number in (1, 12):
        StatesOfInput(bucket, number).put_many("step", [b"a", b"b"], [b"x", b"y"])
    bucket.put("step", b"k", b"kept")
    bucket.save()
    StatesOfInput(bucket, 1).forget()
    bucket.save()
    for found in (bucket, opened(handle), opened(handle, "another query, so no copy")):
        assert found.get("step", b"k") == b"kept"
        assert {input_of(n)[0] for n in found.names(INPUT) if found.keys(n)} == {12}
    assert bucket.names(INPUT) == [f"{INPUT}12 step"]


def test_the_log_of_changes_stays_small_however_many_input_epochs_come_and_go(handle):
    for number in range(300):
        bucket = opened(handle)
        StatesOfInput(bucket, number).put("step", b"k", b"x" * 1000)
        if number:
            StatesOfInput(bucket, number - 1).forget()
        bucket.save()
    bucket = opened(handle, "another query")
    assert {input_of(n)[0] for n in bucket.names(INPUT) if bucket.keys(n)} == {299}
    assert sum(len(data) for (data,) in handle.store.log.items.values()) < 200_000
