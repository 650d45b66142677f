"""What steps make of values alone is what their operators make of events."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.events import Data
from cutwater.flow import plan
from cutwater.flow.by_value import by_value, is_by_value, made_of


def halved(value: Any) -> Any:
    return 12 // (value - 3)


def spread(value: Any) -> Any:
    return range(value % 4) if value != 5 else 5


def dripping(value: Any) -> Any:
    """Fails in the middle, where the caller asks for more."""
    for number in range(value % 4):
        if value == 7:
            raise KeyError(value)
        yield value + number


def is_even(value: Any) -> bool:
    if value == 4:
        raise SystemExit("four")
    return value % 2 == 0


def refused(value: Any) -> Any:
    if value == 6:
        raise cw.errors.InputError(cw.errors.Problem("six", "it is six", "take another"))
    return value


STEPS = [("map", halved), ("map", refused), ("flat_map", spread), ("flat_map", dripping)]
STEPS.append(("filter", is_even))


@st.composite
def chains(draw):
    """A chain of steps, as a segment has it."""
    flow = cw.Flow("flow")
    stream = flow.source("numbers", int)
    for number, (verb, f) in enumerate(
        draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3))
    ):
        stream = getattr(stream, verb)(f, name=f"step {number}")
    flow.sink("out", stream)
    (segment,) = plan(flow).segments
    return segment


def outcome(f, value):
    """What a function returns, or the sentence with which it ends."""
    try:
        return list(f(value))
    except (Exception, SystemExit) as error:
        return type(error), str(error)


def by_events(segment):
    def outputs(value):
        _, events = segment.operator.step(segment.operator.initial, Data(0, value))
        return [event.value for event in events]

    return outputs


@given(chains(), st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_values_become_what_the_operators_make_of_them(segment, values):
    steps = [part.step for part in segment.parts]
    assert all(map(is_by_value, steps))
    wanted = [outcome(by_events(segment), value) for value in values]
    assert [outcome(by_value(steps), value) for value in values] == wanted
    failed = [result for result in wanted if isinstance(result, tuple)]
    all_at_once = outcome(lambda given: map(list, made_of(steps)(given)), values)
    assert all_at_once == (failed[0] if failed else wanted)


def test_no_steps_leave_values_as_they_are():
    assert by_value([])(3) == (3,)
    assert made_of([])([1, 2]) == [(1,), (2,)]
