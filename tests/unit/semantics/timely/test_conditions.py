from cutwater.progress import Edge
from cutwater.semantics.timely.conditions import condition_1, condition_2
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Notified,
    Processor,
    Received,
    buffer,
    reaction,
)
from cutwater.semantics.timely.relation import could_result_in
from cutwater.times import Left, Product, Right

TIMES = (0, 1, 2)
MESSAGES = tuple(map(Message, TIMES))
LOOP = (
    Edge("in", None, "work"),
    Edge("there", "work", "again"),
    Edge("back", "again", "work"),
    Edge("out", "work", None),
)


def loop(shift, times=TIMES):
    """`work` sends on, `again` sends back at ``shift(t)``."""

    def again(state, event):
        if isinstance(event, Notified) or shift(event.time) not in times:
            return reaction(state)
        return reaction(state, {"back": [Message(shift(event.time))]})

    messages = tuple(map(Message, times))
    return Dataflow((buffer("work", "there"), Processor("again", again)), LOOP, times, messages)


def violations(dataflow):
    return condition_2(dataflow, could_result_in(dataflow))


def test_a_loop_that_goes_on_keeps_condition_2():
    assert violations(loop(lambda t: t + 1)) == []
    assert violations(loop(lambda t: t)) == []


def test_a_loop_into_the_past_is_named_with_its_path_and_sender():
    found = violations(loop(lambda t: t - 1))
    assert [(v.node, v.path, v.sender) for v in found] == [
        ("again", ("again", "back", "work", "there"), "again"),
        ("work", ("work", "there", "again", "back"), "again"),
    ]
    assert str(found[1].problem) == (
        "[message-in-the-past] what comes to 'work' at 1 may come back to it at 0, along "
        "work → there → again → back → work: 'again' sends into the past; "
        "round a cycle times must not decrease\n"
        "  hint: let 'again' send at the time of its event, or later"
    )


def test_of_several_ways_into_the_past_the_shortest_is_named():
    """Two nodes go back by one: with the detour a message goes back by two, a longer way."""

    def back_by_one(outgoing):
        def relay(state, event):
            if isinstance(event, Notified) or event.time - 1 not in TIMES:
                return reaction(state)
            return reaction(state, {outgoing: [Message(event.time - 1)]})

        return relay

    def work(state, event):
        if isinstance(event, Notified):
            return reaction(state)
        return reaction(state, {edge: [event.message] for edge in ("there", "aside")})

    edges = (*LOOP, Edge("aside", "work", "detour"), Edge("and there", "detour", "again"))
    processors = (
        Processor("work", work),
        Processor("detour", back_by_one("and there")),
        Processor("again", back_by_one("back")),
    )
    found = violations(Dataflow(processors, edges, TIMES, MESSAGES))
    assert [(v.node, v.path) for v in found if v.path[-1] == "back"] == [
        ("work", ("work", "there", "again", "back"))
    ]


def test_counters_in_the_product_order_break_condition_2():
    """The inner node at (i, 1) comes back at (i+1, 0), which is not later."""
    pairs = tuple(Product(i, j) for i in range(2) for j in range(2))
    assert violations(loop(lambda t: Product(t.first + 1, 0), pairs))
    lexicographic = tuple(Product("t", (i, j)) for i in range(2) for j in range(2))
    again = lambda t: Product("t", (t.second[0] + 1, 0))  # noqa: E731
    assert violations(loop(again, lexicographic)) == []


def test_sending_into_the_past_on_no_cycle_is_no_violation():
    """The conditions compare times only where they come back."""
    earlier = lambda s, event: reaction(s, {"out": [Message(0)]})  # noqa: E731
    edges = (Edge("in", None, "p"), Edge("out", "p", None))
    dataflow = Dataflow((Processor("p", earlier),), edges, TIMES, MESSAGES)
    assert violations(dataflow) == []


def test_where_the_times_on_a_cycle_are_of_two_domains_the_last_sender_is_named():
    times = (Left(0), Left(1), Right(0), Right(1))

    def g1(edge):
        def react(state, event):
            if isinstance(event, Notified):
                return reaction(state)
            t = event.time
            other = Right(t.time) if isinstance(t, Left) else Left(0)
            return reaction(state, {edge: [Message(other)]})

        return react

    processors = (Processor("work", g1("there")), Processor("again", g1("back")))
    found = violations(Dataflow(processors, LOOP, times, tuple(map(Message, times))))
    assert ("work", Left(1), Left(0)) in [(v.node, v.time, v.back_at) for v in found]


def asking(ask):
    processor = Processor("p", lambda s, event: reaction(s, requests=ask(event)))
    return Dataflow((processor,), (Edge("in", None, "p"),), TIMES, MESSAGES)


def test_a_request_for_the_past_is_named_with_its_event():
    [found] = condition_1(asking(lambda e: [e.time - 1] if e.time > 1 else []))
    assert (found.node, found.event, found.time) == ("p", Received("in", Message(2)), 1)
    assert str(found.problem) == (
        "[request-in-the-past] 'p' asks to be notified of 1 when it gets a message at 2 on 'in'; "
        "a request is for the time of its event or a later one\n"
        "  hint: ask for the time of the event"
    )


def test_a_request_for_the_past_on_a_notification():
    [found] = condition_1(asking(lambda e: [0] if e == Notified(2) else []))
    assert "when it is notified of 2" in found.problem.message


def test_requests_for_the_same_time_or_later_keep_condition_1():
    assert condition_1(asking(lambda e: [e.time, min(e.time + 1, 2)])) == []


def test_what_is_already_asked_for_is_not_asked_for_anew():
    """Definition 3 looks at N − N₁: here 0 stands from the start, and is never let go of."""

    def g1(state, event):
        return reaction(state, requests=[0])

    processor = Processor("p", g1, ((None, frozenset({0})),))
    dataflow = Dataflow((processor,), (Edge("in", None, "p"),), TIMES, MESSAGES)
    assert condition_1(dataflow) == []
