from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cutwater as cw
from cutwater.flow import steps as s
from cutwater.flow.timely.bodies import with_bodies


@dataclass(frozen=True)
class Reading:
    sensor: str
    at: int
    value: float


def explode(*_args: Any, **_settings: Any) -> Any:
    raise AssertionError("building a flow and validating it runs nothing")


@cw.task(initial=0)
def exploding(state: int, event: Any) -> tuple[int, list[int]]:
    return explode()


def every_verb() -> cw.Flow:
    """A correct flow with all verbs but iterate; running it would fail at once."""
    flow = cw.Flow("every verb")
    readings = flow.source("readings", Reading, time="at", watermark=cw.bounded_delay(5))
    others = flow.source("others", Reading, time="at")
    plain = readings.map(explode).flat_map(explode).filter(explode)
    keyed = readings.filter(explode).key_by("sensor")
    flow.sink("plain", plain)
    flow.sink("task", keyed.apply(exploding, expire_after=10))
    flow.sink("batch", keyed.batch())
    flow.sink("accumulate", readings.batch(name="b").accumulate(unbounded=True))
    flow.sink("histogram", readings.histogram())
    flow.sink("paths", readings.histogram(paths=True, unbounded=True, name="paths"))
    flow.sink("join", keyed.join(others.key_by(explode), explode))
    clocks = keyed.join_clocks(others.key_by(explode, name="by_clock"), explode, unbounded=True)
    flow.sink("clocks", clocks)
    flow.sink("union", readings.union(others))
    flow.sink("merge", readings.merge(others, plain))
    flow.sink("running", keyed.aggregate(n=cw.agg.count(), total=cw.agg.sum("value")))
    flow.sink("epochs", keyed.aggregate(name="epochs", emit="epoch", n=cw.agg.count()))
    for window in (cw.tumbling(5), cw.sliding(5, every=2, offset=1), cw.session(5)):
        name = type(window).__name__ + str(len(flow.steps))
        flow.sink(name, keyed.window(window).aggregate(name=name, high=cw.agg.max("value")))
    timed = readings.map_values(explode).flatten().skip(1)
    flow.sink("runs", timed.bulk(explode, 2, buffer=[(0, None)]))
    own = cw.Operator(0, explode, explode)
    flow.sink("own", keyed.operator(own, emits=int))
    flow.sink("held", readings.batch(name="held", pending=[(0, Reading("a", 0, 1.0))]))
    flow.sink("told", keyed.on_complete(explode, explode, initial=0, name="told"))
    return flow


def test_a_correct_flow_of_every_verb_validates_without_calling_a_function():
    flow = every_verb()
    flow.validate()
    flow.validate()
    verbs = {
        kind for kind in vars(s).values() if isinstance(kind, type) and issubclass(kind, s.Step)
    }
    assert {type(step) for step in flow.steps} == verbs - {
        s.Step,
        s.Iterate,
        s.Enter,
        s.FromLog,
        s.ToLog,
    }


def test_building_again_gives_the_same_steps():
    def shape(flow):
        return [(type(step), step.name, step.inputs, step.where) for step in flow.steps]

    assert shape(every_verb()) == shape(every_verb())


def test_the_body_of_a_loop_is_built_once_and_its_functions_are_not_called():
    flow = cw.Flow("loop")
    made = []

    def body(stream):
        made.append(stream.map(explode))
        return made[-1].filter(explode), made[-1]

    flow.sink("out", flow.source("a", int).iterate(body))
    flow.validate()
    assert len(made) == 1
    step = flow.steps[1]
    assert [inner.verb for inner in step.body] == ["enter", "map", "filter"]
    assert (step.again, step.out) == (2, 1)


def test_names_in_a_body_do_not_take_those_around_it():
    flow = cw.Flow("loop")
    numbers = flow.source("a", int).map(explode)
    flow.sink("out", numbers.iterate(lambda s: s.map(explode).iterate(lambda t: t.map(explode))))
    names = [step.name for step in with_bodies(flow.steps) if step.verb == "map"]
    assert names == ["explode", "explode_2", "explode_3"]
    flow.validate()


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def test_each_step_knows_the_file_and_line_of_its_user():
    flow = cw.Flow("places")
    a = flow.source("a", int)  # the source
    b = a.map(abs)  # the map
    c = (
        b.key_by(abs)
        .window(cw.tumbling(2))
        .aggregate(  # the window
            n=cw.agg.count()
        )
    )
    c.sink("out")  # the sink
    where = {step.verb: step.where for step in flow.steps}
    assert {place.file for place in where.values()} == {__file__}
    for verb in ("source", "map", "window", "sink"):
        assert where[verb].line == line_of(f"the {verb}")


def test_a_task_knows_where_it_is_defined():
    assert exploding.where.file == __file__
    assert "task at" not in str(exploding.where)
    assert str(exploding.where).endswith(f"test_builder.py:{exploding.where.line}")


def test_steps_without_state_get_a_free_name_and_others_keep_theirs():
    flow = cw.Flow("names")
    a = flow.source("a", int)
    for _ in range(3):
        a = a.map(abs).filter(lambda n: n).key_by("x", "y").merge(a).batch()
    assert [step.name for step in flow.steps[1:11]] == [
        "abs", "function", "by_x_y", "merge", "batch",
        "abs_2", "function_2", "by_x_y_2", "merge_2", "batch",
    ]  # fmt: skip


def test_a_given_name_is_the_name():
    flow = cw.Flow("names")
    a = flow.source("a", int)
    streams = [
        a.map(abs, name="m"),
        a.key_by(abs, name="k"),
        a.key_by("x", name="l"),
        a.apply(exploding, name="t"),
        a.window(cw.tumbling(1)).aggregate(name="w", n=cw.agg.count()),
        a.on_complete(explode, explode, initial=0, name="o"),
    ]
    assert [flow.steps[stream.number].name for stream in streams] == list("mkltwo")


def test_a_sink_gives_its_stream_back():
    flow = cw.Flow("tee")
    a = flow.source("a", int)
    a.sink("before").map(lambda n: -n).sink("after")
    result = cw.simulate(flow, {"a": [1, 2]})
    assert (result["before"], result["after"]) == ([1, 2], [-1, -2])


def test_a_flow_can_be_made_of_the_steps_of_another():
    flow = every_verb()
    assert cw.Flow("copy", flow.steps).steps == flow.steps


def test_streams_and_flows_say_what_they_are():
    flow = cw.Flow("f")
    assert repr(flow.source("a", int)) == "<Stream 'a' of flow 'f'>"
    assert repr(flow) == "<Flow 'f' of 1 steps>"
