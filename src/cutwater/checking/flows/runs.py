"""Runs of a flow with crashes: all of a small input, and random ones of a large."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cutwater.checking.explorer.search import Progress
from cutwater.checking.flows.report import Finding, Verdict
from cutwater.checking.flows.scenario import Given
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
"""Random runs end when they have so many steps together."""


class Remembered:
    """Calls of tasks are made once: a search repeats them in every interleaving."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, instance: Instance, value: Any, word: Any, work: Callable[..., Any]) -> Any:
        call = (instance.name, value, word)
        if call not in self._known:
            self._known[call] = work(instance, value, word)
        return self._known[call]


def failing(check: str, error: CutwaterError) -> Finding:
    """A step fails in a run that the input does not take by itself."""
    said = "in another order of events than that of a run a step fails"
    return Finding(check, "not looked at any further", "note", (said, str(error)))


def search(given: Given, crashes: int, max_states: int, say: Callable[[str], None]) -> Finding:
    """Every interleaving and crash of as much of the input as can be exhausted."""
    check = "failure transparency, all runs"
    try:
        return _search(check, given, crashes, max_states, say)
    except CutwaterError as error:
        return failing(check, error)


def _search(
    check: str, given: Given, crashes: int, max_states: int, say: Callable[[str], None]
) -> Finding:
    part, what = given, "the whole input"
    if not given.is_small:  # it would only be stopped at the bound
        part, what = given.cut(2, 4), "2 epochs of 4 events"
    result = _searched(part, crashes, max_states, say)
    for epochs, size in ((2, 2), (2, 1), (1, 1)):
        if result.checked.is_exhaustive or result.checked.stopped != "at the bound":
            break
        part, what = given.cut(epochs, size), f"{many(epochs, 'epoch')} of {many(size, 'event')}"
        result = _searched(part, crashes, max_states, say)
    extent = f"{what}, {many(crashes, 'crash')}: {result.checked.summary()}"
    if result.counterexample is None:
        verdict: Verdict = "holds" if result.checked.is_exhaustive else "not refuted"
        is_interrupted = result.checked.stopped == "interrupted"
        return Finding(check, extent, verdict, is_interrupted=is_interrupted)
    return _shrunk(check, extent, part, lambda one: _searched(one, crashes, max_states, say))


def _shrunk(
    check: str, extent: str, given: Given, searched: Callable[[Given], Explainability]
) -> Finding:
    inputs, free = shrink_inputs(
        given, lambda smaller: not searched(replace(given, inputs=smaller)).holds
    )
    given = replace(given, inputs=inputs)
    result = searched(given)
    found = result.counterexample
    assert found is not None
    tasks = given.tasks()
    model = given.model(found.initial.crashes, tasks)
    trace = given.trace(tasks, model, found.actions, "no run explains this one")
    details = ("an observer can tell this run from every run without failures",)
    if result.checked.holds:
        details = ("what is observed is taken back in the last step of this run",)
    return Finding(check, extent, "violated", details, inputs, free, trace)


def _searched(
    given: Given, crashes: int, max_states: int, say: Callable[[str], None]
) -> Explainability:
    tasks = given.tasks(Remembered())
    model = given.model(crashes, tasks)

    def progress(found: Progress) -> None:
        say(f"exploring crashes and interleavings: {found.unique_states:,} states")

    is_custom = given.observe is not None
    return failure_transparency(
        model,
        model.failure_free(),
        observe=view(model, given.view_of(tasks)) if is_custom else None,
        order=None if is_custom else frozenset.issubset,
        max_states=max_states,
        progress=progress,
    )


def explained_walks(
    given: Sequence[Given], crashes: int, walks: int, seed: int, say: Callable[[str], None]
) -> Finding:
    """Random runs of the whole input, each explained by the construction of P1, section 6.2."""
    check = "failure transparency, random runs"
    try:
        return _explained_walks(check, given, crashes, walks, seed, say)
    except CutwaterError as error:
        return failing(check, error)


def _explained_walks(
    check: str,
    given: Sequence[Given],
    crashes: int,
    walks: int,
    seed: int,
    say: Callable[[str], None],
) -> Finding:
    drawn = random.Random(seed)
    steps = count = 0
    while count < walks and (steps < _STEPS or count < 2):
        one, count = given[count % len(given)], count + 1
        say(f"explaining random runs: {count} of {walks}")
        explanation = _explained(one, crashes, drawn)
        steps += len(explanation.trace.steps)
        if not explanation.holds and one.observe is not None:
            return _told_apart(check, count)
        if not explanation.holds:
            return _unexplained(check, one, crashes, seed) or _refused(
                check, one, explanation, f"run {count} of seed {seed}"
            )
    return Finding(check, f"{many(count, 'run')}, {steps:,} steps, all explained", "not refuted")


def _told_apart(check: str, count: int) -> Finding:
    """More than what is observed is explained here, so a difference need not be seen."""
    said = "the sinks show something else after a crash; whether it is observed was not looked at"
    return Finding(check, f"run {count}", "note", (said,))


def _explained(given: Given, crashes: int, drawn: random.Random) -> Explanation:
    tasks = given.tasks()
    model = given.model(crashes, tasks)
    return explain(given.trace(tasks, model, list(_walk(model, drawn)), "a random run"))


def _unexplained(check: str, given: Given, crashes: int, seed: int) -> Finding | None:
    """A run of as little of the input as still has one that is not explained."""

    def found(inputs: Mapping[str, list[Any]]) -> Explanation | None:
        drawn = random.Random(seed)
        small = replace(given, inputs=inputs)
        runs = (_explained(small, crashes, drawn) for _ in range(20))
        return next((run for run in runs if not run.holds), None)

    inputs, free = shrink_inputs(given, lambda smaller: found(smaller) is not None)
    explanation = found(inputs)
    if explanation is None:  # it was luck
        return None
    finding = _refused(check, given, explanation, f"a run of seed {seed}")
    return replace(finding, inputs=inputs, any_value=free)


def _refused(check: str, given: Given, explanation: Explanation, extent: str) -> Finding:
    refusal = explanation.refusal
    assert refusal is not None
    steps = explanation.trace.steps[: refusal.step + 1]
    trace = Trace(explanation.trace.header, steps)
    said = f"at step {refusal.step}: {refusal.reason}"
    return Finding(check, extent, "violated", (said,), inputs=given.inputs, trace=trace)


def _walk(model: BarrierModel, drawn: random.Random) -> Iterator[Move]:
    """A run to its end; crashes are a little rarer than other steps."""
    (point,) = model.initial_states()
    while actions := model.actions(point):
        weights = [0.1 if isinstance(action, Fail) else 1.0 for action in actions]
        move = drawn.choices(actions, weights)[0]
        if isinstance(move, Fail) and all(isinstance(action, Fail) for action in actions):
            return  # everything is done
        yield move
        point = model.step(point, move)
