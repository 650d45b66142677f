"""States at barriers and events at exchanges go through the codecs of their declared types."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.flows.awkward_states import (
    EMITTING,
    PATHS,
    Item,
    Two,
    extra_attribute,
    flow_of,
    items,
    shared_list,
)

import cutwater as cw
from cutwater.errors import StepError


def name_of(value):
    return value.name if isinstance(value, cw.Task) else ""


@pytest.mark.parametrize(("task", "message"), PATHS, ids=name_of)
def test_a_state_that_does_not_come_back_ends_a_simulation_with_step_and_field(task, message):
    with pytest.raises(StepError) as raised:
        cw.simulate(flow_of(task), {"items": items()})
    problem = raised.value.problems[0]
    assert problem.code == "lost-in-a-snapshot"
    assert f"apply '{task.name}' (" in problem.message
    assert message in problem.message


@pytest.mark.parametrize(("task", "message"), EMITTING, ids=name_of)
def test_what_an_annotation_does_not_allow_ends_a_simulation(task, message):
    with pytest.raises(StepError) as raised:
        cw.simulate(flow_of(task), {"items": items()})
    assert raised.value.problems[0].code == "not-as-annotated"
    assert message in raised.value.problems[0].message


@pytest.mark.parametrize(("task", "message"), [*PATHS, *EMITTING], ids=name_of)
def test_the_same_is_found_by_check(task, message):
    report = cw.check(flow_of(task), {"items": items()}, walks=2, max_states=500)
    (found,) = [f for f in report.violations if f.check.startswith("states and events")]
    assert any(message in text and f"apply '{task.name}' (" in text for text in found.details)


def test_a_shared_part_is_two_behind_a_barrier():
    """As on an engine, which decodes it; within an epoch it is one."""
    shown = cw.simulate(flow_of(shared_list), {"items": items()})["out"]
    assert shown[:2] == [repr(Two([1], [1])), repr(Two([1, 2], [1, 2]))]
    assert shown[2] == repr(Two([1, 2, 3], [1, 2]))


def test_check_finds_a_task_that_goes_by_a_shared_part():
    report = cw.check(flow_of(shared_list), {"items": items()}, walks=2, max_states=500)
    (found,) = [f for f in report.violations if f.check.startswith("states and events")]
    assert "'first' and 'second' are one object" in found.details[0]


def test_a_part_that_is_shared_and_never_changed_is_no_violation():
    @cw.task(initial=Two())
    def keep(state: Two, item: Item) -> tuple[Two, list[int]]:
        return Two(state.first, state.first), [item.size]

    report = cw.check(flow_of(keep), {"items": items()}, walks=2, max_states=500)
    assert report.holds


@dataclass(frozen=True)
class Priced:
    name: str
    price: float


def test_an_event_that_does_not_arrive_as_it_was_names_its_sender_and_field():
    def price(item: Item) -> Priced:
        return Priced(item.name, item.size)

    @cw.task(initial=0.0)
    def total(state: float, item: Priced) -> tuple[float, list[float]]:
        return state + item.price, [state + item.price]

    flow = cw.Flow("prices")
    flow.sink("out", flow.source("items", Item).map(price).key_by("name").apply(total))
    with pytest.raises(
        StepError, match=r"map 'price' .*key_by 'by_name'.*'price' is 1 \(int\), and"
    ):
        cw.simulate(flow, {"items": items()})


def test_a_source_reads_what_its_type_declares():
    """A whole number of an input is a float where one is declared, as it is read from a file."""
    flow = cw.Flow("prices")
    flow.sink("out", flow.source("prices", Priced).key_by("name").map(lambda p: repr(p.price)))
    assert cw.simulate(flow, {"prices": [Priced("a", 2)]})["out"] == ["2.0"]


def mapped(f, *, name="changed"):
    """A flow of one step without state, straight to a sink."""
    flow = cw.Flow("mapped")
    flow.sink("out", flow.source("items", Item).map(f, name=name))
    return flow


UNWRITABLE = {
    "text": (lambda item: item.name + "\ud800", "it is 'a\\ud800' (str)", "text is Unicode"),
    "key": (lambda item: {"n": {"\ud800": 1}}, "'['n']['\\ud800']' is", "text is Unicode"),
    "field": (lambda item: Item("\udcff", 1), "'name' is '\\udcff' (str)", "text is Unicode"),
}


@pytest.mark.parametrize(("f", "part", "why"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_no_sink_can_write_is_a_loss(f, part, why):
    with pytest.raises(StepError) as raised:
        cw.simulate(mapped(f), {"items": items()})
    (problem,) = raised.value.problems
    assert problem.code == "lost-in-a-sink"
    for message in ("map 'changed' (", "sink 'out' (", part, why):
        assert message in problem.message
    report = cw.check(mapped(f), {"items": items()}, walks=2, max_states=500)
    (found,) = [f for f in report.violations if f.check.startswith("states and events")]
    assert part in found.details[0]


def test_what_sinks_take_is_no_loss():
    for f in (lambda item: "\U0001f600é", lambda item: {"n": 1 << 70}, lambda item: item):
        assert cw.check(mapped(f), {"items": items()}, walks=2, max_states=500).holds


def test_an_event_that_is_no_text_is_named_and_ends_nothing():
    """Regression: the replay of a walk failed on the name of a key."""
    flow = cw.Flow("named")
    flow.sink("out", flow.source("items", Item).key_by("name").aggregate(n=cw.agg.count()))
    report = cw.check(flow, {"items": [Item("\ud800", 1)]}, walks=2, max_states=500)
    (found,) = [f for f in report.violations if f.check.startswith("states and events")]
    assert "'name' is '\\ud800' (str)" in found.details[0]
    assert "sends Item to" in found.details[0]


def test_a_state_within_an_epoch_is_not_looked_at():
    @cw.task(initial=0.0)
    def passing(state: float, item: Item) -> tuple[float | None, list[int]]:
        return (1 if item.size == 1 else None), [item.size]

    assert cw.simulate(flow_of(passing), {"items": items()})["out"] == [1, 2, 3, 4]


def test_crashes_do_not_hide_a_loss():
    given = [items()[0], cw.CRASH, *items()[1:]]
    with pytest.raises(StepError, match="seen"):
        cw.simulate(flow_of(extra_attribute), {"items": given})


ONE = [1]


@cw.task(initial=0)
def same_list(state: int, item: Item) -> tuple[int, list[list[int]]]:
    return state, [ONE]


def is_the_same(value: list[int]) -> bool:
    return value is ONE


def test_only_what_comes_to_a_segment_with_state_is_encoded():
    """As on an engine, which hands on within one process what no key is exchanged for."""
    flow = cw.Flow("handed on")
    made = [flow.source(name, Item).apply(same_list, name=f"make {name}") for name in "ab"]
    both = made[0].union(made[1])
    flow.sink("handed on", both.map(is_the_same))
    flow.sink("exchanged", both.key_by(len).map(is_the_same).apply(passing))
    shown = cw.simulate(flow, {"a": items()[:1], "b": []})
    assert shown["handed on"] == [True]
    assert shown["exchanged"] == [False]


@cw.task(initial=0)
def passing(state: int, value: bool) -> tuple[int, list[bool]]:
    return state, [value]
