"""A user's own operator, and the other operators of P4, as steps of flows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.errors import FlowError, InputError
from cutwater.operators import (
    accumulate,
    batch,
    compose,
    flatten,
    histogram,
    identity,
    map_values,
    produce,
    skip,
)
from cutwater.operators.bulk import bulk_values


@dataclass(frozen=True)
class Item:
    at: int
    name: str


def dated(time: int, item: Item) -> str:
    return f"{item.name}@{time}"


def joined(values: list[Item]) -> list[str]:
    return ["".join(item.name for item in values)]


def flow_of(build: Any, *, key: str | None = None) -> cw.Flow:
    flow = cw.Flow("operators")
    items = flow.source("items", Item, time="at")
    flow.sink("out", build(items.key_by(key) if key else items))
    return flow


def simulated(build: Any, events: list[Any], **options: Any) -> list[Any]:
    return cw.simulate(flow_of(build, **options), {"items": events})["out"]


def data_of(op: cw.Operator, events: list[Any]) -> list[Any]:
    return [event.value for event in produce(op, events) if isinstance(event, cw.Data)]


def as_events(inputs: list[Any]) -> list[Any]:
    dated = (cw.Data(e.at, e) if isinstance(e, Item) else e for e in inputs)
    return [event for event in dated if event is not cw.BARRIER]


@st.composite
def streams(draw: Any) -> list[Any]:
    """Items with watermarks that keep their word, and barriers."""
    events: list[Any] = []
    complete = -1
    for _ in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(["item", "item", "watermark", "barrier"]))
        if kind == "item":
            events.append(Item(complete + draw(st.integers(1, 4)), draw(st.sampled_from("abc"))))
        elif kind == "watermark":
            complete += draw(st.integers(1, 2))
            events.append(cw.Watermark(complete))
        else:
            events.append(cw.BARRIER)
    return events


def count_step(seen: int, event: Any) -> tuple[int, list[Any]]:
    if isinstance(event, cw.Watermark):
        return seen, [event]
    return seen + 1, [cw.Data(event.time, f"{event.value.name}{seen + 1}")]


COUNT = cw.Operator(0, count_step)

OPERATORS = {
    "own": COUNT,
    "batch": batch(),
    "batch from the start": batch([(0, Item(0, "p"))]),
    "composed": compose(batch(), accumulate(), map_values(lambda t, pairs: (t, len(pairs)))),
    "flattened": compose(batch(), map_values(lambda _t, pairs: list(pairs)), flatten()),
    "histogram": histogram(),
    # it counts watermarks too, so it must be there before the first event
    "skipping": replace(skip(compose(identity(), batch()), 2), is_awake=True),
    "in bulk": bulk_values(joined, 3),
}


@given(events=streams())
@pytest.mark.parametrize("name", OPERATORS)
def test_a_step_of_an_operator_is_the_operator(name, events):
    op = OPERATORS[name]
    assert simulated(lambda s: s.operator(op), events) == data_of(op, as_events(events))


STEPS = {
    "map_values": (lambda s: s.map_values(dated), map_values(dated)),
    "flatten": (
        lambda s: s.map(lambda i: [i.name, i.name]).flatten(),
        compose(map_values(lambda _t, i: [i.name, i.name]), flatten()),
    ),
    "bulk": (lambda s: s.bulk(joined, 2), bulk_values(joined, 2)),
    "bulk from a buffer": (
        lambda s: s.bulk(joined, 3, buffer=[(0, Item(0, "p"))]),
        bulk_values(joined, 3, [(0, Item(0, "p"))]),
    ),
    "batch": (
        lambda s: s.batch(pending=[(2, Item(2, "p"))]),
        batch([(2, Item(2, "p"))]),
    ),
    "accumulate": (
        lambda s: s.batch().accumulate(batches=[(0, Item(0, "p"))], unbounded=True),
        compose(batch(), accumulate([(0, Item(0, "p"))])),
    ),
    "histogram": (
        lambda s: s.histogram(pending=[(2, Item(2, "p"))]),
        histogram([(2, Item(2, "p"))]),
    ),
}


@given(events=streams())
@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_its_operator(name, events):
    build, op = STEPS[name]
    assert simulated(build, events) == data_of(op, as_events(events))


@given(events=streams(), n=st.integers(0, 3))
def test_skip_leaves_out_the_first_values_of_each_key(events, n):
    items = [event for event in events if isinstance(event, Item)]
    whole = simulated(lambda s: s.skip(n), events)
    assert whole == items[n:]
    by_name = simulated(lambda s: s.skip(n), events, key="name")
    for name in "abc":
        assert [i for i in by_name if i.name == name] == [i for i in items if i.name == name][n:]


@given(events=streams())
def test_a_keyed_operator_has_a_state_for_each_key(events):
    found = simulated(lambda s: s.operator(COUNT), events, key="name")
    items = [event for event in events if isinstance(event, Item)]
    seen: Counter[str] = Counter()
    for item in items:
        seen[item.name] += 1
    expected = [f"{name}{n + 1}" for name in seen for n in range(seen[name])]
    assert sorted(found) == sorted(expected)


def test_what_is_held_from_the_start_comes_without_an_event():
    held = Item(1, "p")
    assert simulated(lambda s: s.batch(pending=[(1, held)]), []) == [((1, held),)]
    assert simulated(lambda s: s.bulk(joined, 2, buffer=[(1, held)]), []) == ["p"]


def test_a_barrier_of_an_operator_is_the_end_of_an_epoch():
    def barrier(seen: int) -> tuple[int, list[Any]]:
        return 0, [cw.Data(9, f"{seen} in this epoch")]

    op = cw.Operator(
        0, lambda seen, event: (seen + isinstance(event, cw.Data), []), barrier=barrier
    )
    events = [Item(1, "a"), Item(2, "b"), cw.BARRIER, Item(3, "c")]
    assert simulated(lambda s: s.operator(op), events) == ["2 in this epoch", "1 in this epoch"]


def test_the_types_of_composed_operators_are_known():
    flow = flow_of(lambda s: s.operator(compose(batch(), map_values(lambda t, v: v), batch())))
    plan = cw.flow.fusing.plan(flow)
    assert "Any" in str(plan.segments[-1].output.value)
    known = flow_of(lambda s: s.operator(compose(map_values(dated), batch())))
    assert cw.flow.fusing.plan(known).segments[-1].output.value == tuple[tuple[int, str], ...]


def test_check_explores_an_operator_and_finds_it_sound():
    report = cw.check(flow_of(lambda s: s.operator(COUNT, emits=str), key="name"))
    assert report.holds, report


def test_check_finds_an_operator_that_is_not_pure():
    seen: list[int] = []

    def step(state: int, event: Any) -> tuple[int, list[Any]]:
        seen.append(1)
        return state, [cw.Data(event.time, len(seen))] if isinstance(event, cw.Data) else []

    report = cw.check(flow_of(lambda s: s.operator(cw.Operator(0, step), name="leaky")))
    assert not report.holds
    assert "leaky" in report.details()


def test_check_finds_a_state_that_a_snapshot_does_not_give_back():
    def step(state: set[int], event: Any) -> tuple[Any, list[Any]]:
        return {*state, "text"}, []

    report = cw.check(flow_of(lambda s: s.operator(cw.Operator(set(), step), name="odd")))
    assert not report.holds
    assert "a snapshot does not restore unchanged" in report.details()


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda s: s.operator(lambda state, event: (state, [])), "not-an-operator"),
        (lambda s: s.skip(-1), "not-a-count"),
        (lambda s: s.bulk(joined, 0), "not-a-count"),
        (lambda s: s.bulk("joined", 2), "not-a-function"),
        (lambda s: s.map_values(3), "not-a-function"),
        (lambda s: s.map(dated).flatten(), None),
        (lambda s: s.map_values(dated).flatten(), "not-several-values"),
        (lambda s: s.batch(pending=[(0, "p")]), "buffer-of-another-kind"),
        (lambda s: s.batch(pending=[Item(0, "p")]), "buffer-of-another-kind"),
        (lambda s: s.key_by("name").batch(pending=[(0, Item(0, "p"))]), "buffer-of-keys"),
        (lambda s: s.key_by("name").operator(batch([(0, Item(0, "p"))])), "buffer-of-keys"),
    ],
)
def test_what_does_not_fit_is_reported(build, code):
    flow = flow_of(build)
    if code is None:
        return
    with pytest.raises(FlowError) as caught:
        flow.validate()
    assert code in [problem.code for problem in caught.value.problems]


def test_an_operator_that_emits_no_events_is_reported():
    op = cw.Operator(0, lambda state, event: (state, ["text"]))
    with pytest.raises(InputError, match="not-an-event"):
        simulated(lambda s: s.operator(op), [Item(1, "a")])
