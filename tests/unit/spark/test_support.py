"""What Spark can run: a total table, and everything it cannot is told at once."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

import cutwater as cw
from cutwater.errors import RunError
from cutwater.flow import steps
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import SUPPORT, check_support


@dataclass(frozen=True)
class Click:
    user: str
    at: int


@dataclass(frozen=True)
class Visit:
    user: str
    at: int


@cw.task(initial=0)
def count(seen: int, click: Any) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def clicks(flow, type=Click):
    return flow.source("clicks", type, time="at" if type is Click else None)


def problems_of(flow):
    with pytest.raises(RunError) as refused:
        check_support(spark_plan(flow))
    return refused.value.problems


def test_the_table_has_every_step_and_nothing_else():
    kinds = {getattr(steps, name) for name in steps.__all__} - {steps.Step}
    assert set(SUPPORT) == {kind for kind in kinds if issubclass(kind, steps.Step)}


def test_every_entry_says_how():
    assert all(SUPPORT.values())


def test_a_flow_of_supported_steps_is_let_through():
    flow = cw.Flow("fine")
    stream = clicks(flow).map(lambda click: click).filter(bool).flat_map(lambda click: [click])
    assert stream is not None
    typed = flow.source("typed", Click)
    flow.sink("counts", typed.key_by("user").apply(count))
    flow.sink("all", stream)
    check_support(spark_plan(flow))


def test_a_loop_stays_with_its_key_unless_its_body_keys_anew_also_in_a_loop_inside():
    flow = cw.Flow("loops")
    by_user = clicks(flow).key_by("user")
    flow.sink("a", by_user.iterate(lambda s: s.filter(bool, name="more"), name="stays"))

    def nested(stream):
        return stream.iterate(lambda s: s.key_by("user", name="anew"), name="inner")

    flow.sink("b", by_user.iterate(nested, name="leaves"))
    plan = spark_plan(flow)
    check_support(plan)
    places = {segment.steps[-1].name: segment.placement for segment in plan.segments}
    assert places["stays"] == "by key"
    assert places["leaves"] == "in one place"


def test_steps_that_wait_for_times_are_let_through():
    flow = cw.Flow("waiting")
    by_user = clicks(flow).key_by("user")
    flow.sink("a", by_user.window(cw.tumbling(10)).aggregate(n=cw.agg.count()))
    flow.sink("b", by_user.apply(count, expire_after=5))
    flow.sink("c", by_user.aggregate(n=cw.agg.count(), last=cw.agg.last()))
    flow.sink("d", by_user.batch().accumulate(unbounded=True))
    check_support(spark_plan(flow))


def test_all_gaps_are_reported_at_once_with_the_place():
    flow = cw.Flow("gaps")
    unknown = clicks(flow).map(lambda click: click)
    flow.sink("a", unknown.batch(name="held"))
    flow.sink("b", unknown.key_by(lambda click: click.user).aggregate(n=cw.agg.count()))
    found = problems_of(flow)
    assert [problem.code for problem in found] == ["unknown-type"] * 2
    assert all("test_support.py" in problem.message for problem in found)


def test_an_aggregate_of_an_unknown_field_is_refused():
    flow = cw.Flow("unknown field")
    counted = clicks(flow).key_by("user").map(lambda click: click)
    flow.sink("a", counted.aggregate(first=cw.agg.first()))
    (problem,) = problems_of(flow)
    assert problem.code == "unknown-type"
    assert "the state of aggregate" in problem.message


def test_a_value_of_unknown_type_may_not_cross_an_exchange():
    flow = cw.Flow("unknown")
    flow.sink("a", clicks(flow).map(lambda click: click).key_by(lambda c: c.user).apply(count))
    (problem,) = problems_of(flow)
    assert problem.code == "unknown-type"


def test_a_state_without_an_encoding_is_refused():
    @cw.task(initial=Fraction(0))
    def share(state: Fraction, click: Click) -> tuple[Fraction, list[int]]:
        return state, []

    flow = cw.Flow("fractions")
    flow.sink("a", clicks(flow).key_by("user").apply(share))
    (problem,) = problems_of(flow)
    assert problem.code == "type-without-encoding"
    assert "state of apply 'share'" in problem.message


class Plain:
    """No dataclass."""


@pytest.mark.parametrize("type", [Click | Visit, Plain, complex, Callable[[], int]])
def test_a_source_that_cannot_be_read_from_json_is_refused(type):
    """JSON does not say which of two dataclasses a record is."""
    flow = cw.Flow("unreadable")
    flow.sink("a", clicks(flow, type))
    (problem,) = problems_of(flow)
    assert problem.code == "type-without-decoding"
    assert "source 'clicks'" in problem.message


@pytest.mark.parametrize("type", [Click, str, int | None, list[Click], dict[str, Click], Any])
def test_a_source_of_anything_json_has_is_let_through(type):
    flow = cw.Flow("readable")
    flow.sink("a", clicks(flow, type))
    check_support(spark_plan(flow))
