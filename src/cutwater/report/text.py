"""The report as text for a terminal: one line per step; a long run is abridged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutwater.checking.transparency.explanation import Explanation
from cutwater.report.timeline import Fate, Timeline, TimelineStep, timeline_of

__all__ = ["render_text"]

_MOST_LINES = 120
_ENDS = 10
"""Steps shown at the beginning and at the end of a long run."""
_AROUND = 3
"""Steps shown before and after each failure and recovery of a long run."""
_ROOM = 28
"""The width of a value, in characters."""
_MARKS = {"event": "●", "barrier": "◆", "fail": "×", "recover": "↺"}
_UNDONE = {"event": "○", "barrier": "◇"}
_FATES: dict[Fate, str] = {
    "kept": "",
    "failure": "",
    "discarded": "undone",
    "open": "not committed",
    "unchecked": "not checked",
}


def render_text(explanation: Explanation) -> str:
    """An explanation as lines of text."""
    timeline = timeline_of(explanation)
    lines = [*_head(timeline), "", *_run(timeline), "", *_failure_free(timeline), ""]
    return "\n".join(map(_printable, [*lines, timeline.verdict.words])) + "\n"


def _printable(line: str) -> str:
    """A line with control characters replaced, so that a terminal does not interpret them."""
    return "".join(char if char.isprintable() else "�" for char in line)


def _head(timeline: Timeline) -> Iterator[str]:
    failures = sum(step.rule == "fail" for step in timeline.steps)
    counts = [
        (len(timeline.steps), "step"),
        (failures, "failure"),
        (len(timeline.generations), "generation"),
        (len(timeline.commits), "commit"),
    ]
    message = ", ".join(f"{n:,} {word}{'s' * (n != 1)}" for n, word in counts)
    yield f"{timeline.flow}: {message}"
    if timeline.note:
        yield timeline.note


def _run(timeline: Timeline) -> Iterator[str]:
    yield "the run"
    shown = _what_matters([step.fate == "failure" for step in timeline.steps])
    generation, before = -1, -1
    for index in shown:
        step = timeline.steps[index]
        yield from _gap(before, index)
        if step.generation != generation:
            generation = step.generation
            yield _generation(timeline, generation)
        yield _line(f"{index:6}", timeline, step, _fate(step))
        before = index
    yield from _gap(before, len(timeline.steps))


def _failure_free(timeline: Timeline) -> Iterator[str]:
    yield "the failure-free run"
    seams = [
        timeline.steps[index].generation != timeline.steps[following].generation
        for index, following in zip(timeline.kept, timeline.kept[1:], strict=False)
    ]
    before = -1
    for position in _what_matters([*seams, False][: len(timeline.kept)]):
        index = timeline.kept[position]
        yield from _gap(before, position)
        step = timeline.steps[index]
        yield _line(f"{position:6}", timeline, step, f"{_commit(step)}  (step {index})".strip())
        before = position
    yield from _gap(before, len(timeline.kept))


def _what_matters(is_special: Sequence[bool]) -> list[int]:
    """The indices of the lines to show: all, or both ends and those around the special ones."""
    total = len(is_special)
    if total <= _MOST_LINES:
        return list(range(total))
    found = {*range(_ENDS), *range(total - _ENDS, total)}
    for index in (index for index, special in enumerate(is_special) if special):
        found.update(range(max(index - _AROUND, 0), min(index + _AROUND + 1, total)))
    shown, half = sorted(found), _MOST_LINES // 2
    return shown if len(shown) <= _MOST_LINES else [*shown[:half], *shown[-half:]]


def _gap(before: int, after: int) -> Iterator[str]:
    left_out = after - before - 1
    if left_out:
        yield f"     …  {left_out:,} step{'s' * (left_out != 1)}"


def _generation(timeline: Timeline, number: int) -> str:
    generation = timeline.generations[number]
    back = f", back to {_snapshot(generation.epoch)}" if generation.is_recovered else ""
    return f"  generation {number + 1}{back}"


def _snapshot(epoch: int) -> str:
    return f"epoch {epoch}" if epoch else "the start"


def _line(number: str, timeline: Timeline, step: TimelineStep, remark: str) -> str:
    is_undone = step.fate in ("discarded", "open", "unchecked")
    mark = _UNDONE[step.rule] if is_undone else _MARKS[step.rule]
    width = max((len(lane.name) for lane in timeline.tasks), default=0)
    name = "" if step.task is None else timeline.tasks[step.task].name
    message = f"{number}  {mark} {name:{width}}  {_deed(timeline, step)}"
    return f"{message:<72}  {remark}".rstrip() if remark else message.rstrip()


def _deed(timeline: Timeline, step: TimelineStep) -> str:
    match step.rule:
        case "fail":
            return "fails"
        case "recover":
            return f"all tasks go back to {_snapshot(step.epoch)}"
        case "barrier":
            return f"epoch {step.epoch}  barrier, snapshot"
    consumed, produced = (_values(timeline, which) for which in (step.consumed, step.produced))
    return f"epoch {step.epoch}  {consumed} → {produced}"


def _values(timeline: Timeline, numbers: Sequence[int]) -> str:
    texts = (timeline.messages[number].text or "barrier" for number in numbers)
    text = ", ".join(texts) or "nothing"
    return text if len(text) <= _ROOM else text[: _ROOM - 1] + "…"


def _fate(step: TimelineStep) -> str:
    return _commit(step) or _FATES[step.fate]


def _commit(step: TimelineStep) -> str:
    return "" if step.commit is None else f"commits epoch {step.commit}"
