"""Operators with one thing wrong in each."""

from collections import Counter

from cutwater.events import Data, Watermark
from cutwater.operators import Operator, batch, compose, incr_batch, map_values


def forgets_at_the_end():
    """A batch that drops what is pending when the input ends."""
    return Operator(batch().initial, batch().step)


def waits_for_the_end():
    """One batch of everything, when the input ends."""

    def step(held, event):
        return ((*held, event), ()) if isinstance(event, Data) else (held, (event,))

    def finish(held):
        if held:
            yield Data(max(e.time for e in held), tuple((e.time, e.value) for e in held))

    return Operator((), step, finish)


def marks_too_early():
    """A batch that emits the watermark before what it completes."""

    def step(held, event):
        held, outputs = batch().step(held, event)
        return held, outputs[::-1]

    return Operator(batch().initial, step, batch().finish)


def drops_duplicates():
    return compose(batch(), map_values(lambda _, held: tuple(dict.fromkeys(held))))


def counts_twice():
    """A histogram that adds what was counted at earlier times again."""

    def count(time, held):
        below = [value for t, value in held if t <= time and t != time]
        return Counter([*below, *below, *(value for t, value in held if t == time)])

    return compose(incr_batch(), map_values(count))


def forwards_at_once():
    """A union that does not wait for the other side."""

    def step(state, event):
        if isinstance(event, Data):
            return state, [Data(event.time.time, event.value)]
        return state, [Watermark(event.time.time)]

    return Operator(None, step)


def swallows_watermarks():
    return Operator(None, lambda state, event: (state, [event] if is_data(event) else []))


def swallows_every_second_watermark():
    def step(is_second, event):
        if isinstance(event, Data):
            return is_second, [event]
        return not is_second, [event] if is_second else []

    return Operator(False, step)


def shifts_back():
    """A map that moves data to an earlier time."""

    def step(state, event):
        return state, [Data(event.time - 1, event.value) if is_data(event) else event]

    return Operator(None, step)


def forgets_incomparable():
    """A filter that keeps the last watermark only, as if times were numbers."""

    def step(last, event):
        if isinstance(event, Watermark):
            return event.time, [event]
        return last, [] if last is not None and not last <= event.time else [event]

    return Operator(None, step)


def mutates():
    """Keeps its state in a list that it appends to."""

    def step(held, event):
        held.append(event)
        return held, [event]

    return Operator([], step)


def counts_calls():
    """Keeps a count where nobody can take a snapshot of it."""
    calls = []

    def step(state, event):
        calls.append(event)
        return state, [Data(event.time, len(calls))]

    return Operator(None, step)


def raises():
    def step(state, event):
        return ("ab".index(event.value) if is_data(event) else state), [event]

    return Operator(None, step)


def emits_no_event():
    return Operator(None, lambda state, event: (state, [event.time]))


def is_data(event):
    return isinstance(event, Data)
