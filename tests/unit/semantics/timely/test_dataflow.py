import pytest

from cutwater.errors import FlowError
from cutwater.progress import Edge
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    History,
    Message,
    Notified,
    Processor,
    Received,
    buffer,
    is_buffer,
    local_result,
    reaction,
)
from cutwater.times import Left, Right

IN, OUT = Edge("in", None, "p"), Edge("out", "p", None)
ONE, TWO = Message(1, "a"), Message(2, "b")


def dataflow(*processors, edges=(IN, OUT), times=(1, 2), messages=(ONE, TWO)):
    return Dataflow(processors, edges, times, messages)


def collecting(state, event):
    """Collects values by time and sends them when the time is complete."""
    if isinstance(event, Received):
        return reaction((*state, event.message), requests=[event.time])
    due = [m for m in state if m.time == event.time]
    return reaction(tuple(m for m in state if m not in due), {"out": due})


def test_g_is_g1_over_a_local_history():
    p = Processor("p", collecting, (((), frozenset({2})),))
    history = History((), frozenset({2}), (Received("in", ONE), Received("in", TWO), Notified(1)))
    result = local_result(p, history)
    assert result.state == (TWO,)
    assert result.requests == {2}
    assert result.sent == {"out": (ONE,)}
    assert local_result(p, History((), frozenset({2}))).requests == {2}


def test_a_notification_that_is_asked_for_again_stands_again():
    p = Processor("p", lambda s, event: reaction(s, requests=[event.time]))
    assert local_result(p, History(None, frozenset(), (Notified(1),))).requests == {1}


def test_a_buffer_node_is_a_relay():
    assert is_buffer(dataflow(buffer("p", "out")), "p")


@pytest.mark.parametrize(
    "g1",
    [
        lambda s, event: reaction(s),
        lambda s, event: reaction(s, {"out": [ONE]}),
        lambda s, event: reaction(
            s, {"out": [event.message]} if isinstance(event, Received) else {}, requests=[1]
        ),
        lambda s, event: reaction(
            1, {"out": [event.message]} if isinstance(event, Received) else {}
        ),
    ],
    ids=["drops", "sends on notifications", "asks", "keeps a state"],
)
def test_what_is_no_buffer_node(g1):
    assert not is_buffer(dataflow(Processor("p", g1)), "p")


def test_a_node_with_two_inputs_is_no_buffer_node():
    edges = (IN, Edge("other", None, "p"), OUT)
    assert not is_buffer(dataflow(buffer("p", "out"), edges=edges), "p")


def test_edges_are_inputs_internal_or_outputs():
    edges = (IN, Edge("e", "p", "q"), Edge("back", "q", "p"), OUT)
    found = dataflow(buffer("p", "e"), buffer("q", "back"), edges=edges)
    assert [e.name for e in found.inputs] == ["in"]
    assert [e.name for e in found.internal] == ["e", "back"]
    assert [e.name for e in found.outputs] == ["out"]
    assert [e.name for e in found.incoming("p")] == ["in", "back"]
    assert [e.name for e in found.outgoing("p")] == ["e", "out"]


def test_an_edge_that_names_no_processor_and_one_with_equal_ends():
    with pytest.raises(FlowError, match="edges name p, and there is no such processor"):
        dataflow()
    with pytest.raises(FlowError, match="self-loop"):
        dataflow(buffer("p", "e"), edges=(Edge("e", "p", "p"),))


def test_a_node_may_send_in_another_domain():
    """GMT in, sequence numbers out: the times are a disjoint union."""
    times = (Left(1), Left(2), Right(0), Right(1))
    g1 = lambda n, event: reaction(1 - n, {"out": [Message(Right(n))]})  # noqa: E731
    found = dataflow(Processor("p", g1, ((0, frozenset()),)), times=times, messages=(ONE,))
    assert g1(0, Notified(Left(1))).sent == (("out", (Message(Right(0)),)),)
    assert len(found.events("p")) == 5
