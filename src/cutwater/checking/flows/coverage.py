"""Coverage: what the inputs of a check never reached, and inputs that would.

A verdict says nothing about a join that never paired, a window that never closed or a step that no
event reached. So the steps are run unfused, and the inputs and outputs of each are counted, also
in the bodies of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cutwater.checking.flows.report import Finding
from cutwater.checking.flows.samples import sample_inputs
from cutwater.checking.flows.scenario import Scenario
from cutwater.checking.flows.shrinking import shrink_inputs
from cutwater.errors import CutwaterError, many
from cutwater.events import Data, Watermark
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import Part, Plan, Segment, body_of, plan, watched
from cutwater.flow.timely import with_bodies
from cutwater.operators.compose import compose
from cutwater.operators.loop import loop
from cutwater.operators.operator import Operator
from cutwater.semantics.crashing import run_with_crashes
from cutwater.semantics.inputs import Barrier

__all__ = ["Gap", "coverage", "gaps_of"]

_TRIES = 60
"""Inputs that are generated to find one that reaches what the others did not."""


@dataclass(frozen=True)
class Gap:
    """Behaviour of a step that no input exercised."""

    step: str
    count: str
    """The field of `_Count` that is 0."""
    what: str
    """The gap as a sentence."""

    def is_closed(self, counts: _Counts) -> bool:
        """Do these counts exercise it?"""
        return bool(getattr(counts.by_step[self.step], self.count))

    def __str__(self) -> str:
        return self.what


@dataclass
class _Count:
    """The events into a step and out of it."""

    received: int = 0
    emitted: int = 0
    ended: int = 0
    """Those emitted at the end of the input."""
    completed: int = 0
    """Those emitted when a time was complete, or an epoch ended."""
    paired: int = 0
    """For a join: the number of pairs passed to its function."""
    expired: int = 0
    """For a task: the states dropped after `expire_after`."""
    read: int = 0
    """For a source: the number of its events."""

    @property
    def before_the_end(self) -> int:
        """The outputs that did not wait for the end of the input."""
        return self.emitted - self.ended


@dataclass
class _Counts:
    by_step: dict[str, _Count] = field(default_factory=dict)
    is_ending: bool = False
    """Does a loop see the end of the input? What its steps complete then is not counted."""

    def of(self, step: s.Step) -> _Count:
        return self.by_step.setdefault(step.name, _Count())

    def watch(self, step: s.Step) -> s.Step:
        """A join with its pairs counted; all other steps unchanged."""
        if not isinstance(step, _PAIRING):
            return step
        count, f = self.of(step), step.f

        def pairing(left: Any, right: Any) -> Any:
            count.paired += 1
            return f(left, right)

        return replace(step, f=pairing)

    def watched(self, planned: Plan) -> Plan:
        """The plan, with operators that count."""
        return replace(planned, segments=tuple(map(self._segment, planned.segments)))

    def _segment(self, segment: Segment) -> Segment:
        return replace(segment, parts=tuple(map(self._part, segment.parts)))

    def _part(self, part: Part) -> Part:
        op = self._looping(part) if isinstance(part.step, s.Iterate) else part.operator
        return part._replace(operator=_counting(op, self.of(part.step), self))

    def _looping(self, part: Part) -> Operator:
        """The loop, with operators that count in its body."""
        step, at_work = part.step, watched(part.step, self.watch)
        assert isinstance(step, s.Iterate)
        assert isinstance(at_work, s.Iterate)
        body, segments = body_of(step, part.input_types[0], at_work)
        nodes = tuple(
            replace(node, operator=compose(*(each.operator for each in self._segment(seg).parts)))
            for node, seg in zip(body.nodes, segments, strict=True)
        )
        op = loop(replace(body, nodes=nodes))

        def finish(state: Any) -> Iterable[Any]:
            self.is_ending = True
            outputs = list(op.finish(state))
            self.is_ending = False
            return outputs

        return replace(op, finish=finish)


def _counting(op: Operator, count: _Count, counts: _Counts) -> Operator:
    def step(state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        was_kept = isinstance(event, Watermark) and not op.is_blank(state)
        state, outputs = op.step(state, event)
        count.expired += was_kept and op.is_blank(state)
        made = sum(isinstance(output, Data) for output in outputs)
        count.received += isinstance(event, Data)
        count.emitted += made
        count.completed += made if isinstance(event, Watermark) and not counts.is_ending else 0
        return state, outputs

    def finish(state: Any) -> Iterable[Any]:
        outputs = list(op.finish(state))
        made = sum(isinstance(output, Data) for output in outputs)
        count.emitted += made
        count.ended += made
        return outputs

    def barrier(state: Any) -> tuple[Any, Sequence[Any]]:
        assert op.barrier is not None
        state, outputs = op.barrier(state)
        count.emitted += len(outputs)
        count.completed += len(outputs)
        return state, outputs

    return replace(op, step=step, finish=finish, barrier=op.barrier and barrier)


def coverage(scenarios: Sequence[Scenario], seed: int) -> Iterator[Finding]:
    """A finding on what no input reached, with generated inputs that do; none if all is reached."""
    flow = scenarios[0].flow
    gaps = gaps_of(flow, scenarios)
    if not gaps:
        return
    reaching = _reaching(scenarios[0], gaps, seed)
    details = []
    for gap in gaps:
        details.append(str(gap))
        if gap in reaching:
            details.append("inputs that do: " + _formatted(reaching[gap]))
    steps = len({gap.step for gap in gaps})
    every = sum(not isinstance(step, s.Enter) for step in with_bodies(flow.steps))
    extent = f"{many(steps, 'step')} of {every}"
    yield Finding("never exercised by these inputs", extent, "note", tuple(details))


def gaps_of(flow: Flow, scenarios: Iterable[Scenario]) -> list[Gap]:
    """What none of the inputs exercised, step by step."""
    inputs = list(scenarios)
    counts = _counted(flow, inputs)
    return list(_gaps_in(flow.steps, counts, lambda step: _silent_before(flow, step, inputs)))


def _gaps_in(
    steps: Sequence[s.Step],
    counts: _Counts,
    held_by: Callable[[s.Step], Sequence[str]],
    loop: s.Iterate | None = None,
) -> Iterator[Gap]:
    """The gaps of steps, which are those of a flow or the body of a loop."""
    around = _Around(steps, counts, loop)
    for step in steps:
        yield from _gaps(around, step, held_by(step))
        if isinstance(step, s.Iterate) and counts.of(step).received:
            yield from _gaps_in(step.body, counts, _always(held_by(step)), step)


def _always(names: Sequence[str]) -> Callable[[s.Step], Sequence[str]]:
    return lambda _step: names


def _counted(flow: Flow, scenarios: Iterable[Scenario]) -> _Counts:
    counts = _Counts()
    for one in scenarios:
        _run(flow, one, counts)
    return counts


def _run(flow: Flow, scenario: Scenario, counts: _Counts) -> None:
    for source in flow.steps:
        if isinstance(source, s.Source):
            items = scenario.inputs.get(source.name, ())
            counts.of(source).read += sum(not _is_mark(item) for item in items)
    planned = counts.watched(plan(flow, fuse=False, watch=counts.watch))
    run_with_crashes(
        planned, scenario.inputs, epoch_size=scenario.epoch_size, on_loss=lambda _problem: None
    )


def _is_mark(item: Any) -> bool:
    return isinstance(item, (Barrier, Watermark))


@dataclass(frozen=True)
class _Around:
    """Steps that read one another, and what was counted."""

    steps: Sequence[s.Step]
    counts: _Counts
    loop: s.Iterate | None
    """The loop whose body they are; None: they are the flow's own."""

    def is_first(self, step: s.Step) -> bool:
        """Did an event reach the steps before it? If not, the gap is reported there."""
        return any(self._has_output(number) for number in step.inputs)

    def _has_output(self, number: int) -> bool:
        step = self.steps[number]
        if isinstance(step, s.Source):
            return self.counts.of(step).read > 0
        if isinstance(step, s.Enter):
            return self.loop is not None and self.counts.of(self.loop).received > 0
        if _works(step):
            return self.counts.of(step).emitted > 0 or not isinstance(step, _CHOOSING)
        return any(map(self._has_output, step.inputs))


def _gaps(around: _Around, step: s.Step, held_by: Sequence[str]) -> Iterator[Gap]:
    count = around.counts.of(step)
    if isinstance(step, s.Source):
        if not count.read:
            yield Gap(step.name, "read", f"source '{step.name}' has no event in these inputs")
        return
    if not _works(step):
        return
    if not count.received:
        if around.is_first(step):
            yield Gap(step.name, "received", f"no event reached {step.verb} '{step.name}'")
    elif isinstance(step, _CHOOSING) and not count.emitted:
        what = "let nothing through" if isinstance(step, s.Filter) else "emitted nothing"
        yield Gap(step.name, "emitted", f"{step.verb} '{step.name}' {what}")
    elif isinstance(step, _PAIRING) and not count.paired:
        why = _why(held_by) if isinstance(step, s.Join) else ""  # the other waits for no time
        message = f"{step.verb} '{step.name}' never paired two values{why}"
        yield Gap(step.name, "paired", message)
    elif isinstance(step, s.Bulk) and not count.before_the_end:
        message = f"bulk '{step.name}' emitted nothing before the end of the input"
        yield Gap(step.name, "before_the_end", message)
    elif isinstance(step, _CLOSING) and not count.completed:
        message = f"{_closing(step)} before the end of the input{_why(held_by)}"
        yield Gap(step.name, "completed", message)
    may_expire = isinstance(step, s.Apply) and step.expire_after is not None
    if may_expire and count.received and not count.expired:
        message = f"no state of {step.verb} '{step.name}' expired{_why(held_by)}"
        yield Gap(step.name, "expired", message)


_CHOOSING = (s.Filter, s.FlatMap, s.Flatten, s.Apply, s.Operate, s.Skip)
"""Steps that may emit nothing for an event."""
_PAIRING = (s.Join, s.JoinClocks)
"""Steps that emit for pairs."""
_CLOSING = (s.AggregateWindows, s.Batch, s.Histogram, s.OnComplete)
"""Steps that emit only once a time is complete."""


def _closing(step: s.Step) -> str:
    if isinstance(step, s.AggregateWindows):
        return f"no window of '{step.name}' closed"
    return f"{step.verb} '{step.name}' completed nothing"


def _why(held_by: Sequence[str]) -> str:
    """The clause that says what holds the frontier; empty if nothing does."""
    return f": its frontier cannot move, since {' and '.join(held_by)}" if held_by else ""


def _silent_before(flow: Flow, step: s.Step, scenarios: Sequence[Scenario]) -> list[str]:
    """Which upstream sources of a step complete nothing before they end, and why, as phrases."""
    steps, found, todo = flow.steps, set[int](), list(step.inputs)
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo += steps[number].inputs
    silent: dict[str, list[str]] = {}
    for source in (steps[n] for n in sorted(found)):
        if isinstance(source, s.Source) and (what := _missing(source, scenarios)):
            silent.setdefault(what, []).append(f"'{source.name}'")
    return [
        f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} no {what}"
        for what, names in silent.items()
    ]


def _missing(source: s.Source, scenarios: Sequence[Scenario]) -> str:
    """What a source lacks, so that it completes nothing before it ends; empty: nothing."""
    items = [item for one in scenarios for item in one.inputs.get(source.name, ())]
    if any(isinstance(item, Watermark) for item in items):
        return ""
    if source.watermark is None and source.time is not None:
        return "watermarks"
    return "" if any(not _is_mark(item) for item in items) else "events"


def _works(step: s.Step) -> bool:
    return not isinstance(step, (s.KeyBy, s.Merge, s.Union, s.Sink, s.Enter))


def _reaching(
    scenario: Scenario, gaps: Sequence[Gap], seed: int
) -> dict[Gap, Mapping[str, list[Any]]]:
    """Generated inputs, shrunk, that close gaps; only for gaps where such inputs were found."""
    found: dict[Gap, Mapping[str, list[Any]]] = {}
    for number in range(_TRIES):
        missing = [gap for gap in gaps if gap not in found]
        if not missing:
            break
        try:
            inputs = sample_inputs(scenario.flow, seed * 1_000 + number, epochs=3, size=4)
            one = replace(scenario, inputs=inputs, epoch_size=None)
            counts = _counted(scenario.flow, [one])
        except CutwaterError:  # a type without generator, or a value that a function rejects
            continue
        for gap in missing:
            if gap.is_closed(counts):
                found[gap] = shrink_inputs(one, _closing_it(one, gap))[0]
    return found


def _closing_it(scenario: Scenario, gap: Gap) -> Callable[[Mapping[str, list[Any]]], bool]:
    def closes(inputs: Mapping[str, list[Any]]) -> bool:
        return gap.is_closed(_counted(scenario.flow, [replace(scenario, inputs=dict(inputs))]))

    return closes


def _formatted(inputs: Mapping[str, Sequence[Any]]) -> str:
    shown = (f"{name}: {', '.join(map(repr, items))}" for name, items in inputs.items() if items)
    return "; ".join(shown)
