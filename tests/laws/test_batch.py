"""Batches of completed times: equations (10) to (13)."""

from itertools import count, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.figures import STREAM, t0, t1, t2, t3, t4, t5
from support.operators.infinite import infinite_streams, overdue, stepwise, with_pending
from support.operators.orders import cases, keep_punctual, uncompleted_pending
from support.operators.paper import as_events, batch_ts, coll, data, lcoll, mono, set_t

from cutwater.events import Data, Watermark, monotone, productive
from cutwater.operators import batch, fproduce, produce
from cutwater.times import Left, Right


def is_sound(lxs, pending, output):
    """The conclusion of (10) for one batch."""
    wm, b = output.time, output.value
    whole = all(coll(b, t) == lcoll(lxs, t) + coll(pending, t) for t in set_t(b))
    return whole and set_t(b) == batch_ts([*as_events(pending), *lxs], wm)


@given(cases(monotone=False))
def test_batch_is_the_papers(case):
    expected = machines.produce(machines.batch_op(case.pending), case.lxs)
    assert list(produce(batch(case.pending), case.lxs)) == list(expected)


@given(cases())
def test_eq10_batch_soundness(case):
    for output in data(produce(batch(case.pending), case.lxs)):
        assert is_sound(case.lxs, case.pending, output)


@given(infinite_streams(), st.integers(0, 30), st.integers(0, 30))
def test_eq10_a_batch_stays_sound_however_the_stream_goes_on(stream, n, more):
    _, outputs = fproduce(batch(), stream.prefix(n))
    for output in data(outputs):
        assert is_sound(stream.prefix(n), [], output)
        assert is_sound(stream.prefix(n + more), [], output)


def test_eq10_fails_for_a_stream_that_is_not_monotone():
    lxs = [Data(1, "a"), Watermark(1), Data(1, "late"), Watermark(1)]
    assert not monotone(lxs)
    outputs = data(produce(batch(), lxs))
    assert [is_sound(lxs, [], output) for output in outputs] == [False, False]


@given(cases())
def test_eq11_batch_completeness(case):
    """A finite stream is productive, and its end completes all that is pending."""
    batches = [output.value for output in data(produce(batch(case.pending), case.lxs))]
    for t in {event.time for event in data(case.lxs)} | set_t(case.pending):
        assert any(t in set_t(b) for b in batches)


@given(cases(monotone=False))
def test_eq11_every_input_is_in_exactly_one_batch(case):
    """Stronger than (11), and for streams of any kind."""
    held = [
        pair for output in data(produce(batch(case.pending), case.lxs)) for pair in output.value
    ]
    expected = [*case.pending, *((event.time, event.value) for event in data(case.lxs))]
    assert sorted(held, key=repr) == sorted(expected, key=repr)


@given(with_pending())
def test_eq11_batch_completeness_on_infinite_streams(given_):
    stream, pending = given_
    n = 3 * stream.round_length
    outputs = stepwise(batch(pending), stream.prefix(n + stream.lag))
    batched = [pair for _, event in outputs if isinstance(event, Data) for pair in event.value]
    for event in [*as_events(pending), *data(stream.prefix(n))]:
        assert (event.time, event.value) in batched


@pytest.mark.parametrize(
    ("pending", "lxs"),
    [
        ([], (Data(n, "a") for n in count())),
        ([(Right(0), "a")], (Watermark(Left(n)) for n in count())),
    ],
    ids=["the stream is not productive", "nothing completes what is pending"],
)
def test_eq11_fails_without_its_side_conditions(pending, lxs):
    outputs = stepwise(batch(pending), [next(lxs) for _ in range(1000)])
    assert not [event for _, event in outputs if isinstance(event, Data)]


@given(cases())
def test_eq12_batch_preserves_monotonicity(case):
    outputs = list(produce(batch(uncompleted_pending(case)), case.lxs))
    assert mono(outputs, case.seen)
    assert monotone(outputs, case.seen)


def test_eq12_fails_if_something_pending_was_completed_before():
    assert mono([], {1})
    assert not mono(list(produce(batch([(0, "a")]), [])), {1})


def test_eq12_fails_for_a_stream_that_is_not_monotone():
    assert not mono(list(produce(batch(), [Watermark(1), Data(0, "a")])), set())


@given(with_pending())
def test_eq13_batch_preserves_productivity(given_):
    stream, pending = given_
    assert overdue(batch(pending), stream) == []


@given(cases(), st.integers(1, 4))
def test_eq13_a_batch_is_completed_by_the_event_after_it(case, lag):
    """Before the end, `batch` owes nothing for longer than one event, whatever the stream."""
    _, outputs = fproduce(batch(case.pending), keep_punctual(case.lxs, lag))
    assert productive(outputs, lag=1)


def test_eq13_a_stream_without_end_and_watermarks_makes_batch_wait():
    """(13) asks nothing here: the paper's output is empty, and so finite."""
    assert list(machines.produce(machines.batch_op([]), repeat(Data(0, "a")), depth=50)) == []


# Fig. 1a is the stream; `batch` starts with (t0, a) pending.
def test_fig3():
    assert list(produce(batch([(t0, "a")]), STREAM)) == [
        Data(t1, ((t0, "a"), (t0, "a"), (t1, "c"))),
        Watermark(t1),
        Data(t5, ((t2, "b"), (t3, "a"), (t5, "a"), (t5, "c"))),
        Watermark(t5),
        Watermark(t2),
        Data(t4, ((t4, "d"),)),  # section 4.2: if the stream ends at that point
    ]
