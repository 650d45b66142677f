"""Validation says everything at once, and says nothing about what is right."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import pytest
from support.flows.sensors import Reading, Reset

import cutwater as cw
from cutwater.flow.validation import problems_of

T = TypeVar("T")


class HasSensor(Protocol):
    sensor: str


def codes(flow):
    return [problem.code for problem in problems_of(flow.steps)]


def test_all_problems_of_a_flow_are_reported_at_once():
    flow = cw.Flow("bad")
    readings = flow.source("readings", Reading, time="when", watermark=cw.bounded_delay(1))
    flow.source("readings", Reset)
    bad = readings.key_by("place").map(5).apply(print).batch().batch()
    flow.sink("out", bad.iterate(lambda s: s))
    flow.sink("lost", None)
    with pytest.raises(cw.FlowError) as raised:
        flow.validate()
    assert [problem.code for problem in raised.value.problems] == [
        "duplicate-step",
        "duplicate-step",
        "unreached-sink",
        "unused-step",
        "unknown-field",
        "unknown-field",
        "not-a-function",
        "not-a-task",
        "endless-loop",
    ]
    assert str(raised.value) == "\n".join(map(str, raised.value.problems))


def test_what_reads_something_unknown_has_no_problem_of_its_own():
    flow = cw.Flow("bad")
    a = flow.source("a", Reading)
    foreign = cw.Flow("other").source("b", Reading)
    both = a.merge(foreign).key_by("nonsense").accumulate()
    flow.sink("out", a.key_by("sensor").join(both, lambda x, y: x))
    assert codes(flow) == ["foreign-stream"]


def test_a_problem_behind_an_unresolved_annotation_is_not_made_up():
    @dataclass
    class Lost:
        x: "Nowhere"  # noqa: F821

    flow = cw.Flow("bad")
    lost = flow.source("a", Lost).key_by("x")
    flow.sink("out", lost.join(flow.source("b", Reading).key_by("sensor"), lambda x, y: x))
    assert codes(flow) == ["unresolved-annotation"]


def test_a_source_a_step_and_a_sink_may_share_a_name():
    flow = cw.Flow("names")
    flow.sink("a", flow.source("a", int).map(abs, name="a"))
    flow.validate()


def on_stream_of(tp, build):
    flow = cw.Flow("types")
    flow.sink("out", build(flow.source("a", tp, time=None)))
    return codes(flow)


class Tool:
    def name(self, reading: Reading) -> str:
        return reading.sensor

    def pair(self, left: Reading, right: Reset) -> tuple[Reading, Reset]:
        return left, right

    def receive(self, state: int, time: Any, value: Reading) -> tuple[int, list[int]]:
        return state, []

    def __call__(self, reading: Reading) -> str:
        return reading.sensor


def identity(value: T) -> T:
    return value


def by_protocol(value: HasSensor) -> str:
    return value.sensor


def direction(value: Any) -> Literal["up", "down"]:
    return "up"


def pairs(value: Any) -> tuple[int, int]:
    return 1, 2


def total(values: tuple[int, ...]) -> int:
    return sum(values)


def unresolved(value: "Nowhere") -> "Nowhere":  # noqa: F821
    return value


def generate(value: Any) -> Iterator[Reading]:
    yield value


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.map(Tool().name),
        lambda s: s.map(Tool()),
        lambda s: s.map(functools.partial(by_protocol)),
        lambda s: s.map(identity).map(identity).key_by("sensor"),
        lambda s: s.map(by_protocol).map(str.upper).map(len),
        lambda s: s.map(direction).map(str).map(int),
        lambda s: s.map(pairs).map(total),
        lambda s: s.map(unresolved).key_by("whatever"),
        lambda s: s.flat_map(generate).key_by("sensor").map(by_protocol),
        lambda s: s.filter(by_protocol).map(by_protocol),
        lambda s: s.on_complete(Tool().receive, lambda state, time: (state, []), initial=0),
        lambda s: s.join(s.map(lambda r: Reset(r.sensor, r.at)), Tool().pair),
        lambda s: s.batch().map(lambda batch: batch[0]).key_by("anything"),
    ],
)
def test_what_fits_is_let_through(build):
    assert on_stream_of(Reading, build) == []


def test_a_bound_method_is_checked_without_its_self():
    assert on_stream_of(Reset, lambda s: s.map(Tool().name)) == ["event-type"]
    assert on_stream_of(Reset, lambda s: s.join(s, Tool().pair)) == ["event-type"]


def test_types_are_followed_through_the_flow():
    """map's result, flat_map's element, a task's outputs, a record of aggregates, a join."""

    @cw.task(initial=0)
    def count(state: int, reading: Reading) -> tuple[int | None, list[Reset]]:
        return state, []

    def wants_text(value: str) -> str:
        return value

    steps = [
        (lambda s: s.map(Reset.__call__).map(wants_text), []),
        (lambda s: s.map(lambda r: r).map(wants_text), []),
        (lambda s: s.map(pairs).map(wants_text), ["event-type"]),
        (lambda s: s.flat_map(generate).map(wants_text), ["event-type"]),
        (lambda s: s.apply(count).map(wants_text), ["event-type"]),
        (lambda s: s.apply(count).key_by("sensor", "at"), []),
        (lambda s: s.key_by("sensor").aggregate(n=cw.agg.count()).key_by("sensor", "n"), []),
        (lambda s: s.aggregate(n=cw.agg.count()).key_by("sensor"), ["unknown-field"]),
        (lambda s: s.aggregate(n=cw.agg.count()).map(wants_text), ["event-type"]),
        (lambda s: s.batch().map(wants_text), ["event-type"]),
        (lambda s: s.merge(s.apply(count)).key_by("sensor"), []),
        (lambda s: s.merge(s.apply(count)).key_by("value"), ["unknown-field"]),
        (lambda s: s.join(s, Tool().pair), ["event-type"]),
    ]
    assert [on_stream_of(Reading, build) for build, _ in steps] == [found for _, found in steps]


def test_a_merge_is_keyed_where_all_its_inputs_are_keyed_alike():
    flow = cw.Flow("keys")
    a, b = flow.source("a", Reading), flow.source("b", Reset)
    alike = a.key_by("sensor").merge(b.key_by("sensor"))
    flow.sink("out", alike.join(a.key_by("sensor"), lambda x, y: x, name="one"))
    flow.validate()
    flow.sink("bad", a.key_by("sensor").merge(b).join(a.key_by("at"), lambda x, y: x))
    assert codes(flow) == ["join-of-keyed-with-unkeyed"]


def test_functions_that_are_annotated_to_return_no_outputs_are_found():
    def only_a_state(state: int, event: Reading) -> int:
        return state

    def only_outputs(state: int, event: Reading) -> list[int]:
        return []

    def one_output(state: int, event: Reading) -> tuple[int, int]:
        return state, state

    def text(state: int, event: Reading) -> tuple[int, str]:
        return state, ""

    def nothing(state: int, event: Reading) -> None:
        return None

    def three(state: int, event: Reading) -> tuple[int, list[int], int]:
        return state, [], 0

    for f in (only_a_state, only_outputs, one_output, text, nothing, three):
        made = cw.task(initial=0)(f)
        assert on_stream_of(Reading, lambda s, made=made: s.apply(made)) == ["no-state-and-outputs"]


def test_functions_that_may_return_outputs_are_let_through():
    class Both(NamedTuple):
        state: int
        outputs: list[int]

    def pair(state: int, event: Reading) -> tuple[int | None, list[int]]:
        return state, []

    def either(state: int, event: Reading) -> tuple[int, list[int]] | tuple[None, tuple[()]]:
        return state, []

    def generator(state: int, event: Reading) -> tuple[int, Iterator[int]]:
        return state, iter([])

    def named(state: int, event: Reading) -> Both:
        return Both(state, [])

    def bare(state: int, event: Reading) -> tuple:
        return state, []

    def unknown(state: int, event: Reading):
        return state, []

    for f in (pair, either, generator, named, bare, unknown):
        made = cw.task(initial=0)(f)
        assert on_stream_of(Reading, lambda s, made=made: s.apply(made)) == []


def test_a_flat_map_that_is_annotated_to_return_one_value_is_found():
    def size(reading: Reading) -> int:
        return 1

    assert on_stream_of(Reading, lambda s: s.flat_map(size)) == ["not-several-values"]
