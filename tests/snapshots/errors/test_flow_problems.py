"""What a user reads when a flow cannot mean anything: one flow for every code there is."""

import datetime as dt
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.flows.sensors import Reading
from support.repo.package import SOURCE
from support.repo.pinned import assert_pinned, without_places

import cutwater as cw
from cutwater.flow import steps as s
from cutwater.flow.where import Where

FLOWS = {}
HERE = Where("jobs.py", 1)


@dataclass(frozen=True)
class Reset:
    sensor: str
    at: dt.datetime


@dataclass
class Lost:
    x: "Nowhere"  # noqa: F821


@cw.task(initial=0)
def count_resets(seen: int, event: Reset) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def to_name(reading: Reset) -> str:
    return reading.sensor


def to_number(reading: Reading) -> int:
    return int(reading.value)


def receive(state, time, value):
    return state, []


def complete(state, time):
    return state, []


def flow_for(name):
    """Registers a function that builds, from a flow and its readings, one that is wrong."""

    def register(build):
        FLOWS[name] = build
        return build

    return register


def built(name):
    flow = cw.Flow(name)
    readings = flow.source("readings", Reading, time="at")
    result = FLOWS[name](flow, readings)
    if isinstance(result, cw.Flow):
        return result
    flow.sink("out", readings if result is None else result)
    flow.sink("all", readings)
    return flow


@flow_for("no-name")
def _(flow, readings):
    flow.sink("", flow.source(None, Reading))


@flow_for("bad-name")
def _(flow, readings):
    flow.sink("../../evil", readings.key_by("sensor", name="a\0b").apply(count_any, name=".."))
    flow.sink("x" * 201, flow.source("orders/eu", Reading))
    flow.sink("late events: readings", readings)
    return readings.map(lambda reading: reading.at, name="\x1b[2J")


@cw.task(initial=0)
def count_any(seen, event):
    return seen + 1, []


def named_once(reading: Reading) -> str | int:
    return reading.sensor


@flow_for("not-several-values")
def _(flow, readings):
    return readings.flat_map(named_once)


@cw.task(initial=0)
def forgets_its_outputs(seen: int, reading: Reading) -> int:
    return seen + 1


@flow_for("no-state-and-outputs")
def _(flow, readings):
    return readings.apply(forgets_its_outputs)


@flow_for("duplicate-step: two sources")
def _(flow, readings):
    return readings.merge(flow.source("readings", Reading, time="at"))


@flow_for("duplicate-step: two steps")
def _(flow, readings):
    return readings.apply(count_any).apply(count_any)


@flow_for("duplicate-step: two sinks")
def _(flow, readings):
    flow.sink("out", readings)


@flow_for("unreached-sink")
def _(flow, readings):
    flow.sink("elsewhere", cw.Flow("other").source("a", int))


@flow_for("foreign-stream: of another flow")
def _(flow, readings):
    return readings.merge(cw.Flow("other").source("a", Reading))


@flow_for("foreign-stream: not a stream at all")
def _(flow, readings):
    return readings.join([1, 2], lambda a, b: a)


@flow_for("unknown-late-policy")
def _(flow, readings):
    return flow.source("more", Reading, time="at", late="ignore")


@flow_for("cycle")
def _(flow, readings):
    steps = [
        s.Source(name="a", where=HERE, type=int),
        s.Merge(name="round", where=HERE, inputs=(0, 2)),
        s.Map(name="back", where=HERE, inputs=(1,), f=abs),
        s.Sink(name="out", where=HERE, inputs=(2,)),
    ]
    return cw.Flow("cycle", steps)


@flow_for("no-sink")
def _(flow, readings):
    return cw.Flow("empty", flow.steps)


@flow_for("no-source")
def _(flow, readings):
    return cw.Flow("empty")


@flow_for("unused-step")
def _(flow, readings):
    readings.filter(lambda reading: reading.value > 0)


@flow_for("endless-loop")
def _(flow, readings):
    return readings.iterate(lambda stream: stream)


@flow_for("not-a-body")
def _(flow, readings):
    return readings.iterate(lambda stream: (stream.filter(bool), readings), name="mixed")


@flow_for("not-a-number-of-rounds")
def _(flow, readings):
    return readings.iterate(lambda stream: stream.filter(bool), max_rounds=0)


@flow_for("state-ends-too-early")
def _(flow, readings):
    def body(stream):
        return stream.filter(bool, name="again").batch(name="until complete").flatten()

    return readings.iterate(body, state_per_epoch=True)


@flow_for("loop-without-log")
def _(flow, readings):
    return readings.iterate(lambda stream: stream.filter(bool), plan="log")


@flow_for("unknown-plan")
def _(flow, readings):
    return readings.iterate(lambda stream: stream.filter(bool), plan="rounds")


@flow_for("end-in-a-loop")
def _(flow, readings):
    return readings.iterate(lambda stream: stream.filter(bool).sink("inside"))


@flow_for("clocks-in-a-loop")
def _(flow, readings):
    def body(stream):
        pairs = stream.filter(bool).join_clocks(stream, lambda a, b: a, unbounded=True)
        return pairs.filter(bool)

    return readings.iterate(body)


@flow_for("unused-step: in a loop")
def _(flow, readings):
    def body(stream):
        stream.map(str)
        return stream.filter(bool)

    return readings.iterate(body)


@flow_for("foreign-stream: in a loop")
def _(flow, readings):
    return readings.iterate(lambda stream: stream.merge(readings))


@flow_for("event-type: of what is fed back")
def _(flow, readings):
    return readings.iterate(lambda stream: stream.map(to_number).filter(bool))


@flow_for("time-is-no-number: in a loop")
def _(flow, readings):
    return readings.iterate(lambda s: s.window(cw.tumbling(5)).aggregate(n=cw.agg.count()))


@flow_for("missing-time")
def _(flow, readings):
    return readings.merge(flow.source("a", Reading, watermark=cw.bounded_delay(1)))


@flow_for("not-a-watermark")
def _(flow, readings):
    return readings.merge(flow.source("a", Reading, time="at", watermark=5))


@flow_for("time-has-no-predecessor")
def _(flow, readings):
    return flow.source("a", Reading, time="sensor", watermark=cw.bounded_delay(1)).map(str)


@flow_for("unknown-field: of a source")
def _(flow, readings):
    return readings.merge(flow.source("a", Reading, time="when"))


@flow_for("unknown-field: of a key")
def _(flow, readings):
    return readings.key_by("sensor", "place")


@flow_for("unknown-field: that not all types share")
def _(flow, readings):
    return flow.source("a", Reading | Reset).key_by("value")


@flow_for("unknown-field: of an aggregate")
def _(flow, readings):
    return readings.aggregate(total=cw.agg.sum("amount"))


@flow_for("unresolved-annotation")
def _(flow, readings):
    return flow.source("a", Lost, time="x")


@flow_for("no-key: none at all")
def _(flow, readings):
    return readings.key_by()


@flow_for("no-key: a field and a function")
def _(flow, readings):
    return readings.key_by("sensor", 5)


@flow_for("union-of-different-types")
def _(flow, readings):
    return readings.union(flow.source("a", int, time=None))


@flow_for("times-do-not-compare: in a merge")
def _(flow, readings):
    return readings.merge(flow.source("a", Reset, time="at"))


@flow_for("times-do-not-compare: in a join")
def _(flow, readings):
    return readings.join(flow.source("a", Reset, time="at"), lambda left, right: left)


@flow_for("not-a-task")
def _(flow, readings):
    return readings.apply(5)


@flow_for("event-type: of a task")
def _(flow, readings):
    return readings.apply(count_resets)


@flow_for("event-type: of a function")
def _(flow, readings):
    return readings.map(to_name)


@flow_for("not-a-function")
def _(flow, readings):
    return readings.map("sensor")


@flow_for("not-a-function: complete")
def _(flow, readings):
    return readings.on_complete(lambda state, time, value: (state, []), None, initial=0)


@flow_for("not-an-operator")
def _(flow, readings):
    return readings.operator("batch")


@flow_for("not-a-count: skip")
def _(flow, readings):
    return readings.skip(-1)


@flow_for("not-a-count: bulk")
def _(flow, readings):
    return readings.bulk(list, 0)


@flow_for("not-several-values: flatten")
def _(flow, readings):
    return readings.flatten()


@flow_for("buffer-of-another-kind")
def _(flow, readings):
    return readings.batch(pending=[(0, "text")])


@flow_for("buffer-of-keys")
def _(flow, readings):
    return readings.key_by("sensor").operator(cw.Operator(0, count_any, is_awake=True))


@flow_for("requests-of-keys")
def _(flow, readings):
    keyed = readings.key_by("sensor")
    return keyed.on_complete(receive, complete, initial=0, requests=[5])


@flow_for("request-of-another-kind")
def _(flow, readings):
    return readings.on_complete(receive, complete, initial=0, requests=[5, "noon"])


@flow_for("not-batches")
def _(flow, readings):
    return readings.accumulate(unbounded=True)


@flow_for("unbounded-state: accumulate")
def _(flow, readings):
    return readings.batch().accumulate()


@flow_for("unbounded-state: histogram over times of unknown order")
def _(flow, readings):
    return flow.source("a", str).histogram().map(str)


@flow_for("unbounded-state: a join of clocks")
def _(flow, readings):
    return readings.join_clocks(flow.source("other", Reading, time="at"), lambda a, b: a)


@flow_for("unbounded-state: histogram by paths")
def _(flow, readings):
    return readings.histogram(paths=True)


@flow_for("unbounded-state: a running collect")
def _(flow, readings):
    return readings.aggregate(every=cw.agg.collect())


@flow_for("join-of-keyed-with-unkeyed")
def _(flow, readings):
    return readings.key_by("sensor").join(readings, lambda a, b: a)


@flow_for("unknown-emit")
def _(flow, readings):
    return readings.aggregate(n=cw.agg.count(), emit="always")


@flow_for("not-an-aggregate")
def _(flow, readings):
    return readings.aggregate(n=cw.agg.count)


@flow_for("aggregate-columns: none")
def _(flow, readings):
    return readings.aggregate()


@flow_for("aggregate-columns: one twice")
def _(flow, readings):
    return readings.key_by("sensor").aggregate(sensor=cw.agg.count())


@flow_for("not-a-window")
def _(flow, readings):
    return readings.window(10).aggregate(n=cw.agg.count())


@flow_for("not-a-length: an empty window")
def _(flow, readings):
    return readings.window(cw.sliding(10, every=0)).aggregate(n=cw.agg.count())


@flow_for("not-a-length: a number for datetimes")
def _(flow, readings):
    resets = flow.source("a", Reset, time="at", watermark=cw.bounded_delay(60))
    return resets.window(cw.session(60)).aggregate(n=cw.agg.count())


@flow_for("not-a-length: a negative delay")
def _(flow, readings):
    return readings.apply(count_any, expire_after=-1)


@flow_for("window-offset")
def _(flow, readings):
    window = cw.tumbling(dt.timedelta(hours=1), offset=dt.timedelta(minutes=5))
    return flow.source("a", Reset, time="at").window(window).aggregate(n=cw.agg.count())


@flow_for("time-is-no-number: a window")
def _(flow, readings):
    named = flow.source("a", Reading, time="sensor")
    return named.window(cw.tumbling(10)).aggregate(n=cw.agg.count())


@flow_for("time-is-no-number: expire_after")
def _(flow, readings):
    return flow.source("a", Reading, time="sensor").apply(count_any, expire_after=5)


def problems(name):
    with pytest.raises(cw.FlowError) as raised:
        built(name).validate()
    return raised.value.problems


@pytest.mark.parametrize("name", FLOWS)
def test_the_flow_has_the_problem_it_is_named_after(name):
    assert name.split(":")[0] in {problem.code for problem in problems(name)}


def test_every_code_of_validation_has_a_flow():
    sources = [
        SOURCE / "cutwater" / "flow" / f"{name}.py"
        for name in ("validation", "inference", "inferred/operator_steps", "inferred/functions")
    ]
    text = "".join(source.read_text() for source in sources)
    codes = set(re.findall(r'Problem\(\s*"([a-z-]+)"', text))
    assert len(codes) > 20
    assert codes <= {name.split(":")[0] for name in FLOWS}


def test_what_the_user_reads():
    text = ""
    for name in sorted(FLOWS):
        listed = "\n".join(map(str, problems(name)))
        text += f"--- {name}\n{without_places(listed)}\n\n"
    text = re.sub(r"<function (\w+) at 0x\w+>", r"<function \1>", text)
    assert_pinned(Path(__file__).with_name("flow_problems.txt"), text)
