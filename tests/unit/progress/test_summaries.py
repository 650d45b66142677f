import datetime as dt
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutwater.progress import EGRESS, FEEDBACK, IDENTITY, INGRESS, Summary, add
from cutwater.times import Product, check_order, in_rounds

STEPS = [IDENTITY, INGRESS, FEEDBACK, EGRESS, add(1), add(3), add(-2)]
DEPTH = 4
"""Deep enough that no walk of the length drawn leaves more loops than there are."""
TIMES = [in_rounds(t, (a, b, c, 0)) for t in (0, 2) for a in (0, 2) for b in (0, 1) for c in (0, 3)]
walks = st.lists(st.sampled_from(STEPS), max_size=4)


def summary_of(walk):
    result = IDENTITY
    for step in walk:
        result = result.then(step)
    return result


def outside(walk):
    """Does a walk leave all loops? Then a feedback has no counter to add to."""
    depth = DEPTH
    for step in walk:
        if depth < step.depth_needed:
            return True
        depth += step.deepening
    return False


def test_each_of_the_five():
    assert IDENTITY(7) == 7
    assert add(5)(Product(7, (2,))) == Product(12, (2,))
    assert INGRESS(7) == Product(7, (0,))
    assert INGRESS(Product(7, (2,))) == Product(7, (2, 0))
    assert FEEDBACK(Product(7, (2, 0))) == Product(7, (2, 1))
    assert EGRESS(Product(7, (2, 0))) == Product(7, (2,))
    assert EGRESS(Product(7, (2,))) == 7


def test_an_amount_is_of_any_type_that_can_be_added():
    hour = dt.timedelta(hours=1)
    assert add(hour)(dt.datetime(2024, 1, 1)) == dt.datetime(2024, 1, 1, 1)
    assert add(hour).is_strictly_positive
    assert not add(-hour).is_strictly_positive
    assert add(hour - hour) == IDENTITY


@given(walks, walks)
def test_a_composition_is_one_after_the_other(first, second):
    if not outside([*first, *second]):
        for time in TIMES:
            walked = time
            for step in (*first, *second):
                walked = step(walked)
            assert summary_of(first).then(summary_of(second))(time) == walked


def test_summaries_are_ordered_as_what_they_do_to_every_time():
    """All walks of up to three steps, on times with counters below and above what they set."""
    steps = [INGRESS, FEEDBACK, EGRESS, add(1)]
    walked = {summary_of(walk) for n in range(4) for walk in product(steps, repeat=n)}
    times = [in_rounds(0, rounds) for rounds in product((0, 5), repeat=DEPTH)]
    for a, b in product(walked, repeat=2):
        if a.deepening == b.deepening:
            assert (a <= b) == all(a(t) <= b(t) for t in times), (a, b)
        else:
            assert not a <= b


def test_summaries_of_short_walks_are_a_partial_order():
    check_order({summary_of([a, b]) for a in STEPS for b in STEPS})


@pytest.mark.parametrize(
    ("walk", "expected"),
    [
        ([IDENTITY], False),
        ([add(1)], True),
        ([add(-1)], False),
        ([FEEDBACK], True),
        ([add(-1), FEEDBACK], False),
        # out of the inner loop and in again: back at its first round
        ([EGRESS, INGRESS], False),
        # through the feedback of the outer loop: lexicographically later
        ([EGRESS, FEEDBACK, INGRESS], True),
        ([FEEDBACK, EGRESS, INGRESS], False),
    ],
)
def test_what_leads_from_every_time_to_a_later_one(walk, expected):
    assert summary_of(walk).is_strictly_positive is expected


def test_a_summary_is_not_compared_with_anything_else():
    with pytest.raises(TypeError):
        assert Summary() <= 3
