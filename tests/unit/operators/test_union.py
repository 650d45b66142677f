from cutwater.events import Watermark
from cutwater.operators import produce, union
from cutwater.operators.union import is_producible
from cutwater.times import Left, Product, Right


def test_a_watermark_is_producible_if_the_other_side_has_reached_it():
    assert is_producible(Left(1), [Right(2)])
    assert is_producible(Right(1), [Left(1)])
    assert not is_producible(Left(3), [Right(2)])
    assert not is_producible(Left(1), [Left(2)])
    assert not is_producible(Left(1), [])


def test_two_watermarks_without_a_meet_pass_neither():
    """Meets need not exist, so none is made up."""
    stream = [Watermark(Left(Product(1, 0))), Watermark(Right(Product(0, 1)))]
    assert list(produce(union(), stream)) == []


def test_what_waits_passes_newest_first():
    stream = [Watermark(Left(1)), Watermark(Left(2)), Watermark(Right(5))]
    assert list(produce(union(), stream)) == [Watermark(2), Watermark(1)]
