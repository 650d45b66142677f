"""Which steps become one segment, for a dozen shapes of flows."""

from dataclasses import dataclass
from typing import Any

import pytest

import cutwater as cw
from cutwater.flow import plan
from cutwater.times import Left, Right


@dataclass(frozen=True)
class Item:
    name: str
    at: int


@cw.task(initial=0)
def count(state: int, item: Any) -> tuple[int, list[Item]]:
    return state + 1, []


def keep(item: Any) -> Any:
    return item


def pipeline(s):
    return s.map(keep, name="m").flat_map(keep, name="f").filter(keep, name="g")


def keyed(s):
    return s.map(keep, name="m").key_by("name", name="k").apply(count)


def keyed_through_map(s):
    return s.key_by("name", name="k").map(keep, name="m").filter(keep, name="g").apply(count)


def two_keyed_stateful_steps(s):
    return s.key_by("name", name="k").apply(count).map(keep, name="m").batch()


def key_change(s):
    return s.key_by("name", name="k").apply(count).key_by("at", name="l").batch()


def unkeyed_stateful(s):
    return s.map(keep, name="m").apply(count).map(keep, name="n").batch().filter(keep, name="g")


def fork(s):
    s.map(keep, name="m").sink("one")
    return s.map(keep, name="n")


def fork_behind_a_key(s):
    by_name = s.key_by("name", name="k")
    by_name.apply(count).sink("one")
    return by_name.batch().map(keep, name="m")


def diamond(s):
    return s.map(keep, name="m").merge(s.filter(keep, name="g"), name="both").map(keep, name="n")


def keyed_diamond(s):
    by_name = s.key_by("name", name="k")
    both = by_name.map(keep, name="m").merge(by_name.filter(keep, name="g"), name="both")
    return both.apply(count).batch()


def merge_before_a_key(s):
    return s.merge(s, name="both").map(keep, name="m").key_by("name", name="k").apply(count)


def merge_of_keyed_with_unkeyed(s):
    return s.key_by("name", name="k").merge(s, name="both").map(keep, name="m").apply(count)


def join(s):
    left, right = s.key_by("name", name="k"), s.key_by("name", name="l").map(keep, name="m")
    return left.join(right, lambda a, b: a, name="j").map(keep, name="n").batch()


def sink_in_the_middle(s):
    return s.map(keep, name="m").sink("one").map(keep, name="n")


def per_epoch_behind_what_waits(s):
    windows = (
        s.key_by("name", name="k").window(cw.tumbling(5)).aggregate(name="w", n=cw.agg.count())
    )
    return windows.map(keep, name="m").aggregate(name="e", emit="epoch", n=cw.agg.count()).batch()


def per_epoch_behind_what_does_not(s):
    counted = s.key_by("name", name="k").apply(count)
    return counted.aggregate(name="e", emit="epoch", n=cw.agg.count()).batch()


@cw.vectorised(initial=0)
def vector(state: int, item: Item, keys: cw.Keys) -> tuple[int, Item]:
    return state + keys.count(), item


def same(item: Item) -> Item:
    return item


def counted(s, name="a"):
    return s.aggregate(name=name, n=cw.agg.count())


def aggregate_among_maps(s):
    return counted(s.key_by("name", name="k").map(same, name="m")).map(keep, name="n")


def aggregate_of_an_unknown_type(s):
    return counted(s.key_by("name", name="k").map(keep, name="m")).map(keep, name="n")


def aggregate_between_tasks(s):
    return counted(s.key_by("name", name="k").apply(count).map(same, name="m")).batch()


def aggregate_behind_an_aggregate(s):
    return counted(counted(s.key_by("name", name="k")), "b").map(keep, name="n")


def aggregate_without_a_key(s):
    return counted(s.map(same, name="m")).map(keep, name="n")


def vectorised_among_maps(s):
    return s.key_by("name", name="k").map(same, name="m").apply(vector).map(keep, name="n")


def vectorised_between_tasks(s):
    return s.key_by("name", name="k").apply(count).apply(vector).map(keep, name="m").batch()


def vectorised_beside_an_aggregate(s):
    return counted(s.key_by("name", name="k").apply(vector))


# each segment: its steps, and where its events must be
SEGMENTS = {
    pipeline: ["s m f g: anywhere"],
    keyed: ["s m: anywhere", "k count: by key"],
    keyed_through_map: ["s: anywhere", "k m g count: by key"],
    two_keyed_stateful_steps: ["s: anywhere", "k count m batch: by key"],
    key_change: ["s: anywhere", "k count: by key", "l batch: by key"],
    unkeyed_stateful: ["s m: anywhere", "count n batch g: in one place"],
    fork: ["s: anywhere", "m: anywhere", "n: anywhere"],
    fork_behind_a_key: ["s: anywhere", "k: by key", "count: by key", "batch m: by key"],
    diamond: ["s: anywhere", "m: anywhere", "g: anywhere", "both n: anywhere"],
    keyed_diamond: [
        "s: anywhere",
        "k: by key",
        "m: by key",
        "g: by key",
        "both count batch: by key",
    ],
    merge_before_a_key: ["s: anywhere", "both m: anywhere", "k count: by key"],
    merge_of_keyed_with_unkeyed: [
        "s: anywhere",
        "k: by key",
        "both m: anywhere",
        "count: in one place",
    ],
    join: ["s: anywhere", "k: by key", "l m: by key", "j n batch: by key"],
    sink_in_the_middle: ["s m: anywhere", "n: anywhere"],
    per_epoch_behind_what_waits: ["s: anywhere", "k w m: by key", "e batch: by key"],
    aggregate_among_maps: ["s: anywhere", "k m: by key", "a: by key", "n: by key"],
    aggregate_of_an_unknown_type: ["s: anywhere", "k m a n: by key"],
    aggregate_between_tasks: ["s: anywhere", "k count m a batch: by key"],
    aggregate_behind_an_aggregate: ["s: anywhere", "k a b n: by key"],
    aggregate_without_a_key: ["s m: anywhere", "a: in one place", "n: in one place"],
    vectorised_among_maps: ["s: anywhere", "k m: by key", "vector: by key", "n: by key"],
    vectorised_between_tasks: [
        "s: anywhere",
        "k count: by key",
        "vector: by key",
        "m batch: by key",
    ],
    vectorised_beside_an_aggregate: ["s: anywhere", "k vector: by key", "a: by key"],
    per_epoch_behind_what_does_not: ["s: anywhere", "k count e batch: by key"],
}


def planned(shape, **options):
    flow = cw.Flow(shape.__name__)
    flow.sink("out", shape(flow.source("s", Item, time="at")))
    return plan(flow, **options)


def shown(segment):
    return f"{' '.join(step.name for step in segment.steps)}: {segment.placement}"


@pytest.mark.parametrize("shape", SEGMENTS, ids=lambda shape: shape.__name__)
def test_segments(shape):
    assert [shown(segment) for segment in planned(shape).segments] == SEGMENTS[shape]


@pytest.mark.parametrize("shape", SEGMENTS, ids=lambda shape: shape.__name__)
def test_every_step_is_in_one_segment_and_comes_after_what_it_reads(shape):
    for made in (planned(shape), planned(shape, fuse=False)):
        names = [step.name for segment in made.segments for step in segment.steps]
        steps = [step.name for step in made.flow.steps if step.verb != "sink"]
        assert sorted(names) == sorted(steps)
        for number, segment in enumerate(made.segments):
            assert segment.number == number
            assert all(edge.segment < number for edge in segment.inputs)
            assert all(
                made.segments[edge.segment].stage < segment.stage or segment.depth
                for edge in segment.inputs
            )


@pytest.mark.parametrize("shape", SEGMENTS, ids=lambda shape: shape.__name__)
def test_unfused_every_step_is_a_segment_with_the_rank_and_stage_of_its_chain(shape):
    fused, unfused = planned(shape), planned(shape, fuse=False)
    assert all(len(segment.steps) == 1 for segment in unfused.segments)
    for chain in fused.segments:
        names = [step.name for step in chain.steps]
        pieces = [seg for seg in unfused.segments if seg.name in names]
        assert {(seg.rank, seg.stage) for seg in pieces} == {(chain.rank, chain.stage)}
        assert [seg.depth for seg in pieces] == list(range(len(chain.steps)))


def test_readers_and_sinks_name_the_segments_that_feed_them():
    made = planned(join)
    assert made.readers == {0: ((1, 0), (2, 0)), 1: ((3, 0),), 2: ((3, 1),), 3: ()}
    assert [(sink.name, number) for sink, number in made.sinks] == [("out", 3)]


def test_a_join_gives_its_inputs_sides_and_a_merge_does_not():
    assert [edge.side for edge in planned(join).segments[-1].inputs] == [Left, Right]
    assert [edge.side for edge in planned(diamond).segments[-1].inputs] == [None, None]


def test_a_stream_merged_with_itself_is_read_twice():
    assert [edge.segment for edge in planned(merge_before_a_key).segments[1].inputs] == [0, 0]


@pytest.mark.parametrize(
    ("shape", "exchanges"),
    [
        (pipeline, []),
        (keyed, ["k"]),
        (key_change, ["k", "l"]),
        (unkeyed_stateful, ["count"]),
        (diamond, []),
        (join, ["j"]),
    ],
)
def test_events_are_brought_together_before_what_keeps_a_state(shape, exchanges):
    made = planned(shape)
    assert [seg.name for seg in made.segments if made.is_exchange(seg)] == exchanges


def test_a_key_is_one_field_alone_or_several_as_a_tuple():
    item = Item("a", 1)

    def key_of(*fields):
        return planned(lambda s: s.key_by(*fields)).segments[1].key(item)

    assert key_of("name") == "a"
    assert key_of("at", "name") == (1, "a")
    assert key_of(lambda item: item.at + 1) == 2
    assert planned(pipeline).segments[0].key is None


def test_a_flow_with_problems_has_no_plan():
    with pytest.raises(cw.FlowError, match="no-sink"):
        plan(cw.Flow("empty"))
