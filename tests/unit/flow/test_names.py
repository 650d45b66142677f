"""Names become folders, topics and rows of ledgers: one that cannot is refused, wherever it is."""

import pytest

import cutwater as cw
from cutwater.errors import FlowError
from cutwater.flow.fusing import plan

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
GOOD = ["a", "orders of today", "Bestellungen-für_µs", "x" * 200, "a.b", "注文", "a: b", "1"]


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


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("kind", ["flow", "source", "step", "sink"])
def test_other_names_are_as_good_as_any(kind, name):
    flow_with(kind, name).validate()


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_flow_has_a_name(name):
    with pytest.raises(FlowError, match="no-name"):
        flow_with("flow", name).validate()
