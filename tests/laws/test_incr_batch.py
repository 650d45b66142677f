"""`batch`, then `accumulate`: equations (18) to (21)."""

from hypothesis import given
from hypothesis import strategies as st
from support.operators import machines
from support.operators.figures import STREAM, t0, t1, t2, t3, t4, t5
from support.operators.infinite import infinite_streams, overdue, stepwise, with_pending
from support.operators.orders import cases, uncompleted_pending
from support.operators.paper import acc_batches, coll, data, lcoll, mono, set_t, ts

from cutwater.events import Data, Watermark, monotone
from cutwater.operators import batch, fproduce, incr_batch, produce


def is_sound(lxs, pending, initial, batched, output):
    """The conclusion of (20) for one output; `batched` is ``produce (batch_op tds) lxs``."""
    t, whole = output.time, output.value

    def holds_at(n):
        batches = acc_batches(n, batched)
        below = {t_ for t_ in set_t(pending) if t_ <= t}
        return (
            whole == (*initial, *batches)
            and {t_ for t_ in set_t(batches) if t_ <= t} == ts(lxs, t) | below
            and all(
                coll(batches, t_) == lcoll(lxs, t_) + coll(pending, t_)
                for t_ in ts(lxs, t) | below | set_t(batches)
                if t_ <= t
            )
        )

    return any(holds_at(n) for n in range(len(batched) + 1))


@given(cases(monotone=False))
def test_incr_batch_is_the_papers(case):
    expected = machines.produce(machines.incr_batch_op(case.pending, case.batches), case.lxs)
    assert list(produce(incr_batch(case.pending, case.batches), case.lxs)) == list(expected)


@given(cases())
def test_eq18_incr_batch_preserves_monotonicity(case):
    outputs = list(produce(incr_batch(uncompleted_pending(case), case.batches), case.lxs))
    assert mono(outputs, case.seen)
    assert monotone(outputs, case.seen)


def test_eq18_fails_if_something_pending_was_completed_before():
    assert not mono(list(produce(incr_batch([(0, "a")]), [])), {1})


@given(with_pending())
def test_eq19_incr_batch_preserves_productivity(given_):
    stream, pending = given_
    assert overdue(incr_batch(pending), stream) == []


@given(cases())
def test_eq20_incr_batch_soundness(case):
    batched = list(produce(batch(case.pending), case.lxs))
    for output in data(produce(incr_batch(case.pending, case.batches), case.lxs)):
        assert is_sound(case.lxs, case.pending, case.batches, batched, output)


@given(infinite_streams(), st.integers(0, 20), st.integers(0, 20))
def test_eq20_an_output_stays_sound_however_the_stream_goes_on(stream, n, more):
    lxs = stream.prefix(n + more)
    batched = fproduce(batch(), lxs)[1]
    for output in data(fproduce(incr_batch(), stream.prefix(n))[1]):
        assert is_sound(lxs, [], [], batched, output)


def test_eq20_fails_for_a_stream_that_is_not_monotone():
    lxs = [Data(1, "a"), Watermark(1), Data(0, "late"), Watermark(0)]
    batched = list(produce(batch(), lxs))
    first = data(produce(incr_batch(), lxs))[0]
    assert not is_sound(lxs, [], [], batched, first)


@given(cases(monotone=False))
def test_eq21_incr_batch_completeness(case):
    """With any buffers, as (11) and (15) together say; (21) is the case without."""
    times = {
        output.time for output in data(produce(incr_batch(case.pending, case.batches), case.lxs))
    }
    assert {event.time for event in data(case.lxs)} | set_t(case.pending) == times


@given(infinite_streams())
def test_eq21_incr_batch_completeness_on_infinite_streams(stream):
    n = 3 * stream.round_length
    outputs = stepwise(incr_batch(), stream.prefix(n + stream.lag))
    times = {event.time for _, event in outputs if isinstance(event, Data)}
    assert {event.time for event in data(stream.prefix(n))} <= times


def test_eq21_fails_for_a_stream_that_is_not_productive():
    assert stepwise(incr_batch(), [Data(n, "a") for n in range(100)]) == []


# Fig. 1a is the stream; `batch` starts with (t0, a) pending.
def test_fig4():
    first = ((t0, "a"), (t0, "a"), (t1, "c"))
    second = (*first, (t2, "b"), (t3, "a"), (t5, "a"), (t5, "c"))
    assert list(produce(incr_batch([(t0, "a")]), STREAM)) == [
        Data(t0, first),
        Data(t1, first),
        Watermark(t1),
        Data(t2, second),  # the figure leaves out t2 and t3, which `incr_op` also emits
        Data(t3, second),
        Data(t5, second),
        Watermark(t5),
        Watermark(t2),
        Data(t4, (*second, (t4, "d"))),
    ]
