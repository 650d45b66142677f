"""Epochs, sinks, and the total order of a run."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.flows.random_flows import recipes

import cutwater as cw
from cutwater.events import Data
from cutwater.flow.fusing import plan
from cutwater.ordering import NO_KEY, canonical
from cutwater.semantics.flow_tasks import End, FlowTasks, Sent, TaskValue
from cutwater.semantics.frozen import Frozen
from cutwater.semantics.segments import Row
from cutwater.semantics.snapshots import refuse

B = cw.BARRIER


@dataclass(frozen=True)
class Item:
    key: Any
    at: int


@cw.task(initial=())
def history(seen: tuple[Any, ...], value: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Shows everything it saw, in order."""
    seen = (*seen, value)
    return seen, [seen]


def merged(names):
    """A flow that merges sources, defined in the given order, into one history."""
    flow = cw.Flow("merged")
    streams = [flow.source(name, Any) for name in names]
    flow.sink("out", streams[0].merge(*streams[1:]).apply(history))
    return flow


@pytest.mark.parametrize("names", [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]])
def test_within_an_epoch_sources_follow_one_another_by_name(names):
    inputs = {"c": ["c1", "c2"], "a": ["a1", B, "a2"], "b": [B, "b1"]}
    result = cw.simulate(merged(names), inputs)
    assert result["out"][-1] == ("a1", "c1", "c2", "a2", "b1")
    assert [len(epoch) for epoch in result.by_epoch("out")] == [3, 2, 0]


def test_the_order_of_the_inputs_mapping_makes_no_difference():
    inputs = {"a": [1, 2], "b": [3]}
    backwards = dict(reversed(inputs.items()))
    flow = merged(["a", "b"])
    assert cw.simulate(flow, inputs).events == cw.simulate(flow, backwards).events


@given(recipes(max_steps=4))
def test_a_run_can_be_repeated(recipe):
    """The same events, also from a flow that was built again."""
    first, again = (
        cw.simulate(flow, recipe.inputs, epoch_size=recipe.epoch_size)
        for flow in (recipe.flow(), recipe.flow())
    )
    assert first.events == again.events


@given(recipes(explicit=False))
def test_by_rule_every_sink_sees_a_monotone_stream(recipe):
    result = cw.simulate(recipe.flow(), recipe.inputs, epoch_size=recipe.epoch_size)
    for epochs in result.events.values():
        assert cw.monotone([event for epoch in epochs for event in epoch])


@given(recipes())
def test_every_sink_sees_a_monotone_stream_unless_records_wait_for_a_barrier(recipe):
    """Watermarks among the events may complete what an aggregate holds till the barrier."""
    if any(step.verb == "aggregate" and step.choice % 2 for step in recipe.steps):
        return
    result = cw.simulate(recipe.flow(), recipe.inputs, epoch_size=recipe.epoch_size)
    for epochs in result.events.values():
        assert cw.monotone([event for epoch in epochs for event in epoch])


KEYS = st.lists(st.one_of(st.integers(-300, 300), st.text(max_size=2)), max_size=8)


@given(KEYS)
def test_what_a_watermark_causes_is_ordered_by_the_canonical_bytes_of_the_keys(keys):
    flow = cw.Flow("keys")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.key_by("key").batch().map(lambda batch: batch[0][1].key))
    shown = cw.simulate(flow, {"items": [*(Item(key, 0) for key in keys), Item("", 9)]}).by_epoch(
        "out"
    )[0]
    assert shown == sorted(dict.fromkeys(keys), key=canonical)


def test_what_an_event_causes_stays_in_the_order_of_events_whatever_its_key():
    flow = cw.Flow("keys")
    flow.sink("out", flow.source("items", int).key_by(lambda n: -n).apply(history).map(max))
    assert cw.simulate(flow, {"items": [1, 3, 2]})["out"] == [1, 3, 2]


def test_a_fork_that_meets_again_gives_what_each_event_caused_in_the_order_of_steps():
    flow = cw.Flow("diamond")
    a = flow.source("a", int)
    late, early = a.map(lambda n: ("first", n)), a.map(lambda n: ("second", n))
    flow.sink("out", early.merge(late))
    assert cw.simulate(flow, {"a": [1, 2]})["out"] == [
        ("first", 1),
        ("second", 1),
        ("first", 2),
        ("second", 2),
    ]


def test_a_stream_merged_with_itself_comes_twice():
    flow = cw.Flow("twice")
    a = flow.source("a", int)
    flow.sink("out", a.merge(a))
    assert cw.simulate(flow, {"a": [1, 2]})["out"] == [1, 1, 2, 2]


def test_several_outputs_of_an_event_keep_their_order():
    flow = cw.Flow("many")
    flow.sink("out", flow.source("a", int).flat_map(lambda n: [n, -n, n]))
    assert cw.simulate(flow, {"a": [1, 2]})["out"] == [1, -1, 1, 2, -2, 2]


def test_what_completes_at_one_stage_comes_before_what_that_completes_at_the_next():
    """By hand: the batches of all keys, then what a step behind another key_by says of them."""
    flow = cw.Flow("stages")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    batches = items.key_by("key").batch().map(lambda batch: batch[0][1].key)
    told = batches.key_by(lambda key: "zyx".index(key)).on_complete(
        lambda s, t, key: (key, [("got", key), cw.Notify(t)]),
        lambda s, t: (s, [("told", s)]),
        initial="",
        name="told",
    )
    flow.sink("out", told)
    result = cw.simulate(
        flow, {"items": [Item("x", 0), Item("z", 0), Item("y", 0), B, Item("x", 5)]}
    )
    assert result.by_epoch("out") == [
        [],
        [*(("got", key) for key in "xyz"), *(("told", key) for key in "zyx")],
        [("got", "x"), ("told", "x")],
    ]


def test_a_key_is_forgotten_where_a_keyed_stream_meets_another():
    flow = cw.Flow("meeting")
    a = flow.source("a", int)
    flow.sink("out", a.key_by(lambda n: n % 2).merge(flow.source("b", int)).apply(history))
    assert cw.simulate(flow, {"a": [1, 2], "b": [3]})["out"] == [(1,), (1, 2), (1, 2, 3)]


def test_where_streams_of_one_key_meet_it_stays():
    flow = cw.Flow("meeting")
    a, b = (flow.source(name, Item).key_by("key").map(lambda i: i.at) for name in "ab")
    flow.sink("out", a.merge(b).apply(history))
    inputs = {"a": [Item(1, 10), Item(2, 20)], "b": [Item(1.0, 11), Item("1", 30)]}
    assert cw.simulate(flow, inputs)["out"] == [(10,), (20,), (10, 11), (30,)]


def test_epochs_are_counted_with_the_end_of_the_input():
    flow = cw.Flow("epochs")
    flow.sink("out", flow.source("a", int).merge(flow.source("b", int)))
    result = cw.simulate(flow, {"a": [1, B, 2], "b": [3, B, B, B, 4]})
    assert result.epochs == 5
    assert result.by_epoch("out") == [[1, 3], [2], [], [4], []]
    assert result["out"] == [1, 3, 2, 4]


def test_an_empty_input_has_one_epoch_and_its_end():
    flow = cw.Flow("empty")
    flow.sink("out", flow.source("a", int).batch())
    result = cw.simulate(flow, {"a": []})
    assert (result.epochs, result.events, result.late) == (2, {"out": [[], []]}, {"a": 0})


def test_a_stream_may_have_several_sinks():
    flow = cw.Flow("sinks")
    a = flow.source("a", int)
    for name in ("one", "two"):
        flow.sink(name, a)
    result = cw.simulate(flow, {"a": [1]})
    assert result["one"] == result["two"] == [1]


def test_the_end_finishes_every_step_behind_another():
    """What the first holds back is in the second's last words."""
    flow = cw.Flow("ends")
    flow.sink("out", flow.source("a", int, time=None).batch().batch(name="again").map(len))
    items = [cw.Data(1, 1), cw.Data(2, 2)]
    assert cw.simulate(flow, {"a": items}).by_epoch("out") == [[], [1]]


def test_a_task_that_waits_for_the_end_of_an_epoch_takes_its_rows_in_their_order():
    """Where a fork meets again by ways of two lengths, rows come in any order."""
    flow = cw.Flow("fork")
    a = flow.source("a", int)
    once = a.apply(history)
    twice = once.apply(history, name="again")
    flow.sink("out", twice.merge(once).apply(history, name="met"))
    tasks = FlowTasks(plan(flow, fuse=False), in_order=True)
    instance = next(one for one in tasks.instances.values() if one.is_sorting)
    stream, *others = instance.streams
    rows = [Row((0, 0, n), None, NO_KEY, Data(None, n)) for n in range(3)]

    def result(given):
        value, sent = TaskValue(instance.start(refuse)), []
        words = [Sent(stream, row) for row in given]
        for word in [*words, *(End(name) for name in (stream, *others))]:
            value, more = tasks.work(instance, value, Frozen(word))
            sent += more
        return [frozen.thaw() for frozen in sent]

    assert len(result(rows)) > 3
    assert result(rows[::-1]) == result(rows)
