"""What each step means, recomputed from the list of all inputs."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.operators.orders import keep_monotone, one_sided

import cutwater as cw
from cutwater.flow import plan
from cutwater.operators import produce, union
from cutwater.semantics.simulator import _Run
from cutwater.times import Left, Right, maximal

B = cw.BARRIER


@dataclass(frozen=True)
class Item:
    key: str
    at: int
    size: int


ITEMS = st.builds(Item, st.sampled_from("abc"), st.integers(-5, 15), st.integers(0, 9))
EPOCHS = st.lists(st.lists(ITEMS, max_size=5), max_size=4)


def with_barriers(epochs):
    return [x for epoch in epochs for x in [*epoch, B]]


def on_time(epochs, delay):
    """The items of each epoch that are not late, by the definition; and what is complete after."""
    newest, kept = None, []
    for epoch in epochs:
        limit = None if newest is None else newest - delay
        kept.append([item for item in epoch if limit is None or item.at >= limit])
        newest = max(
            [*(i.at for i in kept[-1]), *([] if newest is None else [newest])], default=None
        )
        yield kept[-1], None if newest is None else newest - delay - 1


def run(build, epochs, delay=3, **sources):
    flow = cw.Flow("steps")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(delay))
    flow.sink("out", build(items))
    return cw.simulate(flow, {"items": with_barriers(epochs)})


@cw.task(initial=())
def history(seen: tuple[int, ...], item: Item) -> tuple[tuple[int, ...] | None, list[Any]]:
    """Shows the sizes it saw; a 0 deletes the key."""
    seen = (*seen, item.size)
    return (None if item.size == 0 else seen), [(item.key, seen)]


@given(EPOCHS)
def test_a_task_keeps_a_state_for_each_key_until_it_returns_none(epochs):
    seen, expected = defaultdict(tuple), []
    for item in (item for kept, _ in on_time(epochs, 3) for item in kept):
        seen[item.key] = (*seen[item.key], item.size)
        expected.append((item.key, seen[item.key]))
        if item.size == 0:
            del seen[item.key]
    assert run(lambda s: s.key_by("key").apply(history), epochs)["out"] == expected


@given(EPOCHS, st.integers(0, 6))
def test_a_state_expires_by_event_time_alone(epochs, expire_after):
    seen, newest, expected = defaultdict(tuple), {}, []
    for kept, complete in on_time(epochs, 3):
        for item in kept:
            seen[item.key] = (*seen[item.key], item.size)
            newest[item.key] = max(item.at, newest.get(item.key, item.at))
            expected.append((item.key, seen[item.key]))
            if item.size == 0:
                del seen[item.key], newest[item.key]
        for key in [k for k, at in newest.items() if at + expire_after <= complete]:
            del seen[key], newest[key]
    found = run(lambda s: s.key_by("key").apply(history, expire_after=expire_after), epochs)
    assert found["out"] == expected


@given(EPOCHS)
def test_a_keyed_batch_is_what_an_epoch_completed_of_a_key(epochs):
    held, expected = [], []
    for kept, complete in on_time(epochs, 3):
        held += kept
        done = [] if complete is None else [item for item in held if item.at <= complete]
        held = [item for item in held if item not in done]
        by_key = {key: [i for i in done if i.key == key] for key in sorted({i.key for i in done})}
        expected.append([tuple((i.at, i) for i in items) for items in by_key.values()])
    assert run(lambda s: s.key_by("key").batch(), epochs).by_epoch("out")[: len(epochs)] == expected


@given(EPOCHS)
def test_a_histogram_over_numbers_is_the_general_one(epochs):
    """By annotation the first has a total order; the second is told nothing of its times."""
    known = run(lambda s: s.map(lambda i: i.size).histogram(), epochs)

    flow = cw.Flow("general")
    values = flow.source("sizes", Any)
    flow.sink("out", values.histogram(unbounded=True))
    source = run(lambda s: s.map(lambda i: i.size), epochs).events["out"]
    general = cw.simulate(flow, {"sizes": [x for epoch in source for x in [*epoch, B]]})
    assert [e for epoch in known.events["out"] for e in epoch] == [
        e for epoch in general.events["out"] for e in epoch
    ]


def test_a_histogram_over_numbers_keeps_one_count():
    flow = cw.Flow("histogram")
    flow.sink("out", flow.source("items", Item, time="at").map(lambda i: i.key).histogram())
    running = _Run(plan(flow))
    items = [Item("a", n, 0) for n in range(5)]
    running.run({"items": [*items, cw.Watermark(3)]}, None)
    ((_, state),) = running.nodes[-1].work.keyed.states.values()
    count, held = state
    assert (count, list(held)) == (Counter("aaaa"), [(4, "a")])


@given(EPOCHS)
def test_a_histogram_counts_all_at_or_before_each_completed_time(epochs):
    everything = [item for kept, _ in on_time(epochs, 3) for item in kept]
    result = run(lambda s: s.map(lambda i: i.size).histogram(), epochs)
    shown = [e for epoch in result.events["out"] for e in epoch if isinstance(e, cw.Data)]
    assert Counter(e.time for e in shown) == Counter({i.at for i in everything})
    for event in shown:
        assert event.value == Counter(i.size for i in everything if i.at <= event.time)


@given(EPOCHS, EPOCHS)
def test_a_join_is_every_pair_of_one_key_and_one_time(lefts, rights):
    flow = cw.Flow("join")
    left, right = (
        flow.source(name, Item, time="at", watermark=cw.bounded_delay(3)).key_by("key")
        for name in "lr"
    )
    flow.sink("out", left.join(right, lambda a, b: None if a.size == b.size else (a, b)))
    result = cw.simulate(flow, {"l": with_barriers(lefts), "r": with_barriers(rights)})
    kept = [[i for epoch, _ in on_time(side, 3) for i in epoch] for side in (lefts, rights)]
    expected = Counter(
        (a, b)
        for a in kept[0]
        for b in kept[1]
        if (a.key, a.at) == (b.key, b.at) and a.size != b.size
    )
    assert Counter(result["out"]) == expected
    shown = [e for epoch in result.events["out"] for e in epoch if isinstance(e, cw.Data)]
    assert all(event.time == event.value[0].at for event in shown)


@given(st.lists(ITEMS, max_size=8), st.lists(ITEMS, max_size=8))
def test_a_join_frees_what_is_complete_on_both_sides(lefts, rights):
    flow = cw.Flow("join")
    left, right = (flow.source(name, Item, time="at").key_by("key") for name in "lr")
    flow.sink("out", left.join(right, lambda a, b: (a, b)))
    running = _Run(plan(flow))
    running.run({"l": [*lefts, cw.Watermark(20)], "r": [*rights, cw.Watermark(7)]}, None)
    joining = next(node for node in running.nodes if node.segment.name == "join")
    held = {side.time for _, state in joining.work.keyed.states.values() for side, _ in state}
    assert held == {item.at for item in [*lefts, *rights] if item.at > 7}


@st.composite
def two_streams(draw):
    times = st.sampled_from(draw(one_sided()))
    data = st.builds(cw.Data, times, st.sampled_from("abc"))
    events = st.lists(data | st.builds(cw.Watermark, times), max_size=8)
    return [keep_monotone(draw(events)) for _ in range(2)]


def telling(events):
    """The events without watermarks that say no more than others next to them or before."""
    found, known = [], []
    for is_mark, group in groupby(events, lambda event: isinstance(event, cw.Watermark)):
        if not is_mark:
            found += group
            continue
        new = {t for t in maximal([e.time for e in group]) if not any(t <= k for k in known)}
        known += new
        found += [new] if new else []
    return found


@given(two_streams())
def test_union_is_merge_and_both_are_the_operator(streams):
    """The operator reads the left stream, then the right one, as an epoch does.

    Of watermarks that become common together, a flow sends on those that say most.
    """

    def met(build):
        flow = cw.Flow("meeting")
        a, b = flow.source("a", str), flow.source("b", str)
        flow.sink("out", build(a, b))
        return cw.simulate(flow, dict(zip("ab", streams, strict=True))).events["out"][0]

    def on(side, event):
        time = side(event.time)
        return cw.Data(time, event.value) if isinstance(event, cw.Data) else cw.Watermark(time)

    sided = [
        on(side, e) for side, events in zip((Left, Right), streams, strict=True) for e in events
    ]
    expected = list(produce(union(), sided))
    assert telling(met(lambda a, b: a.union(b))) == telling(expected)
    assert telling(met(lambda a, b: a.merge(b))) == telling(expected)


def test_a_merge_of_different_types_has_them_all():
    flow = cw.Flow("merge")
    numbers, words, items = flow.source("a", int), flow.source("b", str), flow.source("c", Item)
    flow.sink("out", numbers.merge(words, items))
    item = Item("a", 1, 2)
    assert cw.simulate(flow, {"a": [1], "b": ["x", "y"], "c": [item]})["out"] == [1, "x", "y", item]


@given(EPOCHS)
def test_running_aggregates_are_those_of_all_of_the_key_so_far(epochs):
    def counted(s):
        return s.key_by("key").aggregate(
            n=cw.agg.count(), total=cw.agg.sum("size"), low=cw.agg.min("at")
        )

    seen, expected = defaultdict(list), []
    for item in (item for kept, _ in on_time(epochs, 3) for item in kept):
        items = seen[item.key]
        items.append(item)
        expected.append(
            (item.key, len(items), sum(i.size for i in items), min(i.at for i in items))
        )
    found = run(counted, epochs)["out"]
    assert [(r.key, r.n, r.total, r.low) for r in found] == expected


@given(EPOCHS)
def test_by_epoch_there_is_one_record_for_each_key_that_the_epoch_touched(epochs):
    seen, expected = Counter(), []
    for kept, _ in on_time(epochs, 3):
        seen.update(item.key for item in kept)
        touched = sorted({item.key for item in kept})
        last = {item.key: item.at for item in kept}
        expected.append([(last[key], key, seen[key]) for key in touched])
    result = run(lambda s: s.key_by("key").aggregate(emit="epoch", n=cw.agg.count()), epochs)
    shown = [
        [(e.time, e.value.key, e.value.n) for e in epoch if isinstance(e, cw.Data)]
        for epoch in result.events["out"]
    ]
    assert shown[: len(epochs)] == expected
    assert shown[-1] == []


def test_the_columns_of_a_record_are_key_bounds_and_aggregates():
    item = Item("a", 12, 3)
    two_keys = run(lambda s: s.key_by("key", "size").aggregate(n=cw.agg.count()), [[item]])["out"]
    assert [repr(record) for record in two_keys] == ["Aggregate(key='a', size=3, n=1)"]
    by_function = run(lambda s: s.key_by(lambda i: i.at).aggregate(n=cw.agg.count()), [[item]])[
        "out"
    ]
    assert [repr(record) for record in by_function] == ["Aggregate(key=12, n=1)"]
    unkeyed = run(
        lambda s: s.window(cw.tumbling(5)).aggregate(name="per_five", n=cw.agg.count()), [[item]]
    )["out"]
    assert [repr(record) for record in unkeyed] == ["PerFive(window_start=10, window_end=15, n=1)"]


@given(EPOCHS, st.integers(1, 6), st.integers(1, 6))
def test_windows_hold_what_is_on_time_and_come_with_the_epoch_that_completes_them(
    epochs, size, every
):
    kept = list(on_time(epochs, 3))
    everything = [item for items, _ in kept for item in items]
    expected = [[] for _ in range(len(epochs) + 1)]
    for key in sorted({item.key for item in everything}):
        for start in sorted({n * every for n in range(-40, 40)}):
            inside = [i.size for i in everything if i.key == key and start <= i.at < start + size]
            complete = [
                n
                for n, (_, mark) in enumerate(kept)
                if mark is not None and start + size - 1 <= mark
            ]
            if inside:
                epoch = complete[0] if complete else len(epochs)
                expected[epoch].append((key, start, start + size, inside))

    def windows(s):
        return (
            s.key_by("key")
            .window(cw.sliding(size, every=every))
            .aggregate(sizes=cw.agg.collect("size"))
        )

    shown = run(windows, epochs).by_epoch("out")
    shown = [[(r.key, r.window_start, r.window_end, r.sizes) for r in epoch] for epoch in shown]
    assert [*shown[: len(epochs)], shown[-1]] == expected


@given(EPOCHS)
def test_on_complete_is_called_once_for_each_time_of_a_key_after_all_its_events(epochs):
    def receive(held: tuple[Item, ...], time, item):
        return (*held, item), [cw.Notify(time)]

    def complete(held, time):
        return held, [(time, tuple(i for i in held if i.at <= time))]

    result = run(lambda s: s.key_by("key").on_complete(receive, complete, initial=()), epochs)
    everything = [item for items, _ in on_time(epochs, 3) for item in items]
    expected = Counter()
    for key, at in {(item.key, item.at) for item in everything}:
        expected[(at, tuple(i for i in everything if i.key == key and i.at <= at))] += 1
    assert Counter(result["out"]) == expected
    for epoch in result.by_epoch("out"):
        for _, told in groupby(epoch, key=lambda pair: pair[1][0].key):
            times = [time for time, _ in told]
            assert times == sorted(times)
