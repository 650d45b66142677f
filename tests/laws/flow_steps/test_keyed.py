"""One operator for many keys is one operator for each key."""

from hypothesis import given
from hypothesis import strategies as st

from cutwater.events import Data, Watermark
from cutwater.operators import accumulate, aggregates, batch, compose, histogram_total
from cutwater.operators.aggregate import aggregate
from cutwater.operators.keyed import Keyed
from cutwater.operators.notify import Notify, on_complete
from cutwater.operators.task import task
from cutwater.operators.windows import aggregate_windows, session, sliding
from cutwater.ordering import canonical

KEYS = st.sampled_from(["a", "b", 1, 2.5, None, ("a", 1)])
TIMES = st.integers(0, 6)


def count(n, value):
    return (None if (n + value) % 3 == 0 else n + 1), [(n, value)]


def receive(n, time, value):
    return (None if value == 0 else n + 1), [(n, value), Notify(time + value)]


def complete(n, time):
    return (None if n % 2 else n + 1), [("complete", n, time)]


def row(*columns):
    return columns


OPERATORS = {
    "batch": batch(),
    "batch, accumulate": compose(batch(), accumulate()),
    "histogram": histogram_total(),
    "task": task(count, 0),
    "expiring task": task(count, 0, expire_after=2),
    "on_complete": on_complete(receive, complete, 0),
    "aggregate by event": aggregate([aggregates.sum()], row),
    "aggregate by epoch": aggregate([aggregates.sum()], row, emit="epoch"),
    "sliding": aggregate_windows(sliding(3, every=2), [aggregates.collect()], row),
    "session": aggregate_windows(session(2), [aggregates.collect()], row),
    "task, aggregate by epoch": compose(
        task(count, 0), aggregate([aggregates.count()], row, emit="epoch")
    ),
    "windows, on_complete": compose(
        aggregate_windows(sliding(2, every=2), [aggregates.sum()], lambda _k, _s, _e, n: n),
        on_complete(receive, complete, 0),
    ),
}

ACTIONS = st.one_of(
    st.tuples(st.just("data"), KEYS, st.builds(Data, TIMES, st.integers(0, 4))),
    st.tuples(st.just("watermarks"), st.lists(TIMES, min_size=1, max_size=2)),
    st.tuples(st.just("barrier")),
)


def separately(op, actions):
    """Each action's outputs by key, from one operator per key that sees every watermark."""
    keys = sorted({canonical(a[1]): a[1] for a in actions if a[0] == "data"}.items())
    states = {}
    for action in [*actions, ("finish",)]:
        outputs = []
        for key_bytes, key in keys:
            state = states.get(key_bytes, op.start_for(key))
            events = []
            if action[0] == "data" and canonical(action[1]) == key_bytes:
                state, events = op.step(state, action[2])
            elif action[0] == "watermarks" and key_bytes in states:
                for time in action[1]:
                    state, more = op.step(state, Watermark(time))
                    events += [event for event in more if isinstance(event, Data)]
            elif action[0] == "barrier" and op.barrier:
                state, events = op.barrier(state)
            elif action[0] == "finish":
                events = list(op.finish(state))
            if key_bytes in states or (action[0] == "data" and canonical(action[1]) == key_bytes):
                states[key_bytes] = state
            outputs += [(key_bytes, event) for event in events]
        yield outputs


def together(op, actions):
    held = Keyed(op)
    for action in actions:
        if action[0] == "data":
            key_bytes = canonical(action[1])
            yield [(key_bytes, event) for event in held.data(action[1], key_bytes, action[2])]
            continue
        emitted = held.watermarks(action[1]) if action[0] == "watermarks" else held.barrier()
        yield [(key_bytes, event) for key_bytes, _, events in emitted for event in events]
    yield [(key_bytes, event) for key_bytes, _, events in held.finish() for event in events]


@given(st.sampled_from(sorted(OPERATORS)), st.lists(ACTIONS, max_size=20))
def test_together_is_separately_in_the_order_of_the_keys(name, actions):
    op = OPERATORS[name]
    assert list(together(op, actions)) == list(separately(op, actions))


@given(
    st.sampled_from(["batch", "task", "expiring task", "on_complete", "sliding", "session"]),
    st.lists(ACTIONS),
)
def test_a_key_is_kept_only_while_its_state_is_not_the_first(name, actions):
    op = OPERATORS[name]
    held = Keyed(op)
    for action in actions:
        if action[0] == "data":
            held.data(action[1], canonical(action[1]), action[2])
        elif action[0] == "watermarks":
            list(held.watermarks(action[1]))
        assert not any(op.is_blank(state) for _, state in held.states.values())
        assert held._busy == {k for k, (_, state) in held.states.items() if not op.is_idle(state)}


@given(st.sampled_from(sorted(OPERATORS)), st.lists(ACTIONS, max_size=12), TIMES)
def test_an_idle_state_is_one_that_a_watermark_leaves_alone(name, actions, time):
    op = OPERATORS[name]
    held = Keyed(op)
    for action in actions:
        if action[0] == "data":
            held.data(action[1], canonical(action[1]), action[2])
    for _, state in held.states.values():
        if op.is_idle(state):
            assert op.step(state, Watermark(time)) in [
                (state, [Watermark(time)]),
                (state, (Watermark(time),)),
            ]


def test_equal_keys_share_a_state_whatever_their_spelling():
    held = Keyed(task(lambda n, v: (n + 1, [n + 1]), 0))
    for key in (1, 1.0, True):
        outputs = held.data(key, canonical(key), Data(0, "x"))
    assert outputs == [Data(0, 3)]


def test_a_barrier_comes_to_keys_in_the_order_of_their_canonical_bytes():
    held = Keyed(aggregate([aggregates.sum()], row, emit="epoch"))
    keys = [f"key {n}" for n in range(100)]
    for key in reversed(keys):
        held.data(key, canonical(key), Data(1, 1))
    assert [key for _, key, _ in held.barrier()] == sorted(keys, key=canonical)


def test_watermarks_and_barriers_visit_many_keys_in_their_order():
    """So many that a set has them in another order, whatever the seed of its hashes is."""
    keys = [canonical(key) for key in range(60)]
    held = Keyed(OPERATORS["windows, on_complete"])
    counted = Keyed(OPERATORS["aggregate by epoch"])
    for key in reversed(range(60)):
        held.data(key, canonical(key), Data(1, 1))
        counted.data(key, canonical(key), Data(1, 1))
    assert [key_bytes for key_bytes, _, _ in held.watermarks([1])] == keys
    assert [key_bytes for key_bytes, _, _ in counted.barrier()] == keys
