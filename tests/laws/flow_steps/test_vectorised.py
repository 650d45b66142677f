"""A vectorised task is the task that takes its events one by one."""

import operator
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.flows import vector_tasks as v

import cutwater as cw
from cutwater.checking.flows.batches import check_batches
from cutwater.checking.flows.histories import histories_of
from cutwater.checking.flows.scenario import Scenario

READINGS = st.builds(
    v.Reading, st.sampled_from("abc"), st.sampled_from([0.1, 0.2, 0.3, -1.0, 1e16, 3.0])
)
ITEMS = st.lists(READINGS | st.sampled_from([cw.BARRIER, cw.CRASH, cw.crash("mean")]), max_size=20)


def means(task, items):
    flow = cw.Flow("means")
    readings = flow.source("readings", v.Reading).key_by("sensor")
    flow.sink("means", readings.apply(task, name="mean"))
    return cw.simulate(flow, {"readings": items}, trace=True)


@given(ITEMS)
def test_vectorised_equals_one_by_one_crashes_and_all(items):
    many, each = means(v.running_mean, items), means(v.running_mean_of_each, items)
    assert many.by_epoch("means") == each.by_epoch("means")
    assert many.trace.steps == each.trace.steps


@dataclass(frozen=True)
class Kept:
    one: float
    two: float
    three: float


@dataclass(frozen=True)
class Seen:
    sensor: str
    value: float
    is_odd: bool


FOLDS = ["running_sum", "running_max", "running_min", "previous"]
COMBINED = {"+": operator.add, "*": operator.mul, "max": np.maximum, "<": operator.lt}
EMITS = ["each", "some", "twice", "none"]

terms = st.recursive(
    st.sampled_from(["value", "one", "two", "three", "count"]),
    lambda inner: st.tuples(st.sampled_from(sorted(COMBINED)), inner, inner),
    max_leaves=4,
)
recipes = st.tuples(
    st.lists(st.tuples(st.sampled_from(FOLDS), terms), min_size=3, max_size=3),
    terms,
    st.sampled_from(EMITS),
)


def task_of(recipe):
    """A vectorised task: each field of its state is a fold of what is known before it."""
    folds, shown, emit = recipe

    @cw.vectorised(initial=Kept(0.0, 1.0, -1.0))
    def drawn(state: Kept, event: v.Reading, keys: cw.Keys) -> tuple[Kept, cw.Emit[Seen]]:
        known = {"value": event.value}
        after = {}
        for name, (fold, term) in zip(("one", "two", "three"), folds, strict=True):
            held = getattr(state, name)
            new = valued(term, {**dict.fromkeys(("one", "two", "three", "count"), 0.5), **known})
            known[name] = getattr(keys, fold)(new, start=held)
            after[name] = keys.last(new if fold == "previous" else known[name])
        value = valued(shown, {**known, "count": known["one"]})
        outputs = Seen(event.sensor, value + 0.0, value % 2 == 1)
        return Kept(**after), emitted(emit, event, outputs)

    return drawn


def valued(term, known):
    if isinstance(term, str):
        return np.asarray(known[term]) + np.zeros(len(known["value"]))
    name, left, right = term
    return COMBINED[name](valued(left, known), valued(right, known)) + 0.0


def emitted(emit, event, outputs):
    rows = np.arange(len(event.value))
    if emit == "each":
        return outputs
    if emit == "some":
        return cw.Emit(event.value > 0.15, outputs)
    if emit == "none":
        return None
    twice = np.repeat(rows, 2)
    return cw.Emit(
        twice, Seen(*(getattr(outputs, n)[twice] for n in ("sensor", "value", "is_odd")))
    )


@given(recipes, st.lists(READINGS, min_size=1, max_size=15))
def test_a_vectorised_task_made_of_folds_is_not_accused(recipe, readings):
    given_ = Scenario(v.flow_of(task_of(recipe)), {"readings": readings}, None, 2)
    with np.errstate(all="ignore"):
        (finding,) = check_batches(given_.flow, histories_of([given_], 0, is_made_up=False), 0)
    assert finding.verdict == "not refuted", finding.details
