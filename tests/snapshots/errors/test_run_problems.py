"""What a user reads when a simulated run meets data or functions that do not keep their rule."""

import datetime as dt
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from unittest import mock

import pytest
from support.repo.package import SOURCE
from support.repo.pinned import assert_pinned, without_places

import cutwater as cw
from cutwater.errors import CutwaterError
from cutwater.operators import bounded
from cutwater.semantics import hanging

RUNS = {}


@dataclass(frozen=True)
class Reading:
    sensor: str
    at: float
    value: float


GOOD = Reading("a", 1, 2.0)


def run_for(name):
    def register(run):
        RUNS[name] = run
        return run

    return register


def simulated(build, items, **options):
    """A run of the flow that `build` makes of a source of readings."""
    flow = cw.Flow("run")
    flow.sink("out", build(flow.source("readings", Reading, time="at")))
    return cw.simulate(flow, {"readings": items}, **options)


def same(stream):
    return stream


@run_for("unknown-source: with a suggestion")
def _():
    flow = cw.Flow("run")
    flow.sink("out", flow.source("readings", Reading))
    cw.simulate(flow, {"readings": [], "reading": []})


@run_for("unknown-source, and missing-input")
def _():
    flow = cw.Flow("run")
    flow.sink("out", flow.source("readings", Reading).merge(flow.source("resets", str)))
    cw.simulate(flow, {"x": []})


@run_for("late-event")
def _():
    flow = cw.Flow("run")
    flow.sink("out", flow.source("words", str, late="fail"))
    cw.simulate(flow, {"words": [cw.Watermark(2), cw.Data(1, "b")]})


@run_for("unknown-step")
def _():
    simulated(same, [GOOD, cw.crash("averages")])


@run_for("not-inputs")
def _():
    cw.simulate(cw.Flow("run"), ["a", "b"])


def shortened(reading: Reading) -> str:
    return reading.value


@run_for("not-as-annotated")
def _():
    flow = cw.Flow("run")
    names = flow.source("readings", Reading, time="at").map(shortened)
    flow.sink("out", names.aggregate(n=cw.agg.count()))
    cw.simulate(flow, {"readings": [GOOD]})


@run_for("too-small")
def _():
    simulated(same, [GOOD], trace=True, instances=0)


@run_for("epoch-size")
def _():
    simulated(same, [GOOD], epoch_size=0)


@run_for("record-type")
def _():
    simulated(same, [GOOD, {"sensor": "a"}])


@run_for("record-type: of an event's value")
def _():
    simulated(same, [cw.Data(1, "a")])


@run_for("not-a-time: nothing")
def _():
    simulated(same, [Reading("a", None, 1.0)])


@run_for("not-a-time: not a number")
def _():
    simulated(same, [Reading("a", float("nan"), 1.0)])


@run_for("not-a-time: of two kinds")
def _():
    simulated(same, [cw.Watermark(5), Reading("a", dt.date(2024, 1, 1), 1.0)])


@run_for("times-do-not-compare")
def _():
    flow = cw.Flow("run")
    flow.sink("out", flow.source("a", int).merge(flow.source("b", int)))
    cw.simulate(flow, {"a": [1], "b": [cw.Watermark("t")]})


@run_for("clocks-do-not-meet")
def _():
    from cutwater.spark.job.spec import spark_plan
    from cutwater.spark.support import check_support

    flow = cw.Flow("run")
    a, b, c = (flow.source(name, int) for name in "abc")
    joined = a.join_clocks(b, max, unbounded=True)
    flow.sink("out", joined.merge(a.join_clocks(c, max, unbounded=True, name="other"), name="all"))
    check_support(spark_plan(flow))


@run_for("unknown-sink")
def _():
    simulated(same, [])["output"]


@run_for("step-failed: a function")
def _():
    def calibrate(reading):
        raise ValueError(f"no curve for {reading.sensor}")

    simulated(lambda s: s.map(calibrate), [GOOD])


@run_for("step-failed: a generator")
def _():
    def halves(reading):
        yield reading.value / 2
        raise ValueError("no second half")

    simulated(lambda s: s.flat_map(halves), [GOOD])


@run_for("step-failed: a task")
def _():
    @cw.task(initial={})
    def look_up(state, reading):
        return state, [state[reading.sensor]]

    simulated(lambda s: s.key_by("sensor").apply(look_up), [GOOD])


@run_for("step-failed: an aggregate over what cannot be added")
def _():
    simulated(lambda s: s.map(lambda r: r.sensor).aggregate(total=cw.agg.sum()), [GOOD])


@run_for("step-failed: a field that a value does not have")
def _():
    simulated(lambda s: s.map(lambda r: r.sensor).aggregate(n=cw.agg.max("at")), [GOOD])


@run_for("step-failed: at the end of the input")
def _():
    def complete(state, time):
        raise ValueError("no more")

    def receive(state, time, value):
        return state, [cw.Notify(time)]

    simulated(lambda s: s.on_complete(receive, complete, initial=0), [GOOD])


@run_for("step-failed: a histogram of what has no hash")
def _():
    simulated(lambda s: s.map(lambda r: [r]).histogram(), [GOOD, cw.Watermark(2)])


@run_for("step-failed: a key")
def _():
    simulated(lambda s: s.key_by(lambda r: r.place).batch(), [GOOD])


@run_for("not-a-key")
def _():
    simulated(lambda s: s.key_by(lambda r: [r.sensor]).batch(), [GOOD])


@run_for("endless-outputs")
def _():
    with mock.patch.object(bounded, "MOST_OUTPUTS", 1_000):
        simulated(lambda readings: readings.flat_map(lambda reading: count()), [GOOD])


def spin(reading):
    while reading:
        pass


@run_for("hanging-function")
def _():
    with (
        mock.patch.object(hanging, "WATCH_TICK_S", 0.01),
        mock.patch.object(hanging, "PATIENCE", 3),
    ):
        simulated(lambda readings: readings.map(spin), [GOOD])


@run_for("not-a-state-and-outputs: no pair")
def _():
    @cw.task(initial=0)
    def total(state, reading):
        return state + reading.value

    simulated(lambda s: s.apply(total), [GOOD])


@run_for("not-a-state-and-outputs: a single output")
def _():
    @cw.task(initial=0)
    def total(state, reading):
        return state, "output"

    simulated(lambda s: s.apply(total), [GOOD])


@run_for("not-an-event")
def _():
    op = cw.Operator(0, lambda state, event: (state, [event.value]))
    simulated(lambda s: s.operator(op), [GOOD])


@run_for("notification-in-the-past")
def _():
    def receive(state, time, value):
        return state, [cw.Notify(time - 1)]

    simulated(lambda s: s.on_complete(receive, lambda s, t: (s, []), initial=0), [GOOD])


@run_for("notification-in-the-past: of the present, while being notified")
def _():
    def receive(state, time, value):
        return state, [cw.Notify(time)]

    def again(state, time):
        return state, [cw.Notify(time)]

    simulated(lambda s: s.on_complete(receive, again, initial=0), [GOOD])


@run_for("window-too-small")
def _():
    far = Reading("a", 1e300, 1.0)
    simulated(lambda s: s.window(cw.tumbling(0.1)).aggregate(n=cw.agg.count()), [far])


@run_for("time-has-no-predecessor")
def _():
    flow = cw.Flow("run")
    windows = flow.source("a", int).window(cw.tumbling(2)).aggregate(n=cw.agg.count())
    flow.sink("out", windows)
    cw.simulate(flow, {"a": [cw.Data(Fraction(1, 2), 1)]})


def problems(name):
    with pytest.raises(CutwaterError) as raised:
        RUNS[name]()
    return raised.value.problems


@pytest.mark.parametrize("name", RUNS)
def test_the_run_has_the_problem_it_is_named_after(name):
    assert re.match("[a-z-]+", name)[0] in {problem.code for problem in problems(name)}


def test_every_code_of_a_run_has_a_run():
    modules = [
        "flow/lowering",
        "operators/notify",
        "operators/task",
        "operators/windows",
        "semantics/crashing",
        "semantics/inputs",
        "semantics/segments",
        "semantics/simulator",
    ]
    text = "".join((SOURCE / "cutwater" / f"{name}.py").read_text() for name in modules)
    codes = set(re.findall(r'Problem\(\s*"([a-z-]+)"', text))
    assert len(codes) > 10
    assert codes <= {problem.code for name in RUNS for problem in problems(name)}


def test_what_the_user_reads():
    text = ""
    for name in sorted(RUNS):
        listed = "\n".join(map(str, problems(name)))
        text += f"--- {name}\n{without_places(listed)}\n\n"
    assert_pinned(Path(__file__).with_name("run_problems.txt"), text)
