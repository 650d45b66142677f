"""Frontiers of steps: equal to what segments are told, and held by what is least."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.job.spec import Job
from cutwater.spark.telemetry.frontiers import FrontierTracker, Position
from cutwater.spark.telemetry.topology import FlowShape, read_topology, topology_of, write_topology


@dataclass(frozen=True)
class Item:
    name: str
    at: int


def job():
    """Two sources meet in one step, and all three in the next."""
    flow = cw.Flow("meeting")
    rule = cw.bounded_delay(2)
    a, b, c = (flow.source(name, Item, time="at", watermark=rule) for name in "abc")
    early = a.merge(b).key_by("name").window(cw.tumbling(10)).aggregate(n=cw.agg.count(), name="ab")
    flow.sink("early", early)
    every = a.merge(b, c).key_by("name").window(cw.tumbling(4))
    flow.sink("all", every.aggregate(n=cw.agg.count(), name="abc"))
    return Job(flow, {name: JsonLines(name) for name in "abc"}, {}, "", 0, 16, "")


JOB = job()
TOPOLOGY = topology_of(JOB)
marks = st.fixed_dictionaries({name: st.none() | st.integers(0, 5) for name in "abc"})


def segment(name):
    return next(s for s in JOB.plan.segments if any(step.name == name for step in s.steps))


@given(st.lists(marks, min_size=1, max_size=4))
def test_a_frontier_is_what_its_segment_sees_as_complete(moves):
    tracker = FrontierTracker(TOPOLOGY)
    for at in moves:
        tracker.move([Position(name, completed=mark) for name, mark in at.items()])
        found = {f.step: f for f in tracker.steps()}
        known = {name: mark for name, mark in at.items() if mark is not None}
        for step in ("ab", "abc"):
            assert found[step].completed == JOB.requirements.completed(segment(step), known)
            least = min((-1 if at[name] is None else at[name]) for name in step)
            held = [name for name in step if (-1 if at[name] is None else at[name]) == least]
            assert sorted(holder.source for holder in found[step].holders) == held


@given(marks, st.integers(0, 6))
def test_a_time_is_held_by_just_the_sources_that_have_not_completed_it(at, asked):
    tracker = FrontierTracker(TOPOLOGY)
    tracker.move([Position(name, completed=mark) for name, mark in at.items()])
    found = {f.step: f for f in tracker.steps(str(asked))}
    behind = [name for name in "abc" if at[name] is None or at[name] < asked]
    assert sorted(holder.source for holder in found["abc"].holders) == behind
    assert found["abc"].is_complete == (not behind)


def test_a_source_that_follows_the_others_is_named_after_them():
    """Metrics and the live view name the first holder, and only the others can move."""
    tracker = FrontierTracker(TOPOLOGY)
    tracker.move([Position("a", completed=3, follows=True), Position("b", completed=3)])
    found = {f.step: f for f in tracker.steps()}
    assert [holder.source for holder in found["ab"].holders] == ["b", "a"]


@given(st.integers(0, 40))
def test_the_next_end_is_that_of_the_first_window_that_is_not_complete(completed):
    tracker = FrontierTracker(TOPOLOGY)
    tracker.move([Position(name, completed=completed) for name in "abc"])
    found = {f.step: f.next_end for f in tracker.steps()}
    ends = {step: [size * n for n in range(1, 50)] for step, size in (("ab", 10), ("abc", 4))}
    for step in ("ab", "abc"):
        assert found[step] == next(end for end in ends[step] if end - 1 > completed)


def in_loops():
    """A loop in a loop, whose steps wait for times; both iterate inside an epoch."""
    flow = cw.Flow("loops")
    rule = cw.bounded_delay(0)
    a, b = (flow.source(name, Item, time="at", watermark=rule) for name in "ab")

    def keep(kept, time, item):
        return kept, [cw.Notify(time)]

    def tell(kept, time):
        return kept, []

    def inner(stream):
        return stream.on_complete(keep, tell, initial=0, name="told")

    def outer(stream):
        kept = stream.filter(lambda item: item.at > 3, name="kept")
        return kept.iterate(inner, name="inside")

    flow.sink("out", a.merge(b, name="both").iterate(outer, name="around"))
    return Job(flow, {name: JsonLines(name) for name in "ab"}, {}, "", 0, 16, "")


@given(marks, st.none() | st.integers(0, 6))
def test_steps_in_loops_are_held_as_the_loop_that_iterates_inside_an_epoch(at, asked):
    tracker = FrontierTracker(topology_of(in_loops()))
    tracker.move([Position(name, completed=at[name]) for name in "ab"])
    found = {f.step: f for f in tracker.steps(asked and str(asked))}
    loops = [(f.step, f.depth) for f in found.values() if f.depth or f.step == "around"]
    assert loops == [("around", 0), ("kept", 1), ("inside", 1), ("told", 2)]
    assert [name for name, f in found.items() if f.waits] == ["around", "inside", "told"]
    for name in ("kept", "inside", "told"):
        assert found[name].completed == found["around"].completed
        assert found[name].holders == found["around"].holders
        assert found[name].is_complete == found["around"].is_complete
    assert topology_of(in_loops()).downstream_of("around") == {
        "around",
        "kept",
        "inside",
        "told",
        "out",
    }


def test_a_checkpoint_keeps_the_bodies_of_loops(tmp_path):
    topology = topology_of(in_loops())
    write_topology(tmp_path, topology)
    assert read_topology(tmp_path) == topology


def test_a_checkpoint_keeps_the_topology(tmp_path):
    write_topology(tmp_path, TOPOLOGY)
    found = read_topology(tmp_path)
    assert isinstance(found, FlowShape)
    assert found == TOPOLOGY
