"""Claims about tasks are tested, not believed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cutwater as cw
from cutwater.checking import check_flow
from cutwater.checking.flows.histories import histories_of
from cutwater.checking.flows.samples import sample_inputs
from cutwater.checking.flows.scenario import Scenario
from cutwater.checking.guarantees.claims import check_claims
from cutwater.checking.guarantees.swaps import find_repetition, find_swap


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0, commutative=True)
def summed(total: int, item: Item) -> tuple[int, list[int]]:
    return total + item.size, []


@cw.task(initial=0, commutative=True)
def running(total: int, item: Item) -> tuple[int, list[int]]:
    """The sum after each event shows which came first."""
    return total + item.size, [total + item.size]


@cw.task(initial=0, commutative=True)
def latest(_last: int, item: Item) -> tuple[int, list[int]]:
    return item.size, []


@cw.task(initial=0, commutative=True)
def latest_of_many(seen: int, item: Item) -> tuple[int, list[int]]:
    """Commutes until it has seen two events."""
    return (seen + 1 if seen < 2 else 10 + item.size), []


@cw.task(initial=(0,), commutative=True)
def forgetful(_: tuple[int, ...], item: Item) -> tuple[tuple[int, ...] | None, list[int]]:
    """Deletes its state, or keeps what it began with: nobody can tell the difference."""
    return (None if item.size % 2 else (0,)), [item.size]


@cw.task(initial=0, commutative=True)
def fails_on_large_first(total: int, item: Item) -> tuple[int, list[int]]:
    if item.size == 3 and not total:
        raise ValueError("too large to begin with")
    return total + item.size + 1, []


@cw.task(initial=0, idempotent=True)
def highest(top: int, item: Item) -> tuple[int, list[int]]:
    return max(top, item.size), [max(top, item.size)]


@cw.task(initial=0, idempotent=True)
def new_highest(top: int, item: Item) -> tuple[int, list[int]]:
    """Emits nothing when the event comes again."""
    return max(top, item.size), [item.size] if item.size > top else []


@cw.task(initial=0, idempotent=True)
def counted(seen: int, _item: Item) -> tuple[int, list[int]]:
    return seen + 1, []


@cw.task(initial=0, idempotent=True)
def alternating(top: int, item: Item) -> tuple[int, list[int]]:
    """Keeps the same state but says something else the second time."""
    return item.size, [item.size] if item.size == top else [-1]


@cw.vectorised(initial=0, commutative=True)
def counted_in_batches(seen: int, event: Item, keys: cw.Keys) -> tuple[int, Any]:
    return seen + keys.count(), None


@cw.vectorised(initial=0, commutative=True)
def latest_in_batches(seen: int, event: Item, keys: cw.Keys) -> tuple[int, Any]:
    return np.where(keys.count() > 0, keys.last(event.size), seen), None


def flow_of(task):
    flow = cw.Flow("claims")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(task))
    return flow


def findings(task, items=None):
    flow = flow_of(task)
    inputs = [{"items": items}] if items else [sample_inputs(flow, n) for n in range(3)]
    given = [Scenario(flow, one, None, 2) for one in inputs]
    histories = histories_of(given, 0, is_made_up=items is None)
    return [finding for *_, finding in check_claims(flow, histories, 0)]


@pytest.mark.parametrize(
    "task", [summed, forgetful, highest, new_highest, counted_in_batches], ids=lambda t: t.name
)
def test_a_true_claim_is_not_refuted(task):
    (finding,) = findings(task)
    assert finding.verdict == "not refuted", finding.details


@pytest.mark.parametrize(
    "task",
    [
        running,
        latest,
        latest_of_many,
        fails_on_large_first,
        counted,
        alternating,
        latest_in_batches,
    ],
    ids=lambda t: t.name,
)
def test_a_false_claim_is_refuted(task):
    (finding,) = findings(task)
    assert finding.verdict == "violated"
    assert finding.check.startswith(f"claim: '{task.name}' is ")


def test_the_witness_is_as_small_as_it_can_be():
    items = [Item("a", n) for n in (1, 1, 1, 2, 3)]
    (step,) = [s for s in flow_of(latest_of_many).steps if s.name == "latest_of_many"]
    witness, tried = find_swap(step, [items], 0)
    assert tried >= 1
    assert len(witness.before) == 1  # one event to begin with, and then two that count
    assert witness.is_replayed()
    witness, _ = find_swap(step, [items[-2:]], 0)
    assert witness is None


def test_a_witness_says_what_it_shows():
    (finding,) = findings(latest, [Item("a", 1), Item("b", 5), Item("a", 2)])
    lines = finding.details[0].splitlines()
    assert "the order of two events of one key matters" in lines[0]
    assert lines[1:] == [
        "  Item(name='a', size=1)  then  Item(name='a', size=2):  emits nothing; keeps 2",
        "  Item(name='a', size=2)  then  Item(name='a', size=1):  emits nothing; keeps 1",
    ]
    (finding,) = findings(counted, [Item("a", 1)])
    assert finding.details[0].splitlines()[1:] == [
        "  Item(name='a', size=1):  emits nothing; keeps 1",
        "  Item(name='a', size=1)  once more:  emits nothing; keeps 2",
    ]


def test_a_claim_that_nothing_was_tried_against_is_a_note():
    (finding,) = findings(summed, [Item("a", 1), Item("b", 2)])
    assert (finding.verdict, finding.extent) == ("note", "0 pairs of events swapped")


def test_an_impure_function_is_not_accused_of_depending_on_order():
    calls = []

    def f(_state, item):
        calls.append(item)
        return len(calls), []

    (step,) = [s for s in flow_of(cw.task(initial=0, name="hidden")(f)).steps if s.name == "hidden"]
    items = [Item("a", n) for n in range(4)]
    assert find_swap(step, [items], 0)[0] is None
    assert find_repetition(step, [items], 0)[0] is not None


def test_check_reports_claims_and_fails_by_them():
    items = {"items": [Item("a", 1), Item("a", 2)]}
    report = check_flow(flow_of(latest), items, crashes=1, walks=1)
    (violation,) = report.violations
    assert violation.check == "claim: 'latest' is commutative"
    assert check_flow(flow_of(summed), items, crashes=1, walks=1).holds


def test_claims_are_made_by_name():
    assert cw.task(initial=0)(summed.f).claims == ()
    both = cw.task(initial=0, commutative=True, idempotent=True)(summed.f)
    assert both.claims == ("commutative", "idempotent")
