"""A state that is not due takes a watermark as an idle one does: nothing comes of it."""

from hypothesis import given
from hypothesis import strategies as st

from cutwater.events import Data, Watermark
from cutwater.operators import aggregates as agg
from cutwater.operators import (
    batch,
    compose,
    fproduce,
    histogram,
    histogram_paths,
    histogram_total,
    incr_batch,
    map_values,
)
from cutwater.operators.join_by_time import join_by_time
from cutwater.operators.notify import Notify, on_complete
from cutwater.operators.task import task
from cutwater.operators.windows import aggregate_windows, session, sliding, tumbling
from cutwater.times import Left, Right


def windows(window):
    return aggregate_windows(window, [agg.collect()], lambda key, *row: row)


def receive(count, time, value):
    return count + 1, [Notify(time + value % 3)]


def complete(count, time):
    return count + 1, [count, *([Notify(time + 2)] if count % 2 else [])]


def counted(count, value):
    return count + 1, [count]


OPERATORS = {
    "batch": batch(),
    "batch of batches": compose(batch(), batch()),
    "incr_batch": incr_batch(),
    "histogram": histogram(),
    "histogram_paths": histogram_paths(),
    "histogram_total": histogram_total(),
    "tumbling": windows(tumbling(3)),
    "sliding": windows(sliding(4, every=2)),
    "session": windows(session(2)),
    "windows of windows": compose(
        windows(tumbling(2)), map_values(lambda _, row: len(row)), windows(session(3))
    ),
    "on_complete": on_complete(receive, complete, 0),
    "expiring": task(counted, 0, expire_after=2),
    "expiring behind a window": compose(windows(tumbling(2)), task(counted, 0, expire_after=3)),
    "join": join_by_time(lambda a, b: (a, b)),
}
EVENTS = st.lists(
    st.one_of(
        st.builds(Data, st.integers(0, 12), st.integers(0, 5)),
        st.builds(Watermark, st.integers(0, 12)),
    ),
    max_size=10,
)


def sided(events):
    """The data of a join, left and right in turn."""
    return [
        Data((Left, Right)[number % 2](event.time), event.value)
        if isinstance(event, Data)
        else event
        for number, event in enumerate(events)
    ]


@given(st.sampled_from(sorted(OPERATORS)), EVENTS, st.integers(0, 15))
def test_a_watermark_before_it_is_due_changes_nothing(name, events, watermark):
    op = OPERATORS[name]
    evolved, _ = fproduce(op, sided(events) if name == "join" else events)
    state = evolved.initial
    if op.is_idle(state):
        return
    assert op.due is not None
    due = op.due(state)
    if due is None or not due <= watermark:
        assert due is not None, "each of these knows when it is due"
        later, outputs = op.step(state, Watermark(watermark))
        assert (later, list(outputs)) == (state, [Watermark(watermark)])


@given(st.sampled_from(sorted(OPERATORS)), EVENTS)
def test_a_watermark_that_is_due_does_something(name, events):
    op = OPERATORS[name]
    evolved, _ = fproduce(op, sided(events) if name == "join" else events)
    state = evolved.initial
    if not op.is_idle(state):
        due = op.due(state)
        later, outputs = op.step(state, Watermark(due))
        assert later != state or len(list(outputs)) > 1
