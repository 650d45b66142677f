"""Batches that include all earlier ones: equations (14) to (17)."""

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.infinite import infinite_streams, overdue, stepwise
from support.operators.orders import (
    RAW_PAIRS,
    RAW_TIMES,
    any_order,
    is_completed,
    keep_monotone,
    pairs_at,
    pick,
    raw_streams,
)
from support.operators.paper import acc_batches, data, mono, set_t

from cutwater.events import Data, Watermark, monotone, productive
from cutwater.operators import accumulate, produce
from cutwater.times import Left, Right


def streams_of_batches(*, times_below=True, uncompleted=True):
    """``(lxs, W, abs)`` with the side conditions of (16), or without one of them."""

    def build(times, raw, raw_seen, raw_initial):
        seen = [pick(times, index) for index in raw_seen]
        lxs = keep_monotone([event.at(times) for event in raw], seen)
        completed, kept = list(seen), []
        for event in lxs:
            if isinstance(event, Watermark):
                completed.append(event.time)
                kept.append(event)
                continue
            batch = pairs_at(times, event.value)
            if times_below:
                batch = [(t, d) for t, d in batch if t <= event.time]
            if uncompleted:
                batch = [(t, d) for t, d in batch if not is_completed(t, completed)]
            kept.append(Data(event.time, tuple(batch)))
        return kept, seen, pairs_at(times, raw_initial)

    return st.builds(build, any_order(), raw_streams(RAW_PAIRS), RAW_TIMES, RAW_PAIRS)


def is_sound(lxs, initial, output):
    """The conclusion of (14) for one output."""
    return any(
        output.value == (*initial, *acc_batches(n, lxs))
        and output.time in set_t(acc_batches(n, lxs))
        for n in range(len(lxs) + 1)
    )


@given(streams_of_batches(times_below=False, uncompleted=False))
def test_accumulate_is_the_papers(given_):
    lxs, _, initial = given_
    expected = machines.produce(machines.incr_op(initial), lxs)
    assert list(produce(accumulate(initial), lxs)) == list(expected)


@given(streams_of_batches(times_below=False, uncompleted=False))
def test_eq14_accumulate_soundness(given_):
    lxs, _, initial = given_
    for output in data(produce(accumulate(initial), lxs)):
        assert is_sound(lxs, initial, output)


@given(streams_of_batches(times_below=False, uncompleted=False))
def test_eq15_accumulate_completeness(given_):
    lxs, _, initial = given_
    times = {output.time for output in data(produce(accumulate(initial), lxs))}
    assert all(t in times for event in data(lxs) for t in set_t(event.value))


@given(streams_of_batches())
def test_eq16_accumulate_preserves_monotonicity(given_):
    lxs, seen, initial = given_
    outputs = list(produce(accumulate(initial), lxs))
    assert mono(outputs, seen)
    assert monotone(outputs, seen)


@given(streams_of_batches(times_below=False))
def test_eq16_does_not_need_the_times_to_be_below_the_batch(given_):
    """Of the side condition of (16), ``t' ≤ wm`` is not what keeps a stream monotone."""
    lxs, seen, initial = given_
    assert mono(list(produce(accumulate(initial), lxs)), seen)


def test_eq16_fails_if_a_batch_has_a_time_that_was_completed():
    lxs = [Watermark(1), Data(2, ((1, "a"),))]
    assert mono(lxs, set())
    assert not mono(list(produce(accumulate(), lxs)), set())


@given(infinite_streams(batched=True))
def test_eq17_accumulate_preserves_productivity(stream):
    """All that is asked of a batch here is that its times are below its own.

    That the very watermark of the batch follows, and not only a later one, and that the batch is
    not empty, are side conditions of (17) that productivity itself does not need.
    """
    assert overdue(accumulate(), stream) == []


def test_eq17_fails_if_a_batch_has_a_time_that_is_not_below_its_own():
    lxs = [
        event
        for n in range(20)
        for event in (Data(Left(n), ((Right(n), "a"),)), Watermark(Left(n)))
    ]
    assert productive(lxs, lag=1)
    outputs = [event for _, event in stepwise(accumulate(), lxs)]
    assert not productive(outputs, lag=10)
