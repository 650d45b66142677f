"""P3, section 4.3: the composite of two graphs and the whole graph."""

import pytest
from support.timely.shapes import THREE, TWO, collect, dataflow, m, send, shown, transitions

from cutwater.checking.explorer.inclusion import shown_only_by
from cutwater.progress import Edge
from cutwater.semantics.timely.clock import Clock
from cutwater.semantics.timely.composition import Composite, crossing, joined_dataflows
from cutwater.semantics.timely.dataflow import buffer, is_buffer
from cutwater.semantics.timely.model import TimelyModel
from cutwater.semantics.timely.relation import could_result_in

ONE_WAY = (
    dataflow([collect("a", "x")], [Edge("in", None, "a"), Edge("x", "a", None)], TWO),
    dataflow([collect("b", "out")], [Edge("x", None, "b"), Edge("out", "b", None)], TWO),
)
STREAMING = (
    dataflow(
        [send("a", "kept"), buffer("relay", "x")],
        [Edge("in", None, "a"), Edge("kept", "a", "relay"), Edge("x", "relay", None)],
        TWO,
    ),
    dataflow([send("b", "out")], [Edge("x", None, "b"), Edge("out", "b", None)], TWO),
)
# each graph reads an input of its own: without Acts both could do so in one step
TWO_INPUTS = (
    STREAMING[0],
    dataflow(
        [send("b", "c"), send("d", "out")],
        [
            Edge("other", None, "b"),
            Edge("c", "b", "d"),
            Edge("x", None, "d"),
            Edge("out", "d", None),
        ],
        TWO,
    ),
)


def later(name, *outs):
    return send(name, *outs, shift=lambda t: t + 1, within=THREE)


# `a` takes what comes back along y, and sends it along x: in and out of the second graph at once
BOTH_WAYS = (
    dataflow(
        [send("a", "x")], [Edge("in", None, "a"), Edge("y", None, "a"), Edge("x", "a", None)], THREE
    ),
    dataflow(
        [later("b", "c")  , send("d", "y", "out")],
        [Edge("x", None, "b"), Edge("c", "b", "d"), Edge("y", "d", None), Edge("out", "d", None)],
        THREE,
    ),
)  # fmt: skip

# the same with a buffer node between `a` and x
BUFFERED = (
    dataflow(
        [send("a", "kept"), buffer("relay", "x")],
        [
            Edge("in", None, "a"),
            Edge("y", None, "a"),
            Edge("kept", "a", "relay"),
            Edge("x", "relay", None),
        ],
        THREE,
    ),
    BOTH_WAYS[1],
)

# a notification in the first graph waits for what the second graph may send
WAITING = (
    dataflow(
        [collect("a", "kept"), buffer("relay", "x")],
        [
            Edge("in", None, "a"),
            Edge("y", None, "a"),
            Edge("kept", "a", "relay"),
            Edge("x", "relay", None),
        ],
        THREE,
    ),
    BOTH_WAYS[1],
)

PAIRS = {
    "one way": (ONE_WAY, {"in": m(1, 0)}),
    "streaming": (STREAMING, {"in": m(0, 1)}),
    "two inputs": (TWO_INPUTS, {"in": m(0), "other": m(1)}),
    "both ways": (BOTH_WAYS, {"in": m(0)}),
    "buffered": (BUFFERED, {"in": m(0)}),
    "waiting": (WAITING, {"in": m(0, 1)}),
}


# one message that comes from outside at any moment, on an edge that is not shared
ARRIVING = [("in", m(1)[0])]
AT_FIRST = {"two inputs": {"other": m(1)}}


def models(name, **options):
    parts, inputs = PAIRS[name]
    if options.get("arriving"):
        inputs = AT_FIRST.get(name, {"in": m(0)})
    whole = joined_dataflows(*parts)
    clock = Clock(whole, could_result_in(whole))
    return (
        TimelyModel(whole, inputs, clock=clock, **options),
        Composite(*parts, inputs, clock=clock, **options),
    )


@pytest.mark.parametrize("arriving", [(), ARRIVING])
@pytest.mark.parametrize("has_outputs", [False, True])
@pytest.mark.parametrize("name", [name for name in PAIRS if name != "both ways"])
def test_behaviours_of_the_whole_are_behaviours_of_the_composite(name, has_outputs, arriving):
    assert crossing(*PAIRS[name][0]) == []
    whole, composite = models(name, has_outputs=has_outputs, arriving=arriving)
    path, searched = shown_only_by(whole, composite)
    assert path is None
    assert searched.is_exhaustive


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "both ways"])
def test_the_messages_that_arrive_are_added_in_both(name):
    """Otherwise the tests of both directions would say nothing of them."""
    for model in models(name, arriving=ARRIVING):
        seen = {
            len(dict(model.observation(there))["in"]) - len(dict(model.observation(point))["in"])
            for point, _, there in transitions(model)
        }
        assert 1 in seen


def test_a_node_that_reads_and_writes_connecting_edges_is_the_counterexample():
    """Its step is Inp and Outp of the second graph in one, and no graph has such a step."""
    assert crossing(*BOTH_WAYS) == ["a"]
    whole, composite = models("both ways")
    path, _ = shown_only_by(whole, composite)
    assert shown(path.actions) == "in, x, c, y, x, c"


def test_the_buffer_node_is_what_makes_the_difference():
    first, _ = BUFFERED
    assert is_buffer(first, "relay")
    assert crossing(*BUFFERED) == []


@pytest.mark.parametrize("name", PAIRS)
def test_the_converse_holds_where_nothing_changes_from_outside(name):
    whole, composite = models(name)
    path, searched = shown_only_by(composite, whole)
    assert path is None
    assert searched.is_exhaustive


def test_the_converse_holds_where_the_other_graph_only_reads_connecting_edges():
    """Then its steps are Outp of the first graph, which adds nothing to its inputs meanwhile."""
    whole, composite = models("streaming", arriving=ARRIVING)
    path, searched = shown_only_by(composite, whole)
    assert path is None
    assert searched.is_exhaustive


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "streaming"])
def test_the_converse_does_not_hold_where_messages_arrive(name):
    """Acts is silent on Inp: one graph writes an output while an input of the other grows."""
    whole, composite = models(name, arriving=ARRIVING)
    path, _ = shown_only_by(composite, whole)
    before, after = (dict(composite.observation(c)) for c in path.states[-2:])
    assert len(after["in"]) == len(before["in"]) + 1
    assert any(before[edge] != after[edge] for edge in before if edge != "in")


def test_the_converse_does_not_hold_where_outputs_are_removed():
    """Acts is silent on Outp: one graph reads an input while another's output is removed."""
    whole, composite = models("streaming", has_outputs=True)
    path, _ = shown_only_by(composite, whole)
    before, after = (dict(composite.observation(c)) for c in path.states[-2:])
    assert len(after["in"]) == len(before["in"]) - 1
    assert len(after["out"]) == len(before["out"]) - 1


def test_the_whole_has_the_shared_edges_inside():
    whole = joined_dataflows(*BOTH_WAYS)
    assert [edge.name for edge in whole.inputs] == ["in"]
    assert [(edge.name, edge.source, edge.target) for edge in whole.internal] == [
        ("y", "d", "a"),
        ("x", "a", "b"),
        ("c", "b", "d"),
    ]
    assert [edge.name for edge in whole.outputs] == ["out"]


def test_the_clock_of_one_graph_alone_does_not_know_what_comes_back_from_the_other():
    """So Clock is a parameter of the composite, and of the whole."""
    first, _ = WAITING
    alone, together = could_result_in(first), could_result_in(joined_dataflows(*WAITING))
    assert together(("a", 0), ("y", 1))
    assert not any(alone(("a", 0), ("y", t)) for t in THREE)
