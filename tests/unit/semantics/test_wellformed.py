"""Valid initial configurations (P1, Definition 6.8) and well-formed ones (Theorem 6.10, Def0)."""

import pytest
from msgspec.structs import replace
from support.checking.random_systems import keep

from cutwater.errors import FlowError
from cutwater.semantics.barrier_model import BarrierModel, Point
from cutwater.semantics.barriers import (
    BARRIER,
    FAILED,
    EventContent,
    Graph,
    Message,
    Messages,
    Running,
    Task,
    TaskState,
    initial_configuration,
)
from cutwater.semantics.wellformed import checked_configuration, graph_of, ill_formed


def task(name, inputs, output):
    return Task(name, keep, tuple(inputs), output, ())


A, B = task("a", ["x"], "y"), task("b", ["y", "v"], "z")
INPUTS = {"x": [[1], [2]], "v": [[3], []]}


def start(tasks=(A, B), inputs=INPUTS):
    return initial_configuration(Graph(tuple(tasks)), inputs)


def codes(c):
    with pytest.raises(FlowError) as raised:
        checked_configuration(c)
    return [problem.code for problem in raised.value.problems]


def messages(*found):
    both = Messages(frozenset(found))
    return {"messages": both, "inputs": both}


def test_a_valid_configuration_is_returned():
    c = start()
    assert checked_configuration(c) is c
    assert ill_formed(c) is None
    none = start(inputs={"x": [], "v": []})
    assert checked_configuration(none) is none


def after_a_step(c):
    model = BarrierModel(c)
    (point,) = model.initial_states()
    return model.step(point, model.actions(point)[0]).configuration


NOT_TO_START_FROM = {
    "cyclic-graph": start([task("a", ["z"], "y"), B]),
    "unequal-epochs": start(inputs={"x": [[1]], "v": [[1], [2]]}),
    "invalid-input": replace(start(), **messages(Message(0, "x", 1, EventContent(1)))),
    "invalid-state": after_a_step(start()),
}


@pytest.mark.parametrize("code", NOT_TO_START_FROM)
def test_definition_6_8_a_model_starts_from_a_valid_configuration(code):
    with pytest.raises(FlowError) as raised:
        BarrierModel(NOT_TO_START_FROM[code])
    assert code in [problem.code for problem in raised.value.problems]


def test_a_graph_puts_each_task_after_those_it_reads():
    assert [t.name for t in graph_of([B, A]).tasks] == ["a", "b"]
    assert graph_of([B, A]).number == {"a": 0, "b": 1}
    assert graph_of([B, A]).writer == {"y": 0, "z": 1}


GRAPHS = {
    "two tasks of one name": ([A, task("a", ["x"], "w")], ["duplicate-task"]),
    "two writers of one stream": ([A, task("b", ["x"], "y")], ["duplicate-task"]),
    "a task without input": ([A, task("b", [], "z")], ["task-without-input"]),
    "a stream read twice": ([task("a", ["x", "x"], "y")], ["stream-read-twice"]),
    "a circle": ([task("a", ["z"], "y"), task("b", ["y"], "z")], ["cyclic-graph"]),
    "a task that reads itself": ([task("a", ["x", "y"], "y")], ["cyclic-graph"]),
    "all at once": (
        [task("a", ["y", "y"], "y"), task("a", [], "w"), task("c", ["x"], "w")],
        ["duplicate-task", "duplicate-task", "stream-read-twice", "task-without-input"],
    ),
}


@pytest.mark.parametrize(("tasks", "expected"), GRAPHS.values(), ids=GRAPHS)
def test_what_is_no_graph_is_refused(tasks, expected):
    with pytest.raises(FlowError) as raised:
        graph_of(tasks)
    assert [problem.code for problem in raised.value.problems] == expected
    c = initial_configuration(Graph(tuple(tasks)), {"x": [[]]})
    assert codes(c)[: len(expected)] == expected


def test_the_circle_is_named():
    with pytest.raises(FlowError, match=r"a → b → a|b → a → b"):
        graph_of([task("a", ["z"], "y"), task("b", ["y"], "z"), task("c", ["x"], "w")])


X0, XB = Message(0, "x", 1, EventContent(1)), Message(1, "x", 1, BARRIER)
V0 = Message(0, "v", 1, BARRIER)
INVALID = {
    "a gap in the numbers": ([X0, replace(XB, n=2), V0], ["invalid-input"]),
    "two messages at one place": (
        [X0, replace(X0, content=EventContent(9)), XB, V0],
        ["invalid-input"],
    ),
    "numbers that begin at 1": ([replace(X0, n=1), replace(XB, n=2), V0], ["invalid-input"]),
    "an epoch that comes too early": ([replace(X0, epoch=2), XB, V0], ["invalid-input"]),
    "an epoch after the barrier": ([X0, replace(XB, epoch=2), V0], ["invalid-input"]),
    "an epoch that is not closed": ([X0, XB, V0, replace(X0, n=2, epoch=2)], ["invalid-input"]),
    "messages on the output of a task": (
        [X0, XB, V0, Message(0, "y", 1, BARRIER)], ["invalid-input"],
    ),
    "more epochs in one source": (
        [X0, XB, V0, Message(1, "v", 2, BARRIER)], ["unequal-epochs"],
    ),
    "no epochs in one source": ([X0, XB], ["unequal-epochs"]),
    "two of these": (
        [replace(X0, epoch=2), XB, V0, Message(1, "v", 2, BARRIER)],
        ["invalid-input", "unequal-epochs"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "expected"), INVALID.values(), ids=INVALID)
def test_invalid_inputs_are_refused(found, expected):
    assert codes(replace(start(), **messages(*found))) == expected


def test_messages_that_are_not_the_inputs_are_refused():
    c = start()
    assert codes(replace(c, inputs=Messages(frozenset()))) == ["invalid-input"]


def test_positions_other_than_0_are_refused():
    c = start()
    assert codes(replace(c, positions=((1, 0), (0, 0, 0)))) == ["invalid-input"]


@pytest.mark.parametrize(
    "state",
    [
        TaskState(((0, ()),), FAILED),
        TaskState(((0, ()),), Running(2, ())),
        TaskState(((0, ()),), Running(1, (5,))),
        TaskState(((0, ()), (1, ())), Running(1, ())),
        TaskState(((1, ()),), Running(2, ())),
        TaskState((), Running(1, ())),
    ],
)
def test_states_other_than_the_first_are_refused(state):
    c = start()
    assert codes(replace(c, states=(state, c.states[1]))) == ["invalid-state"]


def test_all_problems_are_listed_at_once():
    """Of the graph, the inputs, the positions and the states."""
    tasks = (task("a", ["x"], "y"), task("a", [], "z"))
    c = initial_configuration(Graph(tasks), {"x": [[1]], "v": [[2], []]})
    c = replace(
        c,
        positions=((1, 0), (0,)),
        states=(TaskState(((0, ()),), FAILED), c.states[1]),
        inputs=Messages(frozenset()),
    )
    assert codes(c) == [
        "duplicate-task",
        "task-without-input",
        "unequal-epochs",
        "invalid-input",
        "invalid-input",
        "invalid-state",
    ]


# -- well-formedness


def reached(*tasks_to_move):
    """The configuration after these tasks have taken a step each, by the rules."""
    model = BarrierModel(start())
    point = Point(model.initial, 0)
    for name in tasks_to_move:
        move = next(m for m in model.actions(point) if m.task == name)
        point = model.step(point, move)
    return point.configuration


def moved(c, number, place, by):
    positions = [list(position) for position in c.positions]
    positions[number][place] += by
    return replace(c, positions=tuple(map(tuple, positions)))


def test_what_the_rules_reach_is_well_formed():
    for names in ("", "a", "aa", "aab", "aabb", "aabbb", "aabba"):
        assert ill_formed(reached(*names)) is None


ILL_FORMED = {
    "a reader beyond the end": (
        lambda c: moved(c, 1, 0, 2), "'b' is at 3 of 'y', which has 2 messages",
    ),
    "a writer that is not at the end": (
        lambda c: moved(c, 0, 1, -1), "'a' is at 1 of its output, which has another length",
    ),
    "a writer beyond the end": (
        lambda c: moved(c, 0, 1, 1), "'a' is at 3 of its output, which has another length",
    ),
    "a reader that has read a newer epoch": (
        lambda c: moved(c, 1, 1, 3),
        "'b' in epoch 1 has read epoch 2 of 'v'",
    ),
    "a reader that has left out an older epoch": (
        lambda c: moved(c, 0, 0, -1), "'a' in epoch 2 has not read message 1 of 'x'",
    ),
    "a message that is lost": (
        lambda c: replace(
            c, messages=Messages(c.messages.all - {Message(0, "y", 1, EventContent((1,)))})
        ),
        "the stream 'y' has a message 1 where 0 is due",
    ),
    "an open input": (
        lambda c: replace(c, messages=c.messages.with_message(Message(4, "x", 3, EventContent(0)))),
        "the last epoch of 'x' is not closed",
    ),
    "a message of a wrong epoch": (
        lambda c: replace(c, messages=c.messages.with_message(Message(2, "y", 1, EventContent(0)))),
        "message 2 of 'y' is of epoch 1 where 2 is due",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), ILL_FORMED.values(), ids=ILL_FORMED)
def test_what_is_not_well_formed_is_reported(damage, message):
    c = reached("a", "a", "b")
    assert ill_formed(c) is None
    assert ill_formed(damage(c)) == message


def test_of_a_failed_task_only_the_places_count():
    c = reached("a", "a")
    state = TaskState(c.states[0].archive, FAILED)
    assert ill_formed(replace(c, states=(state, c.states[1]))) is None
