"""Times, keys and watermarks go where they matter; what is complete is known from the sources."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.flows.random_flows import recipes

import cutwater as cw
from cutwater.errors import RunError
from cutwater.flow.fusing import plan
from cutwater.operators.frontier import Frontier
from cutwater.spark.job.column_requirements import ColumnRequirements
from cutwater.times import maximal


@dataclass(frozen=True)
class Item:
    name: str
    at: int


@cw.task(initial=0)
def count(seen: int, item: Any) -> tuple[int, list[Item]]:
    return seen + 1, [item]


def names(planned, numbers):
    return {step.name for number in numbers for step in planned.segments[number].steps}


def requirements_of(flow):
    planned = plan(flow, numbered=int)
    return planned, ColumnRequirements(planned)


def test_a_flow_of_tasks_needs_nothing_but_values():
    flow = cw.Flow("tasks")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(1))
    flow.sink("out", items.key_by("name").apply(count))
    _, requirements = requirements_of(flow)
    assert [
        requirements.times,
        requirements.keys,
        requirements.watermarks,
        requirements.watermark_sources,
    ] == [frozenset()] * 4


def test_times_travel_from_the_source_to_the_last_step_that_needs_them():
    flow = cw.Flow("times")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(1))
    flow.sink("aside", items.key_by("name", name="k").apply(count, name="aside"))
    waiting = items.key_by("name").apply(count).key_by("at").batch()
    flow.sink("out", waiting.key_by(len, name="behind").apply(count, name="last"))
    planned, requirements = requirements_of(flow)
    assert names(planned, requirements.times) == {"items", "by_name", "count", "by_at", "batch"}
    assert names(planned, requirements.watermarks) == {"by_at", "batch"}
    assert requirements.watermark_sources == {"items"}
    assert not requirements.watermarks_meet


def joined_clocks(flow):
    """Two sources by one clock, one by another."""
    first, second, versions = (
        flow.source(name, Item, time="at", watermark=cw.bounded_delay(1)) for name in "abc"
    )
    return first.merge(second).join_clocks(versions, lambda a, b: a, unbounded=True)


def test_behind_two_clocks_the_product_of_what_each_side_completed_is_complete():
    flow = cw.Flow("clocks")
    flow.sink("out", joined_clocks(flow).batch())
    planned, requirements = requirements_of(flow)
    (last,) = (segment for segment in planned.segments if segment.number in requirements.watermarks)
    assert requirements.completed(last, {"a": 5, "b": 3, "c": 1}) == cw.Product(3, 1)
    assert requirements.completed(last, {"a": 5, "c": 1}) is None
    assert requirements.met_by("a") == {"b"}
    assert requirements.met_by("c") == frozenset()


def test_products_of_different_clocks_are_not_merged():
    flow = cw.Flow("clocks")
    joined = joined_clocks(flow)
    other = flow.source("d", Item, time="at").join_clocks(
        flow.source("e", Item, time="at"), lambda a, b: a, unbounded=True
    )
    flow.sink("out", joined.merge(other, name="all").batch())
    with pytest.raises(RunError) as caught:
        requirements_of(flow)
    assert caught.value.problems[0].code == "clocks-do-not-meet"
    assert "merge 'all'" in caught.value.problems[0].message


def test_no_watermark_comes_where_a_source_never_completes_anything():
    flow = cw.Flow("never")
    items = flow.source("items", Item, time="at")
    others = flow.source("others", Item, time="at", watermark=cw.bounded_delay(1))
    flow.sink("out", items.merge(others).batch())
    planned, requirements = requirements_of(flow)
    assert names(planned, requirements.times) == {"items", "others", "merge", "batch"}
    assert [requirements.watermarks, requirements.watermark_sources] == [frozenset()] * 2


def test_keys_travel_to_what_shows_them_unless_it_has_a_key_of_its_own():
    flow = cw.Flow("keys")
    keyed = flow.source("items", Item).key_by("name")
    flow.sink("a", keyed.aggregate(n=cw.agg.count(), name="shows"))
    flow.sink("b", keyed.apply(count, name="counts").filter(bool, name="f"))
    flow.sink("c", keyed.key_by("at").aggregate(n=cw.agg.count(), name="own"))
    planned, requirements = requirements_of(flow)
    assert names(planned, requirements.keys) == {"by_name", "shows", "by_at", "own"}


def frontiers(planned, epochs):
    """What each segment completes in each epoch, by the rule of the frontier, step by step."""
    held = [Frontier.of(len(segment.inputs) or 1) for segment in planned.segments]
    for marks in epochs:
        common = {}
        for segment in planned.segments:
            edges = enumerate(edge.segment for edge in segment.inputs)
            news = [(port, time) for port, above in edges for time in common[above]]
            if segment.source:
                news = [(0, marks[segment.name])] if segment.name in marks else []
            found = []
            for port, time in news:
                held[segment.number], more = held[segment.number].advance(port, [time])
                found += more
            common[segment.number] = maximal(found)
        yield common


@given(
    recipes(explicit=False),
    st.lists(st.dictionaries(st.sampled_from("xyz"), st.integers(1, 3), max_size=3), max_size=6),
)
def test_a_frontier_is_the_least_mark_of_all_sources_above(recipe, steps):
    planned = plan(recipe.flow(), numbered=int)
    requirements = ColumnRequirements(planned)
    marks, epochs, known = {}, [], []
    for grown in steps:
        news = {name: marks.get(name, 0) + by for name, by in grown.items()}
        marks = marks | news
        epochs.append(news)
        known.append(marks)
    before = {}
    for common, after in zip(frontiers(planned, epochs), known, strict=True):
        for segment in planned.segments:
            old, new = (requirements.completed(segment, marks) for marks in (before, after))
            assert common[segment.number] == ([] if old == new else [new])
        before = after


def test_marks_that_do_not_compare_are_a_sentence_that_names_the_step():
    flow = cw.Flow("kinds")
    a, b = flow.source("a", Item), flow.source("b", Item)
    flow.sink("out", a.merge(b, name="both").batch())
    planned, requirements = requirements_of(flow)
    with pytest.raises(RunError, match="times-do-not-compare") as refused:
        requirements.completed(planned.segments[-1], {"a": 1, "b": "z"})
    assert "merge 'both'" in str(refused.value) or "batch" in str(refused.value)
