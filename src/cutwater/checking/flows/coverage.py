"""What the inputs of a check never reached, and inputs that would.

A verdict says nothing about a join that never paired, a window that never closed or a step to which
no event came. Each step is run by itself, and what comes to it and from it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cutwater.checking.flows.report import Finding
from cutwater.checking.flows.samples import sample_inputs
from cutwater.checking.flows.scenario import Given
from cutwater.checking.flows.shrinking import shrink_inputs
from cutwater.errors import CutwaterError, many
from cutwater.events import Data, Watermark
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import Part, Plan, Segment, plan
from cutwater.operators.operator import Operator
from cutwater.semantics.crashing import run_with_crashes
from cutwater.semantics.inputs import Border

__all__ = ["Gap", "coverage", "gaps_of"]

_TRIES = 60
"""So many inputs are made up to find one that reaches what the others did not."""


@dataclass(frozen=True)
class Gap:
    """Something of a step that no input showed."""

    step: str
    count: str
    """What is 0 in its `_Count`."""
    what: str
    """A sentence."""

    def is_closed(self, counts: _Counts) -> bool:
        """Is it there after all?"""
        return bool(getattr(counts.by_step[self.step], self.count))

    def __str__(self) -> str:
        return self.what


@dataclass
class _Count:
    """What came to a step and from it."""

    given: int = 0
    emitted: int = 0
    completed: int = 0
    """How much of that when a time was complete, or an epoch had ended."""
    paired: int = 0
    """For a join: how many pairs its function was given."""
    read: int = 0
    """For a source: how many events it had."""


@dataclass
class _Counts:
    by_step: dict[str, _Count] = field(default_factory=dict)

    def of(self, step: s.Step) -> _Count:
        return self.by_step.setdefault(step.name, _Count())

    def watch(self, step: s.Step) -> s.Step:
        """A join whose pairs are counted; all others as they are."""
        if not isinstance(step, s.Join):
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
        return part._replace(operator=_counting(part.operator, self.of(part.step)))


def _counting(op: Operator, count: _Count) -> Operator:
    def step(state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        state, outputs = op.step(state, event)
        made = sum(isinstance(output, Data) for output in outputs)
        count.given += isinstance(event, Data)
        count.emitted += made
        count.completed += made if isinstance(event, Watermark) else 0
        return state, outputs

    def finish(state: Any) -> Iterable[Any]:
        outputs = list(op.finish(state))
        count.emitted += sum(isinstance(output, Data) for output in outputs)
        return outputs

    def border(state: Any) -> tuple[Any, Sequence[Any]]:
        assert op.border is not None
        state, outputs = op.border(state)
        count.emitted += len(outputs)
        count.completed += len(outputs)
        return state, outputs

    return replace(op, step=step, finish=finish, border=op.border and border)


def coverage(given: Sequence[Given], seed: int) -> Iterator[Finding]:
    """What no input reached, with one that does where one can be made up; nothing if all was."""
    flow = given[0].flow
    gaps = gaps_of(flow, given)
    if not gaps:
        return
    reaching = _reaching(given[0], gaps, seed)
    details = []
    for gap in gaps:
        details.append(str(gap))
        if gap in reaching:
            details.append("inputs that do: " + _said(reaching[gap]))
    steps = len({gap.step for gap in gaps})
    extent = f"{many(steps, 'step')} of {len(flow.steps)}"
    yield Finding("never looked at on these inputs", extent, "note", tuple(details))


def gaps_of(flow: Flow, given: Iterable[Given]) -> list[Gap]:
    """What none of the inputs showed, step by step."""
    inputs = list(given)
    counts = _counted(flow, inputs)
    return [gap for step in flow.steps for gap in _gaps(flow, step, counts, inputs)]


def _counted(flow: Flow, given: Iterable[Given]) -> _Counts:
    counts = _Counts()
    for one in given:
        _run(flow, one, counts)
    return counts


def _run(flow: Flow, given: Given, counts: _Counts) -> None:
    for source in flow.steps:
        if isinstance(source, s.Source):
            items = given.inputs.get(source.name, ())
            counts.of(source).read += sum(not _is_mark(item) for item in items)
    planned = counts.watched(plan(flow, fuse=False, watch=counts.watch))
    run_with_crashes(
        planned, given.inputs, epoch_size=given.epoch_size, on_loss=lambda _problem: None
    )


def _is_mark(item: Any) -> bool:
    return isinstance(item, (Border, Watermark))


def _gaps(flow: Flow, step: s.Step, counts: _Counts, given: Sequence[Given]) -> Iterator[Gap]:
    count = counts.of(step)
    if isinstance(step, s.Source):
        if not count.read:
            yield Gap(step.name, "read", f"source '{step.name}' has no event in these inputs")
        return
    if not _works(step):
        return
    held_by = _silent_before(flow, step, given)
    if not count.given:
        if _is_first(flow, step, counts):
            yield Gap(step.name, "given", f"no event came to {step.verb} '{step.name}'")
    elif isinstance(step, s.Filter) and not count.emitted:
        yield Gap(step.name, "emitted", f"filter '{step.name}' let nothing through")
    elif isinstance(step, s.Join) and not count.paired:
        said = f"join '{step.name}' never paired two values{_why(held_by)}"
        yield Gap(step.name, "paired", said)
    elif isinstance(step, _CLOSING) and not count.completed:
        said = f"{_closing(step)} before the end of the input{_why(held_by)}"
        yield Gap(step.name, "completed", said)


_CLOSING = (s.AggregateWindows, s.Batch, s.Histogram, s.OnComplete)
"""Steps that only show something once a time is complete."""


def _closing(step: s.Step) -> str:
    if isinstance(step, s.AggregateWindows):
        return f"no window of '{step.name}' closed"
    return f"{step.verb} '{step.name}' completed nothing"


def _why(held_by: Sequence[str]) -> str:
    """What keeps the frontier where it is."""
    names = ", ".join(f"'{name}'" for name in held_by)
    have = "has" if len(held_by) == 1 else "have"
    return f": its frontier cannot move, since {names} {have} no watermarks" if held_by else ""


def _silent_before(flow: Flow, step: s.Step, given: Sequence[Given]) -> list[str]:
    """The sources that lead to a step and complete nothing before they end."""
    steps, found, todo = flow.steps, set[int](), list(step.inputs)
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo += steps[number].inputs
    sources = [steps[n] for n in sorted(found)]
    return [x.name for x in sources if isinstance(x, s.Source) and _is_silent(x, given)]


def _is_silent(source: s.Source, given: Sequence[Given]) -> bool:
    has_rule = source.watermark is not None or source.time is None
    items = (item for one in given for item in one.inputs.get(source.name, ()))
    return not has_rule and not any(isinstance(item, Watermark) for item in items)


def _works(step: s.Step) -> bool:
    return not isinstance(step, (s.KeyBy, s.Merge, s.Union, s.Sink))


def _is_first(flow: Flow, step: s.Step, counts: _Counts) -> bool:
    """Did something come as far as the steps before it? Else these are named."""
    return any(_has_output(flow, number, counts) for number in step.inputs)


def _has_output(flow: Flow, number: int, counts: _Counts) -> bool:
    step = flow.steps[number]
    if isinstance(step, s.Source):
        return counts.of(step).read > 0
    if _works(step):
        return counts.of(step).emitted > 0 or not isinstance(step, s.Filter)
    return any(_has_output(flow, before, counts) for before in step.inputs)


def _reaching(given: Given, gaps: Sequence[Gap], seed: int) -> dict[Gap, Mapping[str, list[Any]]]:
    """For some of the gaps inputs, made up and as small as they can be, that do not have them."""
    found: dict[Gap, Mapping[str, list[Any]]] = {}
    for number in range(_TRIES):
        missing = [gap for gap in gaps if gap not in found]
        if not missing:
            break
        try:
            inputs = sample_inputs(given.flow, seed * 1_000 + number, epochs=3, size=4)
            one = replace(given, inputs=inputs, epoch_size=None)
            counts = _counted(given.flow, [one])
        except CutwaterError:  # a type that cannot be made up, or a value that a function refuses
            continue
        for gap in missing:
            if gap.is_closed(counts):
                found[gap] = shrink_inputs(one, _closing_it(one, gap))[0]
    return found


def _closing_it(given: Given, gap: Gap) -> Callable[[Mapping[str, list[Any]]], bool]:
    def closes(inputs: Mapping[str, list[Any]]) -> bool:
        return gap.is_closed(_counted(given.flow, [replace(given, inputs=dict(inputs))]))

    return closes


def _said(inputs: Mapping[str, Sequence[Any]]) -> str:
    shown = (f"{name}: {', '.join(map(repr, items))}" for name, items in inputs.items() if items)
    return "; ".join(shown)
