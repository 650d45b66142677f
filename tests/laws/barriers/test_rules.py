"""The rules of P1, section 4, against a second statement of them (`support.barriers.paper`)."""

import random
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.barriers import paper
from support.checking.random_systems import drawn_run, keep, random_system, seeds

from cutwater.semantics.barrier_model import BarrierModel, Fail, Point, Recover
from cutwater.semantics.barriers import (
    BARRIER,
    FAILED,
    Consume,
    EventContent,
    Message,
    Messages,
    Produce,
    Task,
    apply_actions,
    barrier_step,
    event_step,
    fail_step,
    greatest_common_epoch,
    initial_configuration,
    latest_common_snapshot,
    output,
    recover_all,
    take_step,
)
from cutwater.semantics.wellformed import checked_configuration, graph_of


def as_paper(messages):
    return {(m.n, m.stream, m.epoch, paper.content(m.content)) for m in messages}


@given(seeds)
def test_the_steps_and_their_results_are_those_of_the_rules(seed):
    run = drawn_run(seed, longest=60)
    model = BarrierModel(run.initial, crashes=1)
    for c in run.configurations[::3]:
        point = Point(c, 1)
        mine = {}
        for move in model.actions(point):
            label = paper.label(move)
            assert label not in mine  # each step is offered once
            mine[label] = paper.translated(model.step(point, move).configuration)
        theirs = paper.successors(paper.translated(c))
        # a second crash of a task that is down changes nothing, and is not offered
        idle = {("fail", t.name) for t, s in zip(c.graph.tasks, c.states, strict=True)
                if s.volatile is FAILED}  # fmt: skip
        assert all(theirs.pop(label) == paper.translated(c) for label in idle)
        assert mine == theirs


@given(seeds)
def test_definitions_4_2_to_4_5(seed):
    for c in drawn_run(seed).configurations[::5]:
        plain = paper.translated(c)
        assert greatest_common_epoch(c) == paper.gce(plain)
        assert as_paper(output(c)) == paper.out(plain)
        assert paper.translated(latest_common_snapshot(c)) == paper.lcs(plain)
        for task in c.graph.tasks:
            for stream in task.streams:
                assert as_paper(c.messages.on(stream)) == paper.on(plain["M"], stream)


CONTENTS = st.sampled_from([BARRIER, EventContent("a"), EventContent("b")])
STREAMS = ("x", "y", "o")
ACTIONS = st.lists(
    st.builds(
        lambda make, *rest: make(*rest),
        st.sampled_from([Produce, Consume]),
        st.sampled_from(STREAMS),
        st.integers(1, 2),
        CONTENTS,
    ),
    max_size=5,
)
MESSAGES = st.frozensets(
    st.builds(Message, st.integers(0, 2), st.sampled_from(STREAMS), st.integers(1, 2), CONTENTS),
    max_size=12,
)


@given(ACTIONS, st.tuples(*[st.integers(0, 2)] * 3), MESSAGES)
def test_definition_4_1_action_application(actions, at, messages):
    """Any actions on any messages, also where two stand at one place."""
    theirs = paper.applied(
        [
            ("+" if isinstance(a, Produce) else "-", a.stream, (a.epoch, paper.content(a.content)))
            for a in actions
        ],
        dict(zip(STREAMS, at, strict=True)),
        as_paper(messages),
    )
    mine = apply_actions(actions, STREAMS, at, Messages(messages))
    if theirs is None:
        assert mine is None
    else:
        assert mine is not None
        assert dict(zip(STREAMS, mine[0], strict=True)) == theirs[0]
        assert as_paper(mine[1]) == theirs[1]


def test_definition_4_1_is_undefined_where_the_message_is_not_there():
    there = Messages(frozenset([Message(0, "x", 1, EventContent("a"))]))
    assert apply_actions([Consume("x", 1, EventContent("a"))], ["x"], (0,), there) == ((1,), there)
    for missing in (Consume("x", 1, EventContent("b")), Consume("x", 2, EventContent("a")),
                    Consume("x", 1, BARRIER)):  # fmt: skip
        assert apply_actions([missing], ["x"], (0,), there) is None
    assert apply_actions([Consume("x", 1, EventContent("a"))], ["x"], (1,), there) is None
    produced_first = [Produce("x", 1, EventContent("b")), Consume("x", 1, EventContent("a"))]
    assert apply_actions(produced_first, ["x"], (0,), there) is None  # the place has moved on


def test_definition_4_1_keeps_what_is_consumed_and_adds_what_is_produced():
    none = Messages(frozenset())
    applied = apply_actions([Produce("o", 1, BARRIER), Produce("o", 2, BARRIER)], ["o"], (3,), none)
    assert applied is not None
    assert applied[0] == (5,)
    assert applied[1].all == {Message(3, "o", 1, BARRIER), Message(4, "o", 2, BARRIER)}


@given(MESSAGES, MESSAGES, MESSAGES)
def test_sets_that_grew_from_one_set_do_not_see_what_the_other_got(first, second, third):
    with patch("cutwater.semantics.barriers._MANY", 2):
        start = one = other = Messages(first)
        for message in second:
            one = one.with_message(message)
        for message in third:
            other = other.with_message(message)
    for messages, expected in ((start, first), (one, first | second), (other, first | third)):
        assert messages.all == expected
        assert len(messages) == len(expected)
        for message in first | second | third:
            assert (message in messages) == (message in expected)
            at = {m for m in expected if (m.stream, m.n) == (message.stream, message.n)}
            assert set(messages.at(message.stream, message.n)) == at


@given(MESSAGES, MESSAGES)
def test_messages_are_a_set_found_by_their_places(first, second):
    messages = Messages(first)
    messages.at("x", 0)  # from here on places are kept up to date
    for message in second:
        messages = messages.with_message(message)
    assert messages == Messages(first | second)
    assert hash(messages) == hash(Messages(first | second))
    assert repr(messages) == repr(Messages(first | second))
    assert len(messages) == len(first | second)
    for stream in STREAMS:
        for n in range(4):
            expected = {m for m in first | second if (m.stream, m.n) == (stream, n)}
            found = messages.at(stream, n)
            assert len(found) == len(expected)
            assert set(found) == expected


TASK = Task("t", keep, ("x", "y"), "o", ())


def start(**epochs):
    return checked_configuration(initial_configuration(graph_of([TASK]), epochs))


def test_a_failed_task_takes_no_event_and_no_barrier_and_can_fail_again():
    state = fail_step(start(x=[[]], y=[[]]).states[0]).state
    assert event_step(TASK, state, "x", 1) is None
    assert barrier_step(TASK, state) is None
    assert fail_step(state).state == state
    assert fail_step(state).actions == ()


def test_a_barrier_waits_for_every_input():
    c = start(x=[[]], y=[["a"]])
    local = barrier_step(TASK, c.states[0])
    assert take_step(c, 0, local) is None
    after = take_step(c, 0, event_step(TASK, c.states[0], "y", "a"))
    assert take_step(after, 0, barrier_step(TASK, after.states[0])) is not None


def test_a_recovery_needs_a_crash():
    c = start(x=[[]], y=[[]])
    assert recover_all(c) is None
    model = BarrierModel(c, crashes=1)
    assert Recover() not in model.actions(Point(c, 1))
    with pytest.raises(ValueError, match="not possible here"):
        model.step(Point(c, 1), Recover())


def test_crashes_are_counted_and_never_of_a_task_that_is_down():
    c = start(x=[[]], y=[[]])
    model = BarrierModel(c, crashes=2)
    (point,) = model.initial_states()
    down = model.step(point, Fail("t"))
    assert down.crashes == 1
    assert model.actions(down) == [Recover()]
    assert Fail("t") not in BarrierModel(c, crashes=0).actions(Point(c, 0))


def test_a_recovery_also_counts_streams_that_nobody_reads():
    """Regression: |out ↓ s| is asked of the tasks' streams alone, out has the others' too."""
    c = initial_configuration(
        graph_of([Task("t", keep, ("x",), "o", ())]), {"x": [["a"], []], "unread": [["b"], []]}
    )
    model = BarrierModel(checked_configuration(c), crashes=1)
    (point,) = model.initial_states()
    while greatest_common_epoch(point.configuration) == 0:
        point = model.step(point, model.actions(point)[0])
    after = model.step(model.step(point, Fail("t")), Recover())
    expected = paper.lcs(paper.translated(point.configuration))
    assert paper.translated(after.configuration) == expected


@given(seeds)
def test_configurations_are_frozen_and_equal_configurations_hash_alike(seed):
    run = drawn_run(seed, longest=40)
    again = drawn_run(seed, longest=40)
    for mine, other in zip(run.configurations, again.configurations, strict=True):
        if mine.graph is not other.graph:  # two graphs are equal if they are one
            other = msgspec.structs.replace(other, graph=mine.graph)
        assert mine == other
        assert hash(mine) == hash(other)
    c = run.last
    for frozen in (
        c,
        c.states[0],
        next(iter(c.messages)),
        Point(c, 1),
        run.initial.states[0].volatile,
    ):
        with pytest.raises(AttributeError):
            setattr(frozen, frozen.__struct_fields__[0], None)


def test_the_same_seed_draws_the_same_system():
    """The laws rest on it: a red test stays red."""
    one, other = (random_system(random.Random(5)) for _ in range(2))
    assert paper.translated(one) == paper.translated(other)
