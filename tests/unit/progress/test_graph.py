import pytest
from hypothesis import given
from support.progress.graphs import graphs, is_every_cycle_positive, paths

from cutwater.errors import FlowError, InputError
from cutwater.progress import EGRESS, FEEDBACK, IDENTITY, INGRESS, Edge, Graph, Progress, add
from cutwater.progress.graph import positive_cycles
from cutwater.times import Antichain, Product


def problems(call):
    with pytest.raises(FlowError) as caught:
        call()
    return [str(problem) for problem in caught.value.problems]


def test_every_problem_of_a_graph_is_listed():
    found = problems(
        lambda: Graph([Edge("a", "n", "n"), Edge("b", None, None), Edge("n", None, "m")])
    )
    assert found == [
        "[duplicate-location] 'n' names two locations; nodes and edges are found by their names\n"
        "  hint: rename one of them",
        "[self-loop] edge 'a' leads from 'n' to itself; the ends of an edge are distinct\n"
        "  hint: put a node for the feedback between them",
        "[loose-edge] edge 'b' has no end\n  hint: name its source or its target",
    ]


def test_a_location_is_always_in_the_same_loops():
    [found] = problems(lambda: Graph([Edge("deep", "a", "b", (INGRESS,)), Edge("flat", "a", "b")]))
    assert found == (
        "[uneven-loops] by one path 'deep' is 1 loop deeper than 'a', by another 0 loops; "
        "a location is always in the same loops\n"
        "  hint: let every way into a loop be an ingress, and every way out an egress"
    )


def test_depths_are_the_least_that_suit_every_step():
    graph = Graph(
        [
            Edge("in", None, "enter"),
            Edge("first", "enter", "inner", (INGRESS.then(INGRESS),)),
            Edge("half", "inner", "outer", (EGRESS,)),
            Edge("out", "outer", None, (EGRESS,)),
            Edge("alone", "body", "again"),
            Edge("fed", "again", "body", (FEEDBACK,)),
        ]
    )
    assert [graph.depth[x] for x in ("in", "first", "half", "out", "fed")] == [0, 2, 1, 0, 1]


def test_a_summary_that_another_makes_superfluous_still_needs_its_loop():
    assert Graph([Edge("e", "a", "b", (IDENTITY, FEEDBACK))]).depth["a"] == 1


def test_a_location_that_is_not_there():
    with pytest.raises(InputError, match=r"no location 'b'\n  hint: there are: n, a"):
        Graph([Edge("a", None, "n")]).routes("b")


def test_a_cycle_without_progress_is_refused_with_its_path():
    graph = Graph(
        [
            Edge("in", None, "work"),
            Edge("there", "work", "again"),
            Edge("back", "again", "work"),
        ]
    )
    assert problems(lambda: Progress(graph)) == [
        "[cycle-without-progress] a message may go round work → there → again → back → work and "
        "come back no later than it left; every cycle must lead to a later time, or no time in it "
        "is ever complete\n"
        "  hint: let one edge of the cycle add to the time: a feedback adds a round to its loop"
    ]


@pytest.mark.parametrize("back", [(add(-1),), (add(1), add(0)), (FEEDBACK, FEEDBACK.then(add(-1)))])
def test_one_summary_that_is_not_positive_is_enough(back):
    graph = Graph([Edge("there", "a", "b"), Edge("back", "b", "a", back)])
    assert "cycle-without-progress" in problems(lambda: Progress(graph))[0]


@given(graphs())
def test_a_graph_is_refused_exactly_if_some_cycle_is_not_strictly_positive(drawn):
    try:
        positive_cycles(drawn.graph)
        is_accepted = True
    except FlowError:
        is_accepted = False
    assert is_accepted == is_every_cycle_positive(drawn.graph)


@given(graphs())
def test_minimal_routes_are_those_of_all_simple_paths(drawn):
    graph = drawn.graph
    for x in graph.locations:
        routes = graph.routes(x)
        for y in graph.locations:
            shown = Antichain(route.summary for route in routes.get(y, ()))
            cycles_left_out = list(paths(graph, x, y))[: 1 if x == y else None]
            assert shown == Antichain(cycles_left_out)


@given(graphs())
def test_where_cycles_are_positive_the_quick_way_finds_the_same_routes(drawn):
    if is_every_cycle_positive(drawn.graph):
        quick = positive_cycles(drawn.graph)
        for x in drawn.graph.locations:
            slow = drawn.graph.routes(x)
            assert quick[x].keys() == slow.keys()
            for y, routes in slow.items():
                assert {r.summary for r in quick[x][y]} == {r.summary for r in routes}


def test_the_relation_outside_and_inside_of_a_loop():
    graph = Graph(
        [
            Edge("in", None, "enter"),
            Edge("first", "enter", "work", (INGRESS,)),
            Edge("again", "work", "feedback"),
            Edge("next", "feedback", "work", (FEEDBACK,)),
            Edge("out", "work", None, (EGRESS,)),
        ]
    )
    assert graph.could_result_in("in", 3, "out", 3)
    assert not graph.could_result_in("in", 3, "out", 2)
    assert graph.could_result_in("work", Product(3, (2,)), "next", Product(3, (3,)))
    assert not graph.could_result_in("work", Product(3, (2,)), "next", Product(3, (2,)))
    assert not graph.could_result_in("out", 3, "work", Product(3, (9,)))
