"""Which loops are cut at a log, and what a flow is with its loop cut."""

from typing import Any

import pytest

import cutwater as cw
from cutwater.errors import FlowError
from cutwater.flow import steps as s
from cutwater.flow.inference import infer
from cutwater.flow.timely.cutting import cut, loop_to_cut, turning, why_whole


def parity(n: int) -> int:
    return n % 2


def halves(n: int) -> list[int]:
    return [n // 2] if n > 1 else []


def unknown(n):
    return [n]


def halving(stream: cw.Stream) -> cw.Stream:
    return stream.key_by(parity, name="parity").flat_map(halves, name="halves")


def keyed(stream: cw.Stream) -> cw.Stream:
    return stream.flat_map(halves, name="halves")


def joined(stream: cw.Stream) -> cw.Stream:
    pairs = halving(stream).join(stream.key_by(parity, name="too"), lambda a, b: a, name="pairs")
    return pairs.map(abs, name="size")


def timed(stream: cw.Stream) -> cw.Stream:
    return halving(stream).map_values(lambda time, n: n, name="by time")


def untyped(stream: cw.Stream) -> cw.Stream:
    return stream.key_by(parity, name="parity").flat_map(unknown, name="unknown")


def in_another(stream: cw.Stream) -> cw.Stream:
    return stream.iterate(timed, name="inner")


def looping(body: Any, before: Any = None, behind: Any = None, **settings: Any) -> cw.Flow:
    flow = cw.Flow("loops")
    numbers = flow.source("numbers", int)
    entering = before(numbers) if before else numbers
    left = entering.iterate(body, name="loop", **settings)
    flow.sink("out", behind(left, numbers) if behind else left)
    return flow


def of_two_clocks(numbers: cw.Stream) -> cw.Stream:
    other = numbers.flow.source("others", int).key_by(parity, name="other key")
    left = numbers.key_by(parity, name="key")
    return left.join_clocks(other, first_of, unbounded=True, name="pairs")


def first_of(a: int, b: int) -> int:
    return a


WHOLE = {
    "its body stays with its key": looping(keyed, before=lambda n: n.key_by(parity)),
    "'pairs' in its body goes by times": looping(joined),
    "'by time' in its body goes by times": looping(timed),
    "of a type that cannot be kept": looping(untyped),
    "'pairs' before it joins two clocks": looping(halving, before=of_two_clocks),
    "'merge' behind it also reads 'numbers', in another epoch": looping(
        halving, behind=lambda left, numbers: left.merge(numbers)
    ),
}


@pytest.mark.parametrize("why", WHOLE)
def test_a_loop_is_whole_where_someone_could_tell_a_round_from_an_epoch(why):
    steps = WHOLE[why].steps
    (number,) = (n for n, step in enumerate(steps) if isinstance(step, s.Iterate))
    assert why in why_whole(steps, number, infer(steps, numbered=int)[0])
    assert loop_to_cut(steps) is None
    assert cut(steps) == steps
    assert turning(steps, steps[number]).startswith("rounds in an epoch")


def test_times_in_an_inner_loop_are_times_in_the_outer_one_too():
    steps = looping(in_another).steps
    assert "'by time' in its body goes by times" in why_whole(steps, 1, infer(steps)[0])


def test_a_loop_that_is_cut_is_its_body_between_two_logs():
    steps = looping(halving, behind=lambda left, _: left.map(str, name="text")).steps
    made = cut(steps)
    assert [(type(step).__name__, step.name, step.inputs) for step in made] == [
        ("Source", "numbers", ()),
        ("FromLog", "fed back: loop", ()),
        ("Merge", "loop", (0, 1)),
        ("KeyBy", "parity", (2,)),
        ("FlatMap", "halves", (3,)),
        ("ToLog", "fed back: loop", (4,)),
        ("ToLog", "left: loop", (4,)),
        ("FromLog", "left: loop", ()),
        ("Map", "text", (7,)),
        ("Sink", "out", (8,)),
    ]
    types = infer(made, numbered=int)[0]
    whole = infer(steps, numbered=int)[0]
    assert types[7] == whole[1]
    assert types[8] == whole[2]
    cw.Flow("cut", made).validate()


def test_of_two_loops_the_first_is_cut():
    flow = cw.Flow("two")
    numbers = flow.source("numbers", int)
    first = numbers.iterate(halving, name="first")
    flow.sink("a", first)

    def other(stream: cw.Stream) -> cw.Stream:
        return stream.key_by(parity, name="other").flat_map(halves, name="more")

    flow.sink("b", numbers.iterate(other, name="second"))
    assert [turning(flow.steps, flow.steps[n]) for n in (1, 3)] == [
        "a round an epoch",
        "rounds in an epoch, in one bucket",
    ]


def test_a_plan_that_is_asked_for_is_kept_or_refused():
    assert loop_to_cut(looping(halving, plan="epoch").steps) is None
    assert loop_to_cut(looping(halving, plan="log").steps) is not None
    with pytest.raises(FlowError, match="cannot turn a round an epoch: 'by time' in its body"):
        looping(timed, plan="log").validate()

    def inner(stream: cw.Stream) -> cw.Stream:
        return stream.iterate(halving, plan="log", name="inner")

    with pytest.raises(FlowError, match="has plan='log', and is in the body of another loop"):
        looping(inner).validate()
