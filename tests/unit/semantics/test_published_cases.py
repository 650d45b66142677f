"""Inputs and outputs that nobody on this project wrote: P1's Listing 1, P4's Fig. 1."""

from collections import Counter
from dataclasses import dataclass

import pytest
from support.operators.figures import STREAM, t0, t1, t2, t3, t4, t5

import cutwater as cw
from cutwater.events import Data, Watermark
from cutwater.operators import accumulate, batch, compose, histogram, histogram_paths, produce

B = cw.BARRIER
MORE = [Data(t0, "a"), *STREAM]  # the cases begin with one more


@dataclass(frozen=True)
class Reset:
    """Listing 1's other input."""


@cw.task(initial=(0, 0))
def running_average(
    state: tuple[int, int], event: int | Reset
) -> tuple[tuple[int, int], list[float]]:
    total, count = (0, 0) if isinstance(event, Reset) else (state[0] + event, state[1] + 1)
    return (total, count), [total / count if count else 0]


def averages(ints, resets):
    flow = cw.Flow("incremental average")
    merged = flow.source(ints, int).merge(flow.source(resets, Reset))
    flow.sink("averages", merged.apply(running_average))
    inputs = {ints: [1, B, 3, 5, B], resets: [B, Reset(), B]}
    return cw.simulate(flow, inputs).by_epoch("averages")


def test_the_incremental_average_of_listing_1():
    """Without a failure: E(1), barrier, Reset, E(3), E(5), barrier."""
    assert averages(ints="ints", resets="a resets") == [[1], [0, 3, 4], []]


def test_with_the_names_the_other_way_round_the_reset_comes_last():
    assert averages(ints="ints", resets="resets") == [[1], [2, 3, 0], []]


def simulated(build, events=STREAM):
    flow = cw.Flow("P4")
    flow.sink("out", build(flow.source("letters", str)))
    result = cw.simulate(flow, {"letters": events})
    return [event for epoch in result.events["out"] for event in epoch]


STEPS = {
    "batch": (lambda s: s.batch(), batch()),
    "accumulate": (lambda s: s.batch().accumulate(unbounded=True), compose(batch(), accumulate())),
    "histogram": (lambda s: s.histogram(unbounded=True), histogram()),
    "histogram_paths": (lambda s: s.histogram(paths=True, unbounded=True), histogram_paths()),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("events", [STREAM, MORE, []], ids=["Fig. 1a", "with one more", "empty"])
def test_an_unkeyed_step_is_the_operator(step, events):
    build, op = STEPS[step]
    assert simulated(build, events) == list(produce(op, events))


def test_batch_of_fig_1():
    assert simulated(lambda s: s.batch(), MORE) == [
        Data(t1, ((t0, "a"), (t0, "a"), (t1, "c"))),
        Watermark(t1),
        Data(t5, ((t2, "b"), (t3, "a"), (t5, "a"), (t5, "c"))),
        Watermark(t5),
        Watermark(t2),
        Data(t4, ((t4, "d"),)),
    ]


def test_histogram_of_fig_1():
    shown = [
        e for e in simulated(lambda s: s.histogram(unbounded=True), MORE) if isinstance(e, Data)
    ]
    assert shown == [
        Data(t0, Counter("aa")),
        Data(t1, Counter("aac")),
        Data(t2, Counter("aab")),
        Data(t3, Counter("aaa")),
        Data(t5, Counter("aaaabc")),
        Data(t4, Counter("aacd")),
    ]


def test_histogram_paths_of_fig_1():
    shown = simulated(lambda s: s.histogram(paths=True, unbounded=True), MORE)
    assert Data(t5, Counter("aaaaaabc")) in shown
