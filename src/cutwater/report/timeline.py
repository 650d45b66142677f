"""A run and its failure-free run as data that can be inspected at any step.

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
Fig. 12a and b, trace and generations  ``Timeline.steps``, ``Timeline.generations``
Fig. 12d, failure-free trace           ``Timeline.kept``: indices of steps, in their new order
mapping of observations                ``Timeline.mapping``
configurations C and C'                ``Timeline.run``, ``Timeline.failure_free``: a `RunHistory`
=====================================  =====================================================

A report stores changes, never a copy per step, so its size grows with the number of messages and
not with steps times streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from cutwater.checking.transparency.explanation import Commit, Explanation, Generation
from cutwater.jsonable import JsonValue, shown
from cutwater.report.messages import TimelineMessage, number_messages
from cutwater.report.run_history import Act, RunHistory, TaskStreams, history_of
from cutwater.trace import Header, Rule

__all__ = [
    "Fate",
    "Timeline",
    "TimelineStep",
    "TimelineStream",
    "TimelineVerdict",
    "timeline_of",
    "verdict_words",
]

_LONGEST = 400
"""The longest value that is shown in full, in characters."""

Fate = Literal["kept", "discarded", "open", "unchecked", "failure"]
"""The fate of a step: it is in the failure-free run; a recovery undid it; the run ended before its
epoch was committed; the check stopped before it; or it is itself a failure or a recovery."""


@dataclass(frozen=True, slots=True)
class TimelineVerdict:
    """Whether the run is explained, and if not, why and where."""

    holds: bool
    words: str
    step: int | None = None
    """The step that refutes the explanation; None if it holds."""


@dataclass(frozen=True, slots=True)
class TimelineStream:
    """A stream: whether it is an input, and whether an observer sees it."""

    name: str
    is_input: bool
    is_observed: bool


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """One step of the run."""

    rule: Rule
    task: int | None
    epoch: int
    generation: int
    fate: Fate
    place: int | None
    """Its index in the failure-free run; None if it is not kept."""
    commit: int | None
    """The greatest common epoch from here on; None if this step does not raise it."""
    consumed: tuple[int, ...]
    """Indices of messages."""
    produced: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """All that a report shows."""

    flow: str
    note: str
    verdict: TimelineVerdict
    tasks: tuple[TaskStreams, ...]
    """In topological order: each comes after those it reads."""
    streams: tuple[TimelineStream, ...]
    messages: tuple[TimelineMessage, ...]
    """Every message ever sent; one that is resent after a recovery is another message."""
    steps: tuple[TimelineStep, ...]
    generations: tuple[Generation, ...]
    commits: tuple[Commit, ...]
    kept: tuple[int, ...]
    """The failure-free run: indices of steps."""
    mapping: tuple[int, ...]
    """For each configuration of the run, the one of the failure-free run that shows the same."""
    run: RunHistory
    failure_free: RunHistory

    def json(self) -> bytes:
        """The timeline as JSON."""
        return msgspec.json.encode(self)


def timeline_of(explanation: Explanation) -> Timeline:
    """The data of a report on an explanation."""
    header, steps = explanation.trace.header, explanation.trace.steps
    tasks = _tasks(header)
    found = number_messages(header, steps, _text)
    names = {task.name: index for index, task in enumerate(tasks)}
    acts = [
        Act(
            step.rule,
            None if step.task is None else names[step.task],
            step.epoch,
            consumed,
            produced,
            None if step.state is msgspec.UNSET else _text(step.state),
        )
        for step, consumed, produced in zip(steps, found.consumed, found.produced, strict=True)
    ]
    initial = tuple(_text(task.initial) for task in header.tasks)
    is_input = tuple(stream in header.inputs for stream in header.streams)
    return Timeline(
        flow=header.flow,
        note=header.note,
        verdict=_verdict(explanation),
        tasks=tasks,
        streams=_streams(header),
        messages=found.messages,
        steps=_steps(explanation, acts),
        generations=explanation.generations,
        commits=explanation.commits,
        kept=explanation.kept,
        mapping=explanation.mapping,
        run=history_of(tasks, is_input, found.messages, initial, acts),
        failure_free=history_of(
            tasks, is_input, found.messages, initial, [acts[index] for index in explanation.kept]
        ),
    )


def verdict_words(explanation: Explanation) -> str:
    """The verdict as a sentence."""
    if explanation.refusal is None:
        return "explained: an observer cannot tell this run from one without failures"
    return f"not explained: at step {explanation.refusal.step} {explanation.refusal.reason}"


def _verdict(explanation: Explanation) -> TimelineVerdict:
    step = explanation.refusal.step if explanation.refusal else None
    return TimelineVerdict(explanation.holds, verdict_words(explanation), step)


def _tasks(header: Header) -> tuple[TaskStreams, ...]:
    streams = {name: index for index, name in enumerate(header.streams)}
    return tuple(
        TaskStreams(task.name, tuple(streams[name] for name in task.inputs), streams[task.output])
        for task in header.tasks
    )


def _streams(header: Header) -> tuple[TimelineStream, ...]:
    read = {name for task in header.tasks for name in task.inputs}
    ends = {task.output for task in header.tasks if task.output not in read}
    observed = {name for names in header.sinks.values() for name in names} or ends
    return tuple(
        TimelineStream(name, name in header.inputs, name in observed) for name in header.streams
    )


def _steps(explanation: Explanation, acts: Sequence[Act]) -> tuple[TimelineStep, ...]:
    places = {step: place for place, step in enumerate(explanation.kept)}
    commits = {commit.step: commit.epoch for commit in explanation.commits}
    refused = explanation.refusal.step if explanation.refusal else len(acts)
    made = []
    for number, generation in enumerate(explanation.generations):
        for index in range(generation.start, generation.stop):
            act, place = acts[index], places.get(index)
            is_checked = generation.is_recovered or index < refused
            fate = _fate(act.rule, place is not None, generation.is_recovered, is_checked)
            commit = commits.get(index)
            step = TimelineStep(
                act.rule,
                act.task,
                act.epoch,
                number,
                fate,
                place,
                commit,
                act.consumed,
                act.produced,
            )
            made.append(step)
    return tuple(made)


def _fate(rule: Rule, is_kept: bool, is_recovered: bool, is_checked: bool) -> Fate:
    if rule in ("fail", "recover"):
        return "failure"
    if is_kept:
        return "kept"
    if not is_checked:
        return "unchecked"
    return "discarded" if is_recovered else "open"


def _text(value: JsonValue) -> str:
    text = shown(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
