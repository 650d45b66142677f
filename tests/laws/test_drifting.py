"""Drifting state: whatever the order of arrival, the outcome is the fold in order of t (P2, V)."""

import random
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.drifting.runs import log, number, twice

from cutwater.semantics.drifting.elements import (
    BEGIN,
    EMPTY,
    END_OF_INPUT,
    Acker,
    Change,
    Element,
    Grouping,
    Time,
    collected,
    outputs_in_order,
    regroup,
    settled_group,
)
from cutwater.semantics.drifting.replay import Arrival, speculate, wait_in_order


def remainder(value):
    return hash(value) % 3 if isinstance(value, int) else sum(value) % 3


def total(window):
    return (sum(v if isinstance(v, int) else sum(v) for v in window),)


def totals_of_odd(window):
    return total(window) * (window[-1] % 2 if isinstance(window[-1], int) else 1)


groupings = st.builds(
    Grouping,
    window=st.integers(1, 8),
    key=st.sampled_from([remainder, lambda value: 0]),
    emit=st.sampled_from([total, totals_of_odd, lambda window: (*total(window), len(window))]),
)
flows = st.lists(groupings, min_size=1, max_size=3).map(tuple)


def inputs(values):
    return [Element(Time((n, 0)), value) for n, value in enumerate(values)]


def summed(changes):
    """Elements less retractions."""
    counts = Counter()
    for element, sign in changes:
        counts[element] += sign
    return {element: count for element, count in counts.items() if count}


def sent(grouping, changes, step=0):
    """What a grouping sends for changes in this order, and its group in the end."""
    groups, found = {}, []
    for change in changes:
        key = grouping.key(change.element.value)
        groups[key], more = regroup(grouping, step, groups.get(key, EMPTY), change)
        found += more
    return groups, found


@pytest.mark.parametrize("order", list(permutations(log(3))))
def test_three_values_and_a_window_of_two(order):
    """In any order they end with exactly [v1] [v1 v2] [v2 v3]."""
    _, changes = sent(Grouping(2), map(Change, order))
    values = Counter()
    for element, sign in changes:
        values[element.value] += sign
    assert +values == Counter([("v1",), ("v1", "v2"), ("v2", "v3")])
    assert min(values.values()) == 0 or order == log(3)


def test_a_retraction_carries_the_t_that_it_displaces():
    first, second = log(2)
    _, changes = sent(Grouping(2), [Change(second), Change(first)])
    t = second.t.child(0, 0)
    assert changes == [
        Change(Element(t, ("v2",))),
        Change(Element(t, ("v2",)), -1),
        Change(Element(first.t.child(0, 0), ("v1",))),
        Change(Element(t, ("v1", "v2"))),
    ]


@given(flows, st.lists(st.integers(0, 9), max_size=12), st.randoms(use_true_random=False))
def test_changes_in_any_order_sum_up_to_the_fold(flow, values, rng):
    """Elements and retractions overtake each other between all operations."""
    changes = [Change(element) for element in inputs(values)]
    for step, grouping in enumerate(flow):
        rng.shuffle(changes)
        groups, changes = sent(grouping, changes, step)
        assert not any(group.balance for group in groups.values())
    assert summed(changes) == Counter(outputs_in_order(flow, inputs(values)))


@given(groupings, st.lists(st.integers(0, 9), max_size=12), st.randoms(use_true_random=False),
       st.integers(0, 12))  # fmt: skip
def test_a_snapshot_is_the_state_without_the_inputs_behind_it(grouping, values, rng, at):
    """And windows that end behind it are the same from either."""
    before, behind = inputs(values)[:at], inputs(values)[at:]
    frontier = (at, 0)
    mixed = rng.sample(inputs(values), len(values))
    whole, _ = sent(grouping, map(Change, mixed))
    alone, _ = sent(grouping, map(Change, before))
    for key, group in whole.items():
        snapshot = settled_group(grouping, group, frontier)
        assert snapshot == settled_group(grouping, alone.get(key, EMPTY), END_OF_INPUT)
        assert len(snapshot.present) < grouping.window
        found = []
        for element in behind:
            if grouping.key(element.value) == key:
                snapshot, more = regroup(grouping, 0, snapshot, Change(element))
                found += more
        wanted = [e for e in outputs_in_order([grouping], inputs(values)) if e.t.root >= frontier]
        mine = {e.t.root for e in behind if grouping.key(e.value) == key}
        assert summed(found) == Counter(e for e in wanted if e.t.root in mine)


@given(groupings, st.lists(st.integers(0, 9), max_size=12), st.integers(0, 12))
def test_what_is_forgotten_is_needed_by_no_later_window(grouping, values, at):
    elements = inputs(values)
    groups, _ = sent(grouping, map(Change, elements[:at]))
    for element in elements[at:]:
        key = grouping.key(element.value)
        group = groups.get(key, EMPTY)
        kept = collected(grouping, group, (at, 0))
        assert (
            regroup(grouping, 0, kept, Change(element))[1]
            == (regroup(grouping, 0, group, Change(element))[1])
        )


@st.composite
def trees(draw):
    """Messages by name, each with what is sent while it is worked on: trees below inputs."""
    roots = [(n, 0) for n in range(1, draw(st.integers(1, 4)) + 1)]
    reports, names = [], []
    waiting = [(root, ("in", root[0])) for root in roots]
    for _ in range(draw(st.integers(0, 12))):
        if not waiting:
            break
        name = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
        later = [root for root in roots if root >= name[0]]
        children = tuple(
            (draw(st.sampled_from(later)), (name[1], n)) for n in range(draw(st.integers(0, 3)))
        )
        reports.append((name, children))
        waiting += children
        names.append(name)
    return roots, reports, waiting


@given(trees(), st.randoms(use_true_random=False))
def test_the_acker_never_passes_what_is_on_its_way(tree, rng):
    """In whatever order its messages come, and however often."""
    roots, reports, on_their_way = tree
    told = [("report", report) for report in reports for _ in range(rng.choice([1, 1, 2]))]
    told += [("bound", n) for n in range(len(roots) + 1)]
    rng.shuffle(told)
    acker = Acker((BEGIN,))
    heard = set()
    for kind, what in told:
        before = acker.frontier
        if kind == "report":
            heard.add(what)
            acker = acker.report([what[0]], what[1])
        else:
            bound = roots[what] if what < len(roots) else END_OF_INPUT
            acker = acker.advance(0, bound, [(r, ("in", r[0])) for r in roots[:what]])
        assert acker.frontier >= before
        unheard = [name[0] for name, _ in set(reports) - heard]
        assert acker.frontier <= min([*unheard, *(root for root, _ in on_their_way), END_OF_INPUT])
    assert acker.frontier == min([*(root for root, _ in on_their_way), END_OF_INPUT])


@settings(max_examples=40)
@given(flows, st.lists(st.integers(0, 9), max_size=60), st.randoms(use_true_random=False))
def test_a_run_with_crashes_releases_the_fold(flow, values, rng):
    elements = inputs(values)
    arrivals = [Arrival(element) for element in rng.sample(elements, len(elements))]
    crashes = {rng.randint(1, 60) for _ in range(3)}
    every = rng.randint(0, 10)
    found = speculate(flow, arrivals, snapshot_every=every, crashes=crashes)
    assert list(found.released) == outputs_in_order(flow, elements)
    assert wait_in_order(flow, arrivals).released == found.released


@pytest.mark.parametrize("window", range(1, 9))
def test_ten_thousand_elements_in_any_order_with_crashes(window):
    """Each of 97 keys; the first half arrives at random, the second a little out of order."""
    rng = random.Random(window)
    elements = inputs(rng.randrange(1_000_000) for _ in range(10_000))
    first, second = elements[:5_000], elements[5_000:]
    rng.shuffle(first)
    second.sort(key=lambda element: element.t.root[0] + rng.randrange(200))
    arrivals = [Arrival(element) for element in first + second]
    flow = [Grouping(window, key=lambda value: value % 97, emit=total)]
    crashes = {rng.randint(1, 10_000) for _ in range(3)}
    found = speculate(flow, arrivals, snapshot_every=500, crashes=crashes)
    assert list(found.released) == outputs_in_order(flow, elements)
    assert found.cost.retracted > 1_000 or window == 1


def test_two_outputs_per_input_in_a_run_with_crashes():
    elements = log(50)
    flow = [Grouping(2, key=lambda v: number(v) % 2), Grouping(1, emit=lambda w: twice(w[0]))]
    arrivals = [Arrival(element) for element in random.Random(1).sample(elements, 50)]
    found = speculate(flow, arrivals, snapshot_every=5, crashes=range(7, 50, 7))
    assert list(found.released) == outputs_in_order(flow, elements)
    assert len(found.released) == 100
