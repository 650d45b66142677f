"""A user's function on its own state."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operators.orders import any_order, cases
from support.operators.paper import mono

from cutwater.errors import InputError
from cutwater.events import Data, Watermark
from cutwater.operators import produce
from cutwater.operators.keyed import Keyed
from cutwater.operators.task import task
from cutwater.ordering import canonical


def remember(seen, letter):
    """Emits all it saw; forgets at a 'c', is silent at a 'b'."""
    seen = (*seen, letter)
    return (None if letter == "c" else seen), ([] if letter == "b" else [seen, len(seen)])


def outputs_by_hand(events, is_forgotten=lambda n: False):
    """Batch recomputation: what each event's outputs are, from the events before it alone."""
    data = [n for n, event in enumerate(events) if isinstance(event, Data)]
    outputs = []
    for n, event in enumerate(events):
        if isinstance(event, Watermark):
            outputs.append(event)
            continue
        seen = []
        for m in (m for m in data if m <= n):
            if is_forgotten(m):
                seen = []
            seen.append(events[m].value)
            if events[m].value == "c" and m < n:
                seen = []
        _, emitted = remember(tuple(seen[:-1]), seen[-1])
        outputs += [Data(event.time, value) for value in emitted]
    return outputs


@given(cases(any_order(), monotone=False))
def test_a_state_is_all_since_its_last_deletion(case):
    assert list(produce(task(remember, ()), case.lxs)) == outputs_by_hand(case.lxs)


@given(cases(any_order()))
def test_monotone_streams_stay_monotone_and_watermarks_stay_where_they_are(case):
    outputs = list(produce(task(remember, ()), case.lxs))
    assert mono(outputs, set(case.seen))
    marks = [event for event in case.lxs if isinstance(event, Watermark)]
    assert [event for event in outputs if isinstance(event, Watermark)] == marks


STREAMS = st.lists(
    st.one_of(
        st.builds(Data, st.integers(0, 12), st.sampled_from("abc")),
        st.builds(Watermark, st.integers(0, 12)),
    ),
    max_size=15,
)


@given(STREAMS, st.integers(0, 4))
def test_a_state_expires_once_that_much_is_complete_after_its_last_event(events, expire_after):
    def is_forgotten(m):
        """Does some watermark lie after the newest event that the state knew, by enough?"""
        newest = None
        for event in events[:m]:
            if isinstance(event, Watermark):
                if newest is not None and newest + expire_after <= event.time:
                    newest = None
            elif event.value == "c":
                newest = None
            else:
                newest = event.time if newest is None else max(newest, event.time)
        return newest is None

    op = task(remember, (), expire_after=expire_after)
    assert list(produce(op, events)) == outputs_by_hand(events, is_forgotten)


@pytest.mark.parametrize(("watermark", "is_kept"), [(14, True), (15, False), (16, False)])
def test_the_last_moment_of_a_state(watermark, is_kept):
    """The last event was at 10 (not the last to come, at 7); the state lives for 5."""
    op = task(lambda n, _: (n + 1, [n]), 0, expire_after=5)
    events = [Data(10, "a"), Data(7, "b"), Watermark(watermark), Data(20, "c")]
    assert list(produce(op, events))[-1] == Data(20, 2 if is_kept else 0)


def test_a_deleted_state_is_not_kept():
    op = task(lambda n, value: (None if value else n, []), 0)
    state, _ = op.step(op.initial, Data(1, False))
    assert not op.is_blank(state)
    state, _ = op.step(state, Data(2, True))
    assert op.is_blank(state)


@dataclass
class Basket:
    items: list = field(default_factory=list)


@pytest.mark.parametrize("initial", [[], {}, Basket(), ([],)], ids=repr)
def test_an_initial_state_that_can_change_is_never_shared(initial):
    def grow(state, value):
        inside = state[0] if isinstance(state, tuple) else getattr(state, "items", state)
        inside = inside() if callable(inside) else inside
        if isinstance(state, dict):
            state[value] = True
        else:
            inside.append(value)
        return None, [repr(state)]

    outputs = list(produce(task(grow, initial), [Data(1, "a"), Data(2, "a")]))
    assert outputs[0].value == outputs[1].value
    assert initial == type(initial)() or initial == ([],)


@pytest.mark.parametrize(
    "result", [None, 5, (1,), (1, 2), (1, "text"), (1, b"bytes"), [1, []], (1, [], [])]
)
def test_what_is_no_pair_of_state_and_outputs_gets_a_sentence(result):
    with pytest.raises(InputError, match=r"not-a-state-and-outputs.*'counter' returned"):
        list(produce(task(lambda state, value: result, 0, name="counter"), [Data(1, "a")]))


@pytest.mark.parametrize("outputs", [(), (1, 2), iter([1, 2]), range(1, 3), {1: "a", 2: "b"}])
def test_outputs_may_be_anything_that_can_be_listed(outputs):
    found = list(produce(task(lambda state, value: (state, outputs), 0), [Data(1, "a")]))
    assert found in ([], [Data(1, 1), Data(1, 2)])
    assert bool(found) == (outputs != ())


@pytest.mark.parametrize(("expire_after", "visited"), [(None, []), (5, ["a"])])
def test_a_watermark_visits_the_keys_of_a_task_only_if_it_expires(expire_after, visited):
    held = Keyed(task(lambda n, _: (n + 1, []), 0, expire_after=expire_after))
    held.data("a", canonical("a"), Data(1, "x"))
    assert [key for _, key, _ in held.watermarks([2])] == visited
