from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.operators.orders import closure
from support.progress.graphs import clock, graphs, is_every_cycle_positive, run_on

from cutwater.errors import InputError
from cutwater.progress import EGRESS, FEEDBACK, INGRESS, Edge, Graph, Holder, Progress, add
from cutwater.times import Antichain, Product

LOOP = [
    Edge("in", None, "enter"),
    Edge("first", "enter", "work", (INGRESS,)),
    Edge("again", "work", "feedback"),
    Edge("next", "feedback", "work", (FEEDBACK,)),
    Edge("done", "work", "leave"),
    Edge("out", "leave", None, (EGRESS,)),
]


def loop():
    return Progress(Graph(LOOP))


def r(t, *rounds):
    return Product(t, rounds)


@given(graphs(back=3), st.integers(0, 2**32), st.sampled_from([1, 3, 10]))
def test_frontiers_equal_the_clock_computed_from_scratch(drawn, seed, every):
    """Also where frontiers are asked for only now and then, and changes add up meanwhile."""
    assume(is_every_cycle_positive(drawn.graph))
    progress, live = Progress(drawn.graph), Counter()
    for n, (location, time, change) in enumerate(run_on(drawn, seed, 30)):
        progress.update(location, time, change)
        live[location, time] += change
        if n % every == 0:
            expected = clock(drawn.graph, live)
            assert {x: progress.frontier(x) for x in drawn.graph.locations} == expected
            for x, frontier in expected.items():
                if drawn.graph.depth[x] == drawn.graph.depth[location]:
                    assert progress.is_complete(x, time) == (not frontier.less_equal(time))


@given(graphs(back=3), st.integers(0, 2**32))
def test_the_frontiers_that_moved_are_those_that_differ(drawn, seed):
    assume(is_every_cycle_positive(drawn.graph))
    progress = Progress(drawn.graph)
    before = {x: Antichain() for x in drawn.graph.locations}
    for location, time, change in run_on(drawn, seed, 20):
        progress.update(location, time, change)
        after = {x: progress.frontier(x) for x in drawn.graph.locations}
        assert progress.moved() == {x: f for x, f in after.items() if f != before[x]}
        before = after


@given(graphs(back=2), st.integers(0, 2**32))
def test_holders_are_the_pointstamps_that_could_result_in_it(drawn, seed):
    assume(is_every_cycle_positive(drawn.graph))
    progress, live = Progress(drawn.graph), Counter()
    for location, time, change in run_on(drawn, seed, 12):
        progress.update(location, time, change)
        live[location, time] += change
    for y in drawn.graph.locations:
        for (x, t), count in live.items():
            for u in progress.frontier(y):
                held = [h for h in progress.holders(y, u) if (h.location, h.time) == (x, t)]
                could = count and drawn.graph.could_result_in(x, t, y, u)
                assert [h.count for h in held] == ([count] if could else [])
                for holder in held:
                    assert (holder.path[0], holder.path[-1]) == (x, y)
                    assert holder.arrival <= u


def test_the_empty_graph_holds_nothing():
    progress = loop()
    assert progress.frontier("out") == Antichain()
    assert progress.is_complete("out", 0)
    assert progress.holders("out", 0) == []
    assert progress.moved() == {}


def test_a_loop_is_left_when_no_round_of_a_time_remains():
    """All rounds of a time are no finite set of watermarks: the frontier outside says it."""
    progress = loop()
    progress.update("in", 1, +1)
    assert progress.frontier("out") == Antichain([1])
    progress.update("first", r(1, 0), +1)
    progress.update("in", 1, -1)
    for n in range(5):
        assert not progress.is_complete("out", 1)
        progress.update("next", r(1, n + 1), +1)
        progress.update("next" if n else "first", r(1, n), -1)
        assert progress.frontier("work") == Antichain([r(1, n + 1)])
    progress.update("next", r(1, 5), -1)
    assert progress.is_complete("out", 1)


def test_several_input_times_turn_at_once():
    progress = loop()
    progress.update("next", r(1, 7), +1)
    progress.update("next", r(2, 3), +1)
    assert progress.frontier("work") == Antichain([r(1, 7), r(2, 3)])
    assert progress.frontier("out") == Antichain([1])
    progress.update("next", r(1, 7), -1)
    assert progress.frontier("out") == Antichain([2])


def test_an_empty_batch_holds_nothing():
    """A case of the field: what was sent and holds no records must not hold the frontier."""
    progress = loop()
    progress.update("in", 1, 0)
    assert progress.frontier("out") == Antichain()
    assert list(progress.live()) == []


def test_what_has_moved_and_moved_back_has_not_moved():
    progress = loop()
    progress.update("next", r(1, 7), +1)
    assert progress.moved().keys() == {
        "again", "done", "feedback", "leave", "next", "out", "work"
    }  # fmt: skip
    progress.update("next", r(1, 5), +1)
    assert progress.frontier("work") == Antichain([r(1, 5)])
    progress.update("next", r(1, 5), -1)
    assert progress.frontier("work") == Antichain([r(1, 7)])
    assert progress.moved() == {}


def test_holders_name_the_path():
    progress = loop()
    progress.update("in", 4, +2)
    progress.update("next", r(3, 6), +1)
    progress.update("next", r(9, 0), +1)
    assert progress.holders("out", 5) == [
        Holder("next", r(3, 6), 1, ("next", "work", "done", "leave", "out"), 3),
        Holder("in", 4, 2, ("in", "enter", "first", "work", "done", "leave", "out"), 4),
    ]


# From n to m in a loop: at once into the first round of the next time, or by two nodes into the
# next round of the same time. For some rounds the one is earlier, for others the other.
TWO_WAYS = [
    Edge("in", None, "n"),
    Edge("short", "n", "m", (EGRESS.then(INGRESS).then(add(1)),)),
    Edge("first", "n", "x"),
    Edge("long", "x", "m", (FEEDBACK,)),
]


@pytest.mark.parametrize(
    ("time", "path", "arrival"),
    [
        (r(4, 9), ("n", "short", "m"), r(4, 0)),  # both come before this one
        (r(4, 6), ("n", "short", "m"), r(4, 0)),
        (r(3, 7), ("n", "first", "x", "long", "m"), r(3, 7)),
    ],
)
@pytest.mark.parametrize("edges", [TWO_WAYS, TWO_WAYS[::-1]])
def test_a_holder_is_named_with_its_nearest_path(edges, time, path, arrival):
    """Of the paths by which it could result in the time; one that comes only later is none."""
    progress = Progress(Graph(edges))
    progress.update("n", r(3, 6), +1)
    assert progress.frontier("m") == Antichain([r(3, 7), r(4, 0)])
    assert progress.holders("m", time) == [Holder("n", r(3, 6), 1, path, arrival)]


def test_incomparable_times_are_held_one_by_one():
    bottom, left, right, _ = closure(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    progress = Progress(Graph([Edge("in", None, "n"), Edge("out", "n", None)]))
    progress.update("in", left, 1)
    progress.update("in", right, 1)
    assert progress.frontier("out") == Antichain([left, right])
    progress.update("n", bottom, 1)
    assert progress.frontier("out") == Antichain([bottom])
    assert progress.frontier("in") == Antichain([left, right])
    progress.update("n", bottom, -1)
    progress.update("in", left, -1)
    assert progress.moved()["out"] == Antichain([right])


@pytest.mark.parametrize(
    ("location", "time", "change", "sentence"),
    [
        ("in", 3, -1, r"\[fewer-than-none\] 'in' has 1 at 3, fewer than the 2 to be removed"),
        ("out", 3, -1, r"\[fewer-than-none\] 'out' has 0 at 3, fewer than the 1 to be removed"),
        ("next", 3, 1, r"\[wrong-depth\] 'next' is in 1 loop, and 3 has 0 rounds"),
        ("in", r(3, 1), 1, r"\[wrong-depth\] 'in' is in 0 loops, and .* has 1 round\n"),
        ("nowhere", 3, 1, r"\[unknown-location\] there is no location 'nowhere'"),
    ],
)
def test_a_change_that_cannot_be(location, time, change, sentence):
    progress = loop()
    progress.update("in", 3, 1)
    change = change - 1 if location == "in" and change < 0 else change
    with pytest.raises(InputError, match=sentence):
        progress.update(location, time, change)
    assert progress.frontier("out") == Antichain([3])


def test_asking_for_a_location_that_is_not_there():
    for ask in (
        loop().frontier,
        lambda x: loop().is_complete(x, 0),
        lambda x: loop().holders(x, 0),
    ):
        with pytest.raises(InputError, match="there is no location 'nowhere'"):
            ask("nowhere")


def test_asking_for_a_time_that_a_location_cannot_have():
    for ask in (loop().is_complete, loop().holders):
        with pytest.raises(InputError, match="'next' is in 1 loop, and 3 has 0 rounds"):
            ask("next", 3)


def test_nothing_is_kept_of_what_is_over():
    """The cost of an update depends on what is live, not on how many came before."""
    progress = loop()
    for t in range(200):
        progress.update("in", t, 1)
        progress.update("next", r(t, 0), 1)
        progress.frontier("out")
        progress.update("in", t, -1)
        progress.update("next", r(t, 0), -1)
        progress.frontier("out")
    kept = [
        minima
        for state in progress._states.values()
        for minima in (state.local, state.reached)
        if minima
    ]
    assert [(m.entries, m.elements, m.pending) for m in kept] == [({}, [], [])] * len(kept)
    assert progress._queue == []


class CountedTime(int):
    """A time that counts how often it is compared."""

    compared = 0

    def __le__(self, other):
        CountedTime.compared += 1
        return int(self) <= int(other)


def comparisons(updates, live):
    """How many comparisons the last hundred of so many updates take."""
    progress = Progress(Graph([Edge(f"e{i}", f"n{i}", f"n{i + 1}") for i in range(10)]))
    for t in range(live):
        progress.update("n0", CountedTime(t), 1)
    for t in range(live, updates):
        if t == updates - 100:
            progress.frontier("n10")
            CountedTime.compared = 0
        progress.update("n0", CountedTime(t), 1)
        progress.update("n0", CountedTime(t - live), -1)
        progress.frontier("n10")
    return CountedTime.compared


def test_work_does_not_grow_with_the_updates_that_came_before():
    assert comparisons(updates=400, live=10) == comparisons(updates=4_000, live=10)


def test_a_change_that_moves_no_frontier_is_not_passed_on():
    """Only as far as frontiers change: a later time behind an earlier one is no news."""
    progress = Progress(Graph([Edge(f"e{i}", f"n{i}", f"n{i + 1}") for i in range(10)]))
    progress.update("n9", CountedTime(0), 1)
    progress.update("n0", CountedTime(5), 1)
    progress.frontier("n10")
    CountedTime.compared = 0
    progress.update("n0", CountedTime(7), 1)
    progress.frontier("n10")
    assert CountedTime.compared == 1


def compared_when_moved_upstream(length):
    """Comparisons for a message that goes from the middle of a chain back to its start."""
    progress = Progress(Graph([Edge(f"e{i}", f"n{i}", f"n{i + 1}") for i in range(length)]))
    progress.update("n5", CountedTime(1), 1)
    progress.update("n0", CountedTime(2), 1)
    progress.frontier(f"n{length}")
    CountedTime.compared = 0
    progress.update("n5", CountedTime(1), -1)
    progress.update("n0", CountedTime(1), 1)
    assert progress.frontier(f"n{length}") == Antichain([1])
    return CountedTime.compared


def test_changes_are_passed_on_in_topological_order():
    """Behind the middle nothing changes, and nothing is looked at, however much comes there."""
    assert compared_when_moved_upstream(6) == compared_when_moved_upstream(30)
