"""Runs of a flow with crashes: all runs of a small input, random runs of a large one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cutwater.checking.explorer.search import SearchProgress
from cutwater.checking.flows.report import Finding, FindingVerdict
from cutwater.checking.flows.scenario import Scenario
from cutwater.checking.flows.shrinking import shrink_inputs
from cutwater.checking.transparency.explainability import (
    Explainability,
    failure_transparency,
    view,
)
from cutwater.checking.transparency.explanation import Explanation, explain
from cutwater.errors import CutwaterError, many
from cutwater.semantics.barrier_model import BarrierModel, Fail, Move
from cutwater.semantics.flow_tasks import Instance
from cutwater.trace import Trace

__all__ = ["Remembered", "explained_walks", "failing", "many", "search"]


_STEPS = 10_000
"""The most steps of all random runs together."""


class Remembered:
    """A cache of task calls: a search repeats them in every interleaving."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, instance: Instance, value: Any, word: Any, work: Callable[..., Any]) -> Any:
        call = (instance.name, value, word)
        if call not in self._known:
            self._known[call] = work(instance, value, word)
        return self._known[call]


def failing(check: str, error: CutwaterError) -> Finding:
    """The finding that a step fails in a run other than the input's own."""
    message = "a step fails if the events arrive in another order"
    return Finding(check, "not checked any further", "note", (message, str(error)))


def search(
    scenario: Scenario, crashes: int, max_states: int, notify: Callable[[str], None]
) -> Finding:
    """Check every interleaving and crash of as much of the input as can be exhausted."""
    check = "failure transparency, all runs"
    try:
        return _search(check, scenario, crashes, max_states, notify)
    except CutwaterError as error:
        return failing(check, error)


def _search(
    check: str, scenario: Scenario, crashes: int, max_states: int, notify: Callable[[str], None]
) -> Finding:
    part, what = scenario, "the whole input"
    if not scenario.is_small:  # it would only run into the bound
        part, what = scenario.cut(2, 4), "2 epochs of 4 events"
    result = _searched(part, crashes, max_states, notify)
    for epochs, size in ((2, 2), (2, 1), (1, 1)):
        if result.checked.is_exhaustive or result.checked.stopped != "at the bound":
            break
        part, what = scenario.cut(epochs, size), f"{many(epochs, 'epoch')} of {many(size, 'event')}"
        result = _searched(part, crashes, max_states, notify)
    extent = f"{what}, {many(crashes, 'crash')}: {result.checked.summary()}"
    if result.counterexample is None:
        verdict: FindingVerdict = "holds" if result.checked.is_exhaustive else "not refuted"
        is_interrupted = result.checked.stopped == "interrupted"
        return Finding(check, extent, verdict, is_interrupted=is_interrupted)
    return _shrunk(check, extent, part, lambda one: _searched(one, crashes, max_states, notify))


def _shrunk(
    check: str, extent: str, scenario: Scenario, searched: Callable[[Scenario], Explainability]
) -> Finding:
    inputs, free = shrink_inputs(
        scenario, lambda smaller: not searched(replace(scenario, inputs=smaller)).holds
    )
    scenario = replace(scenario, inputs=inputs)
    result = searched(scenario)
    found = result.counterexample
    assert found is not None
    tasks = scenario.tasks()
    model = scenario.model(found.initial.crashes, tasks)
    trace = scenario.trace(tasks, model, found.actions, "no run explains this one")
    details = ("an observer can tell this run from every run without failures",)
    if result.checked.holds:
        details = ("the last step of this run retracts what was observed",)
    return Finding(check, extent, "violated", details, inputs, free, trace)


def _searched(
    scenario: Scenario, crashes: int, max_states: int, notify: Callable[[str], None]
) -> Explainability:
    tasks = scenario.tasks(Remembered())
    model = scenario.model(crashes, tasks)

    def progress(found: SearchProgress) -> None:
        notify(f"exploring crashes and interleavings: {found.unique_states:,} states")

    is_custom = scenario.observe is not None
    return failure_transparency(
        model,
        model.failure_free(),
        observe=view(model, scenario.view_of(tasks)) if is_custom else None,
        order=None if is_custom else frozenset.issubset,
        max_states=max_states,
        progress=progress,
    )


def explained_walks(
    scenarios: Sequence[Scenario],
    crashes: int,
    walks: int,
    seed: int,
    notify: Callable[[str], None],
) -> Finding:
    """Check that P1's construction (section 6.2) explains random runs of the whole input."""
    check = "failure transparency, random runs"
    try:
        return _explained_walks(check, scenarios, crashes, walks, seed, notify)
    except CutwaterError as error:
        return failing(check, error)


def _explained_walks(
    check: str,
    scenarios: Sequence[Scenario],
    crashes: int,
    walks: int,
    seed: int,
    notify: Callable[[str], None],
) -> Finding:
    drawn = random.Random(seed)
    steps = count = 0
    while count < walks and (steps < _STEPS or count < 2):
        one, count = scenarios[count % len(scenarios)], count + 1
        notify(f"explaining random runs: {count} of {walks}")
        explanation = _explained(one, crashes, drawn)
        steps += len(explanation.trace.steps)
        if not explanation.holds and one.observe is not None:
            return _distinguishable(check, count)
        if not explanation.holds:
            return _unexplained(check, one, crashes, seed) or _refused(
                check, one, explanation, f"run {count} of seed {seed}"
            )
    return Finding(check, f"{many(count, 'run')}, {steps:,} steps, all explained", "not refuted")


def _distinguishable(check: str, count: int) -> Finding:
    """A note: this check compares more than is observed, so a difference may be invisible."""
    message = (
        "the sinks show different values after a crash; whether an observer sees it was not checked"
    )
    return Finding(check, f"run {count}", "note", (message,))


def _explained(scenario: Scenario, crashes: int, drawn: random.Random) -> Explanation:
    tasks = scenario.tasks()
    model = scenario.model(crashes, tasks)
    return explain(scenario.trace(tasks, model, list(_walk(model, drawn)), "a random run"))


def _unexplained(check: str, scenario: Scenario, crashes: int, seed: int) -> Finding | None:
    """An unexplained run on shrunk input; None if none is found again."""

    def found(inputs: Mapping[str, list[Any]]) -> Explanation | None:
        drawn = random.Random(seed)
        small = replace(scenario, inputs=inputs)
        runs = (_explained(small, crashes, drawn) for _ in range(20))
        return next((run for run in runs if not run.holds), None)

    inputs, free = shrink_inputs(scenario, lambda smaller: found(smaller) is not None)
    explanation = found(inputs)
    if explanation is None:  # not found again
        return None
    finding = _refused(check, scenario, explanation, f"a run of seed {seed}")
    return replace(finding, inputs=inputs, any_value=free)


def _refused(check: str, scenario: Scenario, explanation: Explanation, extent: str) -> Finding:
    refusal = explanation.refusal
    assert refusal is not None
    steps = explanation.trace.steps[: refusal.step + 1]
    trace = Trace(explanation.trace.header, steps)
    message = f"at step {refusal.step}: {refusal.reason}"
    return Finding(check, extent, "violated", (message,), inputs=scenario.inputs, trace=trace)


def _walk(model: BarrierModel, drawn: random.Random) -> Iterator[Move]:
    """A random run to its end; crashes are a little rarer than other steps."""
    (point,) = model.initial_states()
    while actions := model.actions(point):
        weights = [0.1 if isinstance(action, Fail) else 1.0 for action in actions]
        move = drawn.choices(actions, weights)[0]
        if isinstance(move, Fail) and all(isinstance(action, Fail) for action in actions):
            return  # nothing is enabled any more
        yield move
        point = model.step(point, move)
