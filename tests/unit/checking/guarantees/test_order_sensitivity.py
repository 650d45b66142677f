"""Where order matters in a flow, and that the checker says the same."""

import importlib.util
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import cutwater as cw
from cutwater.checking import check_flow
from cutwater.checking.guarantees import swaps
from cutwater.checking.guarantees.order_sensitivity import order_sensitivity
from cutwater.flow.guarantees.settings import assumed_settings

EXAMPLES = Path(__file__).parents[4] / "examples"
EXAMPLES_WITH_A_FLOW = {"averages", "inverted_index", "vectorised", "inside_a_job", "live"}


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0, commutative=True)
def summed(total: int, item: Item) -> tuple[int, list[int]]:
    return total + item.size, []


@cw.task(initial=0, commutative=True)
def latest(_: int, item: Item) -> tuple[int, list[int]]:
    return item.size, [item.size]


@cw.task(initial=0, commutative=True)
def running(total: int, item: Item) -> tuple[int, list[int]]:
    return total + item.size, [total + item.size]


@cw.task(initial=0)
def counted(seen: int, _item: Item) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


@cw.task(initial=0)
def drawn(total: int, _item: Item) -> tuple[int, list[float]]:
    return total, [random.random()]


def flow_of(task):
    flow = cw.Flow("one")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(task))
    return flow


ITEMS = {"items": [Item("a", 1), Item("a", 2), Item("b", 1), Item("a", 3)]}


@pytest.mark.parametrize(
    ("task", "step", "sink"),
    [(summed, "no", "no"), (latest, "yes", "maybe"), (counted, "maybe", "maybe")],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_task_and_what_leads_to_a_sink(task, step, sink):
    found = order_sensitivity(flow_of(task), ITEMS)
    assert ([s.matters for s in found.steps], [s.matters for s in found.sinks]) == ([step], [sink])
    assert found == order_sensitivity(flow_of(task), ITEMS)


def test_a_claim_that_only_whole_runs_refute_is_refuted(monkeypatch):
    monkeypatch.setattr(swaps, "_TRIES", 0)
    found = order_sensitivity(flow_of(running), ITEMS)
    assert found.refuted == ("running",)
    (sink,) = found.sinks
    assert (sink.matters, sink.why) == ("yes", "the order within 'items'")


def test_an_impure_function_is_named_and_nothing_is_compared():
    found = order_sensitivity(flow_of(drawn), ITEMS)
    assert list(found.impure) == ["drawn"]
    assert found.steps[0].why.startswith("it is not a function of its arguments")
    settings = assumed_settings(flow_of(drawn), impure=found.impure)
    assert {p.kind for setting in settings for p in setting.sink_guarantees} == {"none"}


@pytest.mark.parametrize(
    "name", ["averages", "inverted_index", "vectorised", "inside_a_job", "live"]
)
def test_it_agrees_with_the_checker_on_every_example(name, monkeypatch):
    pytest.importorskip("pyspark")  # one of them imports it
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    found = order_sensitivity(module.flow, module.inputs)
    report = check_flow(module.flow, module.inputs, crashes=1, walks=1, max_states=300)
    text = "\n".join(line for f in report.findings for line in f.details)
    shown = {
        sink.sink for sink in found.sinks if f"sink '{sink.sink}' depends on the order" in text
    }
    assert {sink.sink for sink in found.sinks if sink.matters == "yes"} == shown
    assert {sink.sink for sink in found.sinks if sink.matters == "no"}.isdisjoint(shown)
    assert not found.impure
    assert not any("purity of" in finding.check for finding in report.violations)


def test_every_example_with_a_flow_is_compared():
    flows = {path.stem for path in EXAMPLES.glob("*.py") if "\nflow = " in path.read_text()}
    assert flows == EXAMPLES_WITH_A_FLOW
