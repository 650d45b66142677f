"""The guarantee from end to end of each sink: what its observer may rely on, and why.

It is as weak as the weakest of what lies on the way: the sources that lead to the sink, the steps
between, and the sink itself. Each says in words what it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cutwater.errors import Problem, many
from cutwater.flow import Flow
from cutwater.flow import steps as s
from cutwater.flow.checked import Checked, noted_check
from cutwater.spark.binding import bind
from cutwater.spark.connectors.base.sink import AT_LEAST_ONCE, EXACTLY_ONCE, Sink
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.job.spec import spark_plan

__all__ = ["LEVELS", "Promise", "guarantees", "promises", "too_low"]

LEVELS = (AT_LEAST_ONCE, EXACTLY_ONCE)
"""From the weakest to the strongest."""


@dataclass(frozen=True)
class Promise:
    """What an observer of a sink may rely on."""

    sink: str
    level: str
    """``exactly-once`` or ``at-least-once``."""
    because: tuple[str, ...]
    """Why, one clause for the sources, the steps and the sink each."""
    provided: tuple[str, ...]
    """What the user has to see to; empty: nothing."""

    def __str__(self) -> str:
        provided = f" (provided {'; '.join(self.provided)})" if self.provided else ""
        return f"{self.sink}: {self.level}: {', '.join(self.because)}{provided}"


def guarantees(
    flow: Flow,
    sources: Mapping[str, str | Path | Feed | Frame],
    sinks: Mapping[str, str | Path | Sink],
) -> dict[str, Promise]:
    """What `run` would promise for each sink, without running anything."""
    bound_sources, bound_sinks = bind(spark_plan(flow), sources, sinks)
    return promises(flow, bound_sources, bound_sinks)


def promises(
    flow: Flow, sources: Mapping[str, Feed | Frame], sinks: Mapping[str, Sink]
) -> dict[str, Promise]:
    """The promise for each sink of a flow whose sources and sinks are bound."""
    checked = noted_check(flow)
    numbers = {step.name: n for n, step in enumerate(flow.steps) if isinstance(step, s.Sink)}
    return {
        name: _promise(name, _steps_before(flow, number), sources, sinks[name], checked)
        for name, number in numbers.items()
    }


def too_low(found: Mapping[str, Promise], required: str) -> list[Problem]:
    """Why a run that requires a level must not start."""
    if required not in LEVELS:
        said = " or ".join(map(repr, reversed(LEVELS)))
        return [Problem("unknown-choice", f"require is {required!r}; it is {said}", f"use {said}")]
    return [
        Problem(
            "guarantee-too-low",
            f"{required} is required, but sink '{name}' has {promise.level}: "
            f"{', '.join(promise.because)}",
            "bind its sources and the sink to what can promise it, or do not require it",
        )
        for name, promise in found.items()
        if LEVELS.index(promise.level) < LEVELS.index(required)
    ]


def _promise(
    name: str,
    before: Sequence[s.Step],
    sources: Mapping[str, Feed | Frame],
    sink: Sink,
    checked: Checked | None,
) -> Promise:
    own = sink.guarantee()
    replays = {
        step.name: sources[step.name].replay() for step in before if isinstance(step, s.Source)
    }
    again = [n for n, replay in replays.items() if replay.is_replayable]
    because = [f"{_names(again)} {_are(again)} replayable"] if again else []
    because += [
        f"`{n}` is not replayable, because {replay.because}"
        for n, replay in replays.items()
        if not replay.is_replayable
    ]
    because += _of_steps([step.name for step in before if _has_function(step)], checked)
    because.append(f"`{name}` {own.because}")
    level = own.level if len(again) == len(replays) else AT_LEAST_ONCE
    provided = dict.fromkeys([*(r.provided for r in replays.values()), own.provided])
    return Promise(name, level, tuple(because), tuple(filter(None, provided)))


def _of_steps(names: Sequence[str], checked: Checked | None) -> Iterator[str]:
    """Why the steps between give the same again."""
    if not names:
        return
    if checked is None:
        are = f"{_names(names)} {_are(names)} taken to be deterministic"
        yield f"{are} (not checked: cutwater check TARGET)"
        return
    yield (
        f"{_names(names)} {_are(names)} declared deterministic and `check` found no counterexample "
        f"on {many(checked.inputs, 'input')} with {many(checked.events, 'event')}"
    )


def _has_function(step: s.Step) -> bool:
    """Is there a function of the user's in it? All others are deterministic by themselves."""
    match step:
        case s.KeyBy():
            return step.f is not None
        case s.Map() | s.FlatMap() | s.Filter() | s.Apply() | s.Join() | s.OnComplete():
            return True
    return False


def _steps_before(flow: Flow, number: int) -> list[s.Step]:
    """The steps that lead to one, in the order of the flow."""
    found, waiting = {number}, [number]
    while waiting:
        new = set(flow.steps[waiting.pop()].inputs) - found
        found |= new
        waiting += new
    return [flow.steps[n] for n in sorted(found)]


def _names(names: Sequence[str]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} and {last}" if most else last


def _are(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"
