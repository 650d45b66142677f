"""Which loops are cut at a log, and what a flow is with its loop cut."""

import re
from typing import Any

import pytest
from support.repo.package import ROOT

import cutwater as cw
from cutwater.errors import FlowError
from cutwater.flow import steps as s
from cutwater.flow.inference import infer
from cutwater.flow.timely.cutting import (
    cut,
    iteration_phrase,
    loop_sentences,
    loop_to_cut,
    why_whole,
)


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
    "'pairs' in its body depends on event times": looping(joined),
    "'by time' in its body depends on event times": looping(timed),
    "a type that cannot be serialised": looping(untyped),
    "'merge' downstream of it also reads 'numbers', in another epoch": looping(
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
    told = iteration_phrase(steps, steps[number])
    assert told.startswith("all iterations in one epoch")
    assert why in told or not steps[number].has_exchange, "the drawing says why"


def test_a_run_says_how_its_loops_iterate():
    """Those with a key_by in their bodies; the others always iterate in the bucket of the key."""
    assert list(loop_sentences(looping(halving).steps)) == [
        "loop 'loop': one iteration per epoch, input epochs at once"
    ]
    (told,) = loop_sentences(looping(timed).steps)
    assert told.startswith(
        "loop 'loop': all iterations in one epoch, in one bucket: 'by time' in its body depends on"
    )
    assert list(loop_sentences(looping(keyed, before=lambda n: n.key_by(parity)).steps)) == []
    assert list(loop_sentences(looping(halving).steps, "it rains")) == [
        "loop 'loop': all iterations in one epoch, in one bucket: it rains"
    ]


def test_the_page_lists_exactly_the_steps_that_keep_a_loop_in_one_bucket():
    kinds = [getattr(s, name) for name in s.__all__]
    timed = {kind.verb for kind in kinds if kind.waits or kind.reads_times}
    page = (ROOT / "docs" / "time.md").read_text()
    (listed,) = re.findall(
        r"of a loop in it, depends on times: (.*?) with `expire_after`", page, re.S
    )
    refused_in_a_body = {"join_clocks"}
    a_loop_itself = {"iterate"}
    wanted = timed - refused_in_a_body - a_loop_itself
    assert set(re.findall(r"`(\w+)`", listed)) == wanted | {"apply"}


def test_times_in_an_inner_loop_are_times_in_the_outer_one_too():
    steps = looping(in_another).steps
    assert "'by time' in its body depends on event times" in why_whole(steps, 1, infer(steps)[0])


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
    assert [iteration_phrase(flow.steps, flow.steps[n]) for n in (1, 3)] == [
        "one iteration per epoch, input epochs at once",
        "all iterations in one epoch, in one bucket: 'first' has the log",
    ]


def counted(stream: cw.Stream) -> cw.Stream:
    keyed = stream.key_by(parity, name="parity")
    return keyed.apply(counting, name="counting").flat_map(halves, name="halves")


@cw.task(initial=0)
def counting(seen: int, n: int) -> tuple[int, list[int]]:
    return seen + 1, [n]


def counted_inside(stream: cw.Stream, **settings: Any) -> cw.Stream:
    keyed = stream.key_by(parity, name="parity")
    inner = keyed.iterate(counted_keyed, name="inner", **settings)
    return inner.flat_map(halves, name="halves")


def counted_keyed(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    told = stream.apply(counting, name="counting")
    return told.flat_map(halves, name="inner halves"), told


@pytest.mark.parametrize(
    ("body", "settings", "overlaps"),
    [
        (halving, {}, True),
        (counted, {}, False),
        (counted, {"state_per_epoch": True}, True),
        (counted_inside, {}, False),
        (lambda s: counted_inside(s, state_per_epoch=True), {}, True),
    ],
    ids=["no state", "kept", "per epoch", "kept in an inner loop", "per round in an inner loop"],
)
def test_input_epochs_overlap_where_a_body_keeps_nothing_between_them(body, settings, overlaps):
    steps = looping(body, **settings).steps
    logs = [step for step in cut(steps) if isinstance(step, s.FromLog)]
    assert [log.overlaps for log in logs] == [overlaps, overlaps]
    assert ("at once" in iteration_phrase(steps, steps[1])) == overlaps
    assert ("since its body keeps state" in iteration_phrase(steps, steps[1])) != overlaps


def test_an_inner_loop_with_an_exchange_turns_in_one_bucket_and_the_drawing_says_so():
    def outer(stream: cw.Stream) -> cw.Stream:
        return halving(stream.iterate(inner_halving, name="inner"))

    steps = looping(outer).steps
    assert loop_to_cut(steps) is steps[1]
    assert iteration_phrase(steps, steps[1]).endswith(
        "input epochs at once; 'inner' in it in one bucket"
    )


def inner_halving(stream: cw.Stream) -> cw.Stream:
    return stream.key_by(parity, name="inner parity").flat_map(halves, name="inner halves")


def test_a_loop_behind_two_clocks_is_cut():
    steps = looping(halving, before=of_two_clocks).steps
    assert loop_to_cut(steps) is not None


def test_a_plan_that_is_asked_for_is_kept_or_refused():
    assert loop_to_cut(looping(halving, plan="epoch").steps) is None
    assert loop_to_cut(looping(halving, plan="log").steps) is not None
    with pytest.raises(
        FlowError, match="cannot run one iteration per epoch: 'by time' in its body"
    ):
        looping(timed, plan="log").validate()

    def inner(stream: cw.Stream) -> cw.Stream:
        return stream.iterate(halving, plan="log", name="inner")

    with pytest.raises(FlowError, match="has plan='log', and is in the body of another loop"):
        looping(inner).validate()
