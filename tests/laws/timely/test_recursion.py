"""P3, section 3.4: stacks of calls as times."""

from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.timely.dataflows import table_processor
from support.timely.recursions import closure, drawn, recursions, stacks

from cutwater.errors import FlowError
from cutwater.progress import Edge
from cutwater.semantics.timely.conditions import condition_2
from cutwater.semantics.timely.dataflow import Dataflow, Message, Notified, Received, reaction
from cutwater.semantics.timely.recursion import Recursion
from cutwater.semantics.timely.relation import could_result_in
from cutwater.times import check_order

DEPTH = 2


def pairs(recursion, depth=DEPTH):
    return [(p, f) for p in recursion.nodes for f in stacks(recursion, depth)]


@settings(max_examples=30)
@given(recursions())
def test_the_decision_equals_the_closure_on_all_stacks_up_to_a_depth(recursion):
    """The closure is taken one deeper, where calls between the stacks go."""
    closed = closure(recursion, DEPTH + 1)
    for a, b in product(pairs(recursion), repeat=2):
        assert recursion.could_result_in(*a, *b) == (b in closed[a]), (a, b)


@pytest.mark.slow
@settings(max_examples=15)
@given(recursions(depth=3))
def test_the_decision_equals_the_closure_on_deeper_stacks(recursion):
    closed = closure(recursion, 4)
    for a, b in product(pairs(recursion, 3), repeat=2):
        assert recursion.could_result_in(*a, *b) == (b in closed[a]), (a, b)


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_the_first_difference_decides_where_no_call_is_on_a_cycle(seed):
    recursion = drawn(seed, cyclic=False)
    assert not any(map(recursion.is_repeated, recursion.calls))
    for a, b in product(pairs(recursion), repeat=2):
        assert recursion.first_difference(*a, *b) == recursion.could_result_in(*a, *b)


AGAIN = Recursion(
    [("in", "x"), ("x", "out"), ("x", "c"), ("c", "x"), ("in", "b"), ("b", "a"), ("a", "out")],
    calls=["a", "b", "c"],
)
"""`c` lies on a cycle with x; inside of it, b comes before a."""


def test_the_first_difference_alone_misses_a_call_that_is_made_again():
    """From a inside of c to b inside of c: c returns, and is called once more."""
    a, b = ("in", ("c", "a")), ("in", ("c", "b"))
    assert b in closure(AGAIN, 3)[a]
    assert not AGAIN.first_difference(*a, *b)
    assert AGAIN.could_result_in(*a, *b)
    # one call further out nothing is on a cycle
    assert not AGAIN.could_result_in("in", ("a",), "in", ("b",))


def test_the_first_difference_alone_is_sound_and_wrong_on_some_bodies_with_cycles():
    seen = Counter()
    for seed in range(15):
        recursion = drawn(seed, cyclic=True)
        closed = closure(recursion, DEPTH + 1)
        for a, b in product(pairs(recursion), repeat=2):
            decided = recursion.first_difference(*a, *b)
            assert not decided or b in closed[a]
            seen["missed"] += b in closed[a] and not decided
    assert seen["missed"] > 0


@settings(max_examples=8)
@given(recursions())
def test_what_could_be_sent_equals_the_closure_over_all_stacks_of_the_edge(recursion):
    """Definition 2 for edges: some message on the edge, at a stack that is less or equal."""
    deeper, closed = stacks(recursion, DEPTH + 1), closure(recursion, DEPTH + 2)
    for (p, f), g in product(pairs(recursion, 1), stacks(recursion, 1)):
        for source, target in recursion.graph_edges:
            sent = any(
                (source, before) in closed[p, f] and (target, g) in closed[target, h]
                for h in deeper
                if (before := recursion.origin(source, target, h)) is not None
            )
            assert recursion.could_send(p, f, (source, target), g) == sent


@settings(max_examples=40)
@given(recursions())
def test_equivalent_stacks_are_one_time_and_others_are_not(recursion):
    for p in recursion.nodes:
        for f, g in product(stacks(recursion, DEPTH), repeat=2):
            both = recursion.could_result_in(p, f, p, g) and recursion.could_result_in(p, g, p, f)
            assert (recursion.time(p, f) == recursion.time(p, g)) == both


@settings(max_examples=30)
@given(recursions())
def test_times_are_a_partial_order_at_each_node_and_unrelated_between_nodes(recursion):
    for p in recursion.nodes:
        check_order({recursion.time(p, f) for f in stacks(recursion, DEPTH)})
    for p, q in product(recursion.nodes, repeat=2):
        assert (recursion.time(p, ()) <= recursion.time(q, ())) == (p == q)


def conforming(recursion, seed):
    """Processors that take what is tagged for them, and send what the relation allows, or less."""
    random = Random(seed)
    times = tuple(dict.fromkeys(recursion.time(p, f) for p, f in pairs(recursion, 1)))
    edges = tuple(Edge(f"{p} → {q}", p, q) for p, q in dict.fromkeys(recursion.graph_edges))
    messages = tuple(map(Message, times))
    processors = []
    for p in recursion.nodes:
        table = {}
        for t in times:
            sent = {
                edge.name: [
                    Message(u)
                    for u in times
                    if u.node == edge.target
                    and recursion.could_result_in(p, t.stack, u.node, u.stack)
                    and (random.random() < 0.2 or (u.node, u.stack) in recursion.steps(p, t.stack))
                ]
                for edge in edges
                if edge.source == p and t.node == p
            }
            events = [Received(e.name, Message(t)) for e in edges if e.target == p]
            table |= {(None, event): reaction(None, sent) for event in [*events, Notified(t)]}
        processors.append(table_processor(p, table, [(None, frozenset())]))
    return Dataflow(tuple(processors), edges, times, messages)


def related(recursion, seed):
    """Conforming processors with their relation, and the pairs of nodes and times in it."""
    dataflow = conforming(recursion, seed)
    relation = could_result_in(dataflow)
    nodes = [(p, t) for p in recursion.nodes for t in dataflow.times]
    held = [(a, b) for a, b in product(nodes, repeat=2) if relation(a, b)]
    return dataflow, relation, held


@settings(max_examples=8)
@given(recursions(), st.integers(0, 2**32))
def test_proposition_4_what_could_result_at_a_nodes_own_times_could_by_calls_and_returns(
    recursion, seed
):
    """(p, [f]_p) ⤳ (q, [g]_q) only if the recursion's own relation has it."""
    _, _, held = related(recursion, seed)
    own = [(a, b) for a, b in held if (a[1].node, b[1].node) == (a[0], b[0])]
    assert any(a != b for a, b in own)
    for (p, t), (q, u) in own:
        assert recursion.could_result_in(p, t.stack, q, u.stack)


@settings(max_examples=8)
@given(recursions(), st.integers(0, 2**32))
def test_proposition_5_between_nodes_only_their_own_times_are_related(recursion, seed):
    """(p, t) ⤳ (q, u) with p ≠ q only if t is a time of p, and u one of q."""
    _, _, held = related(recursion, seed)
    between = [(a, b) for a, b in held if a[0] != b[0]]
    assert between
    for (p, t), (q, u) in between:
        assert (t.node, u.node) == (p, q)


@settings(max_examples=8)
@given(recursions(), st.integers(0, 2**32))
def test_proposition_6_it_is_transitive(recursion, seed):
    dataflow, relation, _ = related(recursion, seed)
    assert relation.intransitive is None
    assert condition_2(dataflow, relation) == []


@pytest.mark.parametrize(
    ("edges", "calls", "message"),
    [
        ([("in", "out"), ("c", "in")], ["c"], "an edge of the body leads to 'in'; only calls do"),
        ([("in", "out"), ("out", "c")], ["c"], "an edge of the body leaves 'out'; only returns do"),
        ([("in", "out"), ("c", "out")], ["c"], "'call-c' cannot be reached from 'in'"),
        ([("in", "out"), ("in", "c")], ["c"], "'out' cannot be reached from 'call-c'"),
        ([("in", "c"), ("c", "out")], ["c"], "every path through the body calls it"),
    ],
)
def test_what_is_no_body(edges, calls, message):
    with pytest.raises(FlowError) as caught:
        Recursion(edges, calls)
    assert any(problem.message.startswith(message) for problem in caught.value.problems)
