"""Names become folders, topics and rows of ledgers: one that cannot is refused, wherever it is."""

import pytest

import cutwater as cw
from cutwater.errors import FlowError
from cutwater.flow.fusing import plan
from cutwater.flow.timely.cutting import log_name
from cutwater.flow.timely.own_names import OWN_PREFIXES
from cutwater.spark.connectors.base.side_outputs import bad_records_sink, late_events_sink

BAD = [
    "../../evil",
    "a/b",
    "/",
    "a\\b",
    ".",
    "..",
    ".hidden",
    "nul\0",
    "line\nend",
    "\x1b[2J",
    "\x7f",
    "\u202egnp.exe",
    "\ud800",
    "a\u2028b",
    " a",
    "a ",
    "x" * 201,
    "é" * 101,
]
GOOD = [
    "a",
    "orders of today",
    "Bestellungen-für_µs",
    "x" * 200,
    "a.b",
    "注文",
    "a: b",
    "1",
    "late events",
    "left:x",
]


def flow_with(kind, name):
    flow = cw.Flow(name if kind == "flow" else "copy")
    stream = flow.source(name if kind == "source" else "items", int)
    stream = stream.map(abs, name=name if kind == "step" else "absolute")
    flow.sink(name if kind == "sink" else "out", stream)
    return flow


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("kind", ["flow", "source", "step", "sink"])
def test_a_name_that_is_no_folder_is_refused(kind, name):
    with pytest.raises(FlowError) as refused:
        flow_with(kind, name).validate()
    (problem,) = refused.value.problems
    assert problem.code == "bad-name"
    assert problem.message.isprintable(), "what is shown does nothing to a terminal"
    with pytest.raises(FlowError, match="bad-name"):
        plan(flow_with(kind, name))


OWN = [
    bad_records_sink("items"),
    late_events_sink("items"),
    log_name("items", is_again=True),
    log_name("items", is_again=False),
]


def test_all_that_a_run_names_itself_is_reserved():
    assert {name.removesuffix("items") for name in OWN} == set(OWN_PREFIXES)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", ["source", "step", "sink"])
def test_a_name_that_a_run_gives_is_refused(kind, name):
    """A sink of that name would take the place of the run's own, and its binding would be gone."""
    with pytest.raises(FlowError) as refused:
        flow_with(kind, name).validate()
    (problem,) = refused.value.problems
    assert (problem.code, bool(problem.hint)) == ("bad-name", True)
    assert f"begins with '{name.removesuffix('items')}'" in problem.message


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("kind", ["flow", "source", "step", "sink"])
def test_other_names_are_as_good_as_any(kind, name):
    flow_with(kind, name).validate()


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_flow_has_a_name(name):
    with pytest.raises(FlowError, match="no-name"):
        flow_with("flow", name).validate()
