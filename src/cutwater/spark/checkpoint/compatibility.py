"""What a checkpoint depends on, and which changes of a flow are compatible with it.

A state is found by its level, its step and the bytes of its key, and decoded by its type. A change
that would make a run look it up elsewhere, or decode it as something else, is refused before
anything runs. ``docs/operations.md`` has the whole table.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import msgspec

from cutwater.annotations import union_of
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.flow.fingerprint import fingerprint, flow_fingerprint
from cutwater.flow.fusing import Part, Segment
from cutwater.flow.guarantees.engines import ENGINES
from cutwater.flow.state_snapshots import snapshot_codec
from cutwater.flow.timely.bodies import with_bodies
from cutwater.operators.aggregates import Aggregate
from cutwater.schema import Schema, render, schema_of, what_breaks
from cutwater.spark.connectors.base.side_outputs import is_side_output
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.job.column_requirements import needs_watermarks
from cutwater.spark.job.spec import MICROBATCH, Engine, Job
from cutwater.spark.state.storage import Storage

__all__ = [
    "CHECKPOINT_FORMAT",
    "Identity",
    "KeyIdentity",
    "SourceIdentity",
    "StepIdentity",
    "continued",
    "differences",
    "half_released",
    "identity_of",
    "mixture",
    "sink_location",
]

CHECKPOINT_FORMAT = 5
_ANEW = "start with a new checkpoint and an empty output"


@dataclass(frozen=True)
class KeyIdentity:
    """How the states of a step are keyed."""

    by: str
    """The fields or the function that make the key, as a phrase; empty: one state for everything.
    """
    type: Schema
    functions: tuple[tuple[str, str, str], ...]
    """Name and fingerprint of each function that makes keys."""


@dataclass(frozen=True)
class StepIdentity:
    """A stateful step."""

    verb: str
    level: int
    """Counted from 1: a state is found only in the level in which it was written."""
    key: KeyIdentity
    settings: str
    """Windows and aggregates: the state cannot be interpreted without them."""
    notes: str
    """How the keys that wait for a watermark are stored; empty: the step needs no watermark."""
    state: Schema
    in_columns: bool = False
    """Are states stored as columns, rather than key by key?"""


@dataclass(frozen=True)
class SourceIdentity:
    """The times of a source, by which steps decide what to hold back."""

    time: str | None = None
    """The field and type of its times, or that records are numbered; None: no step needs them."""
    delay: Any = None
    """The delay of its watermark, as JSON."""
    kind: str = ""
    """The kind of its connector, which defines what its positions mean. Empty: not known."""


@dataclass(frozen=True)
class Identity:
    """What must not change for a checkpoint to be read again, and which flow it belongs to."""

    flow: str
    query_id: str
    generation: int
    buckets: int
    partitions: int
    levels: int
    """How many levels there are: Spark finds a state by the number of its operator, one per level.
    """
    steps: dict[str, StepIdentity]
    sources: dict[str, SourceIdentity]
    forgotten: list[str] = field(default_factory=list)
    """Removed steps; their states are still stored, so their names cannot be reused."""
    is_closed: bool = False
    """Was the end of the input processed? Then nothing can follow."""
    code: str = ""
    """The fingerprint of the flow that plans epochs or began the newest one: it alone may finish
    that epoch."""
    sinks: dict[str, str] = field(default_factory=dict)
    """The location of each sink, including side outputs; empty: inside the checkpoint."""
    engine: Engine = MICROBATCH
    """The engine that runs it: epochs of one are not ticks of the other."""
    logs: dict[str, str] = field(default_factory=dict)
    """The record types in the logs of a loop that feeds back through a log."""
    format: int = CHECKPOINT_FORMAT


def identity_of(job: Job, partitions: int) -> Identity:
    """The identity of a new checkpoint for a job."""
    return Identity(
        flow=job.flow.name,
        query_id=str(uuid.uuid4()),
        generation=0,
        buckets=job.buckets,
        partitions=partitions,
        levels=len(job.topology.levels) + bool(job.topology.late_filtered),
        steps=dict(_steps(job)),
        sources={
            step.name: _source(job, step) for step in job.flow.steps if isinstance(step, s.Source)
        },
        code=flow_fingerprint(job.flow, [*job.sources.values(), *job.sinks.values()]),
        sinks={name: sink_location(name, sink) for name, sink in job.sinks.items()},
        engine=job.engine,
        logs={log.name: render(schema_of(log.type)) for log in job.loops.logs},
    )


def _steps(job: Job) -> Iterator[tuple[str, StepIdentity]]:
    ending = _ending_with_epochs(job.flow.steps)
    for level, segments in enumerate(job.topology.levels, 1):
        for segment in segments:
            for storage, part in job.codecs.storages[segment.number].parts():
                yield (
                    part.step.name,
                    StepIdentity(
                        part.step.verb,
                        level,
                        _key(_around(job.plan.flow.steps, part.step), part),
                        _settings(part.step, part.step.name in ending),
                        _notes(storage, part.step),
                        _kept_as(storage, part),
                        in_columns=_is_in_columns(job, segment, part.step),
                    ),
                )


def _ending_with_epochs(steps: Sequence[s.Step]) -> set[str]:
    """The steps whose states end with each input epoch of a loop, and the loops themselves."""
    loops = [each for each in with_bodies(steps) if isinstance(each, s.Iterate)]
    return {step.name for loop in loops if loop.state_per_epoch for step in with_bodies([loop])}


def _kept_as(storage: Storage, part: Part) -> Schema:
    """The schema of a step's state; a loop whose steps store their own only records that it ran."""
    if storage.is_spread(part.step):
        return schema_of(bool)
    snapshot = snapshot_codec(part.step, part.input_types)
    assert snapshot is not None
    return schema_of(snapshot.type)


def _around(steps: Sequence[s.Step], step: s.Step) -> Sequence[s.Step]:
    """The steps around a step: those of the flow, or those of the loop body that contains it."""
    if any(other is step for other in steps):
        return steps
    bodies = (_around(each.body, step) for each in steps if isinstance(each, s.Iterate))
    return next(filter(None, bodies), ())


def _key(steps: Sequence[s.Step], part: Part) -> KeyIdentity:
    if any(stream.key is None for stream in part.input_types):
        return KeyIdentity("", "None", ())
    makers = {maker.number: maker for maker in _makers(steps, part.step.inputs)}
    functions = ((m.name, *fingerprint(m.step.f)) for m in makers.values() if m.step.f is not None)
    return KeyIdentity(
        " or ".join(sorted({maker.words for maker in makers.values()})),
        schema_of(union_of([stream.key_type for stream in part.input_types])),
        tuple(sorted(functions)),
    )


@dataclass(frozen=True)
class _Maker:
    """A step that makes keys."""

    number: int
    step: s.KeyBy

    @property
    def name(self) -> str:
        return str(getattr(self.step.f, "__name__", type(self.step.f).__name__))

    @property
    def words(self) -> str:
        return ", ".join(self.step.fields) if self.step.f is None else f"function {self.name}"


def _makers(steps: Sequence[s.Step], numbers: Sequence[int]) -> Iterator[_Maker]:
    """The steps that made the keys of these streams."""
    for number in numbers:
        step = steps[number]
        if isinstance(step, s.KeyBy):
            yield _Maker(number, step)
        else:
            yield from _makers(steps, step.inputs)


def _is_in_columns(job: Job, segment: Segment, step: s.Step) -> bool:
    if step not in segment.steps or segment.number in job.loops.keeps_states_per_input:
        return False  # the body of a loop processes events one by one
    is_vectorised = isinstance(step, s.Apply) and step.is_vectorised
    return is_vectorised or segment.number in job.topology.aggregations


def _settings(step: s.Step, ends_with_epochs: bool) -> str:
    text = (_shape(step), "a state per epoch" if ends_with_epochs else "")
    return ", ".join(filter(None, text))


def _shape(step: s.Step) -> str:
    match step:
        case s.AggregateWindows():
            return f"{step.window} of {_aggregates(step.aggregates)}"
        case s.AggregateAll():
            return _aggregates(step.aggregates)
        case s.Histogram():
            return "paths" if step.paths else "values"
    return ""


def _aggregates(aggregates: Sequence[tuple[str, Aggregate]]) -> str:
    """What an aggregate stores, in order; the names of its outputs do not matter."""
    return ", ".join(f"{aggregate.name}({aggregate.field or ''})" for _, aggregate in aggregates)


def _notes(storage: Storage, step: s.Step) -> str:
    if not needs_watermarks(step):
        return ""
    keys, times = (
        f"{what} as {render(schema_of(codec.type))}" if codec else f"no {what}"
        for what, codec in (("keys", storage.key), ("times", storage.time))
    )
    return f"with '{storage.name}', {keys}, {times}"


def _source(job: Job, source: s.Source) -> SourceIdentity:
    segment, bound = job.topology.source_segment(source.name), job.sources.get(source.name)
    kind = bound.kind if bound else ""
    if (
        job.watermark_tracker_of(source.name) is None
        and segment.number not in job.requirements.times
    ):
        return SourceIdentity(kind=kind)
    tp = render(schema_of(segment.input_type.time))
    delay = msgspec.to_builtins(source.watermark.delay) if source.watermark else None
    return SourceIdentity(f"{source.time}: {tp}" if source.time else "numbers", delay, kind)


def continued(found: Identity, wanted: Identity, forget: Collection[str] = ()) -> Identity:
    """The identity of a checkpoint that resumes with a changed flow."""
    sources = {
        name: source if source.time else replace(found.sources[name], kind=source.kind)
        for name, source in wanted.sources.items()
    }
    return replace(
        wanted,
        query_id=found.query_id,
        generation=found.generation,
        is_closed=found.is_closed,
        sources=sources,
        forgotten=sorted({*found.forgotten, *forget}),
    )


def differences(found: Identity, wanted: Identity, forget: Collection[str] = ()) -> list[Problem]:
    """Why a checkpoint cannot resume with a changed flow; `forget` names steps to drop."""
    if found.engine != wanted.engine:
        return [_another_engine(found, wanted)]
    return [
        *_whole(found, wanted),
        *_unwanted(found, wanted, forget),
        *_gone(found, wanted, forget),
        *_returned(found, wanted),
        *(
            problem
            for name, source in found.sources.items()
            if name in wanted.sources
            for problem in _source_differences(name, source, wanted.sources[name])
        ),
        *(
            _changed(what, _put_back(name))
            for name, step in found.steps.items()
            if name in wanted.steps
            for what in _step_differences(name, step, wanted.steps[name])
        ),
    ]


def sink_location(name: str, sink: SinkConnector) -> str:
    """A sink's location as the checkpoint stores it; empty for side outputs, which move with it."""
    return "" if is_side_output(name) else sink.location


def half_released(
    found: Identity, wanted: Identity, epoch: int, released: Mapping[str, str]
) -> list[Problem]:
    """Why a changed flow cannot finish an epoch that has been released in part."""
    if not released or found.code == wanted.code:
        return []
    message = f"its code has changed since it began epoch {epoch}, which is not finished"
    return [
        _changed(
            f"{message}; {mixture(found, released)}",
            "let the flow that began the epoch finish it (run it again), then change it; or "
            "let this one finish it (--finish-with-this-flow): the rest of the epoch, and all "
            "states, are then computed by this flow",
        )
    ]


def mixture(found: Identity, released: Mapping[str, str]) -> str:
    """What each sink has of an epoch that another flow began, as a phrase."""
    parts = [f"sink '{name}' has released {much}" for name, much in released.items()]
    nothing = [name for name in found.sinks if name not in released]
    if nothing:
        parts.append(f"nothing was released by {_names(nothing)}")
    return ", ".join(parts)


def _changed(what: str, hint: str) -> Problem:
    message = f"the checkpoint was written with another flow: {what}"
    return Problem("changed-flow", message, hint)


def _logs(identity: Identity) -> str:
    text = [f"through a log with '{name}' of type {tp}" for name, tp in identity.logs.items()]
    return " and ".join(text) or "inside an epoch"


def _another_engine(found: Identity, wanted: Identity) -> Problem:
    before, now = ENGINES[found.engine].name, ENGINES[wanted.engine].name
    return Problem(
        "another-engine",
        f"the checkpoint of flow '{found.flow}' belongs to the {before} engine, and this run uses "
        f"the {now} engine; epochs and ticks cannot be mixed",
        f'run it as before (mode = "{found.engine}"), or {_ANEW}',
    )


def _put_back(step: str) -> str:
    return (
        f"put it back as it was, or give the step another name and forget '{step}' (--forget "
        f"{step}), which starts with empty state, or {_ANEW}"
    )


def _whole(found: Identity, wanted: Identity) -> Iterator[Problem]:
    for words, before, now in (
        ("its name was {!r} and is {!r}", found.flow, wanted.flow),
        ("its sources were {} and are {}", _names(found.sources), _names(wanted.sources)),
        ("it had {} buckets and has {}", found.buckets, wanted.buckets),
        ("its levels of stateful steps were {} and are {}", found.levels, wanted.levels),
    ):
        if before != now:
            yield _changed(words.format(before, now), f"put it back as it was, or {_ANEW}")
    if found.logs != wanted.logs:
        before, now = (_logs(identity) for identity in (found, wanted))
        hint = f"choose the plan that the loop had: iterate(..., plan=...), or {_ANEW}"
        yield _changed(f"its loops fed back {before} and feed back {now}", hint)
    if found.partitions != wanted.partitions:
        yield Problem(
            "other-partitions",
            f"the checkpoint has {found.partitions} partitions, and {wanted.partitions} were asked "
            "for; a run does not rescale the state",
            f"leave the number out, or stop the flow and rescale: cutwater checkpoint rescale "
            f"CHECKPOINT --partitions {wanted.partitions}",
        )


def _names(named: Collection[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(named))


def _unwanted(found: Identity, wanted: Identity, forget: Collection[str]) -> Iterator[Problem]:
    for step in forget:
        if step in wanted.steps:
            yield Problem(
                "cannot-forget",
                f"step '{step}' cannot be forgotten: the flow has a step of that name, which would "
                "start with the old state",
                "give the step another name",
            )
        elif step not in {*found.steps, *found.forgotten}:
            kept = ", ".join(sorted(found.steps)) or "none"
            yield Problem(
                "cannot-forget",
                f"step '{step}' cannot be forgotten: the checkpoint has no state of it",
                f"steps with a state there: {kept}",
            )


def _gone(found: Identity, wanted: Identity, forget: Collection[str]) -> Iterator[Problem]:
    for step in found.steps:
        if step not in wanted.steps and step not in forget:
            yield _changed(
                f"step '{step}' was removed, and its state would be lost",
                f"keep the step and its name, or forget '{step}' (--forget {step}), or {_ANEW}",
            )


def _returned(found: Identity, wanted: Identity) -> Iterator[Problem]:
    for step in wanted.steps:
        if step in found.forgotten:
            yield _changed(
                f"step '{step}' was forgotten and is defined again; its old state is out of date",
                f"give the step another name, or {_ANEW}",
            )


def _source_differences(
    name: str, before: SourceIdentity, now: SourceIdentity
) -> Iterator[Problem]:
    if before.kind and before.kind != now.kind:
        message = f"source '{name}' was bound to {before.kind} and is bound to {now.kind}"
        yield _changed(message, f"bind it as it was, or {_ANEW}")
    if before.time is None or now.time is None or before == now:
        return
    if before.time != now.time:
        message = f"the times of source '{name}' were {before.time} and are {now.time}"
        yield _changed(message, f"put them back as they were, or {_ANEW}")
    elif before.delay is None or now.delay is None:
        had, has = ("no watermark", "one") if before.delay is None else ("a watermark", "none")
        message = f"source '{name}' had {had} and has {has}"
        yield _changed(message, f"put it back as it was, or {_ANEW}")
    elif _is_longer(before.delay, now.delay):
        yield _changed(
            f"the delay of the watermark of source '{name}' was {before.delay} and is {now.delay}; "
            "what was complete would be open again",
            f"put it back as it was, or make it shorter, or {_ANEW}",
        )


def _is_longer(before: Any, now: Any) -> bool:
    """Is a delay, as JSON, longer than it was? Delays that do not compare count as longer."""
    try:
        spans = [msgspec.convert(d, timedelta) if isinstance(d, str) else d for d in (before, now)]
        return bool(spans[0] < spans[1])
    except (msgspec.ValidationError, TypeError):
        return True


def _step_differences(name: str, before: StepIdentity, now: StepIdentity) -> Iterator[str]:
    if before.verb != now.verb:
        yield f"step '{name}' was '{before.verb}' and is '{now.verb}'"
        return
    if before.level != now.level:
        yield f"step '{name}' was in level {before.level} and is in level {now.level}"
    yield from _key_differences(name, before.key, now.key)
    if before.settings != now.settings:
        yield f"step '{name}' kept {before.settings} and keeps {now.settings}"
        return
    broken = list(what_breaks(before.state, now.state, f"the state of step '{name}'"))
    yield from broken
    if before.in_columns != now.in_columns and not broken:
        ways = "key by key", "in columns"
        had, has = ways[before.in_columns], ways[now.in_columns]
        yield f"the state of step '{name}' was kept {had} and is kept {has}"
    if before.notes != now.notes and not broken:
        yield f"step '{name}' stored pending times {before.notes} and stores them {now.notes}"


def _key_differences(name: str, before: KeyIdentity, now: KeyIdentity) -> Iterator[str]:
    if before.by != now.by:
        had, has = (f"keyed by {key.by}" if key.by else "not keyed" for key in (before, now))
        yield f"step '{name}' was {had} and is {has}"
        return
    if render(before.type) != render(now.type):
        yield f"the key of step '{name}' was {render(before.type)} and is {render(now.type)}"
        return
    is_comparable = {f[1] for f in before.functions} == {f[1] for f in now.functions}
    if is_comparable and before.functions != now.functions:
        names = ", ".join(dict.fromkeys(function for function, _, _ in now.functions))
        yield f"function {names}, which makes the keys of step '{name}', does something else"
