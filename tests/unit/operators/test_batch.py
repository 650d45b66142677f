from cutwater.events import Data, Watermark
from cutwater.operators import batch, produce
from cutwater.operators.batch import least_time
from cutwater.times import Left, Right


def test_at_the_end_there_is_a_batch_for_each_maximal_time():
    stream = [Data(Left(1), "a"), Data(Right(1), "b"), Data(Left(2), "c")]
    assert list(produce(batch(), stream)) == [
        Data(Right(1), ((Right(1), "b"),)),
        Data(Left(2), ((Left(1), "a"), (Left(2), "c"))),
    ]


def test_a_watermark_that_completes_nothing_passes():
    assert list(produce(batch(), [Watermark(1), Watermark(1)])) == [Watermark(1), Watermark(1)]


def test_nothing_in_nothing_out():
    assert list(produce(batch(), [])) == []


def test_pending_may_be_any_iterable():
    assert list(produce(batch(iter([(1, "a")])), [])) == [Data(1, ((1, "a"),))]


def test_a_state_that_was_left_can_be_gone_back_to():
    op = batch()
    one, _ = op.step(op.initial, Data(1, "a"))
    op.step(one, Data(1, "b"))
    two, _ = op.step(one, Data(1, "c"))
    assert list(two) == [(1, "a"), (1, "c")]
    assert list(one) == [(1, "a")]


def test_what_is_due_first_is_the_least_time_wherever_it_stands():
    assert least_time([(3, "c"), (1, "a"), (2, "b")]) == 1
    op = batch([(3, "c"), (1, "a"), (2, "b")])
    assert op.due(op.initial) == 1


def test_only_what_holds_nothing_and_starts_with_nothing_is_blank():
    """A blank state is forgotten, and begins again from the initial one."""
    op = batch()
    held, _ = op.step(op.initial, Data(1, "a"))
    freed, _ = op.step(held, Watermark(1))
    assert [op.is_blank(state) for state in (op.initial, held, freed)] == [True, False, True]
    op = batch([(1, "a")])
    freed, _ = op.step(op.initial, Watermark(1))
    assert [op.is_blank(state) for state in (op.initial, freed)] == [False, False]
