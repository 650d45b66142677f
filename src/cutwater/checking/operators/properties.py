"""The properties of an operator, each a function from a stream to a counterexample or None."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

from cutwater.checking.operators.report import Counterexample
from cutwater.events import Data, Event, Watermark, monotone
from cutwater.operators import Operator

__all__ = [
    "Check",
    "Completeness",
    "Settled",
    "Soundness",
    "check_completeness",
    "check_monotonicity",
    "check_operator_purity",
    "check_productivity",
    "check_soundness",
]

Check = Callable[[Sequence[Event]], Counterexample | None]
Soundness = Callable[[list[Event], Data], bool]
Completeness = Callable[[list[Event], list[Event]], bool]
Settled = Callable[[list[Event]], bool]

_MOST_AT_THE_END = 1000


@dataclass(frozen=True, slots=True)
class _Run:
    """The outputs of an operator on a stream."""

    by_input: tuple[tuple[Event, ...], ...]
    """The outputs of each input."""
    at_end: tuple[Event, ...]

    def before_end(self, inputs: int | None = None) -> list[Event]:
        """The outputs of the first inputs, or of all, without those at the end."""
        return [output for outputs in self.by_input[:inputs] for output in outputs]

    def whole(self) -> list[Event]:
        return [*self.before_end(), *self.at_end]


def _at_end(op: Operator, state: Any) -> tuple[Event, ...]:
    return tuple(islice(op.finish(state), _MOST_AT_THE_END))


def _run(op: Operator, inputs: Iterable[Event]) -> _Run:
    state, by_input = op.initial, []
    for event in inputs:
        state, outputs = op.step(state, event)
        by_input.append(tuple(outputs))
    return _Run(tuple(by_input), _at_end(op, state))


def _fed(inputs: Sequence[Event], closing: Sequence[Event], lag: int) -> list[Event]:
    """The inputs, watermarks that complete them, and `lag` more of those: no end is needed."""
    return [*inputs, *closing, *islice(cycle(closing), lag)]


def check_soundness(op: Operator, is_sound: Soundness) -> Check:
    """Every data output is correct, given all inputs."""

    def check(inputs: Sequence[Event]) -> Counterexample | None:
        outputs = _run(op, inputs).whole()
        for position, output in enumerate(outputs):
            if isinstance(output, Data):
                denied = _denied("soundness", is_sound, list(inputs), output)
                if denied is not None:
                    reason = f"{output!r} is not sound{denied}"
                    return Counterexample(tuple(inputs), tuple(outputs), reason, position)
        return None

    return check


def check_completeness(
    op: Operator, is_complete: Completeness, closing: Sequence[Event], settled: Settled, lag: int
) -> Check:
    """The outputs are complete at the end, and without an end once every item is completed."""

    def judge(inputs: list[Event], outputs: list[Event], wrong: str) -> Counterexample | None:
        denied = _denied("completeness", is_complete, list(inputs), list(outputs))
        if denied is None:
            return None
        return Counterexample(tuple(inputs), tuple(outputs), wrong + denied)

    def check(inputs: Sequence[Event]) -> Counterexample | None:
        ended = judge(list(inputs), _run(op, inputs).whole(), "the outputs are not complete")
        if ended or not settled([*inputs, *closing]):
            return ended
        fed = _fed(inputs, closing, lag)
        late = "the outputs are complete only at the end of the input"
        return judge(fed, _run(op, fed).before_end(), late)

    return check


def check_monotonicity(op: Operator) -> Check:
    """No output comes after a watermark that completed it."""

    def check(inputs: Sequence[Event]) -> Counterexample | None:
        outputs = _run(op, inputs).whole()
        verdict = monotone(outputs)
        if verdict:
            return None
        return Counterexample(tuple(inputs), tuple(outputs), verdict.reason, verdict.position)

    return check


def check_productivity(op: Operator, closing: Sequence[Event], settled: Settled, lag: int) -> Check:
    """Whenever the input owes nothing, the output owes nothing `lag` inputs later."""

    def check(inputs: Sequence[Event]) -> Counterexample | None:
        fed = _fed(inputs, closing, lag)
        run = _run(op, fed)
        for n in range(1, len(fed) - lag + 1):
            if not settled(fed[:n]):
                continue
            outputs = run.before_end(n + lag)
            position = _first_incomplete(outputs[: len(run.before_end(n))], outputs)
            if position is not None:
                late = f" within {lag} inputs" if lag else ""
                time = outputs[position].time
                reason = f"time {time!r} was not completed{late}, although the input owes nothing"
                return Counterexample(tuple(fed[: n + lag]), tuple(outputs), reason, position)
        return None

    return check


def _first_incomplete(judged: Sequence[Event], outputs: Sequence[Event]) -> int | None:
    """The index of the first of the judged data that no later watermark completes."""
    for index, event in enumerate(judged):
        later = (mark.time for mark in outputs[index + 1 :] if isinstance(mark, Watermark))
        if isinstance(event, Data) and not any(event.time <= time for time in later):
            return index
    return None


def _denied(name: str, predicate: Callable[..., bool], *args: object) -> str | None:
    """None if the predicate is true; else the suffix of the reason."""
    try:
        return None if predicate(*args) else ""
    except Exception as error:
        return f": {name} raised {error!r}"


class _ImpureError(Exception):
    """Why a call shows that a function is impure."""


def check_operator_purity(op: Operator, closing: Sequence[Event], lag: int) -> Check:
    """Steps are functions: repeated, they give the same events and leave the state unchanged.

    Takes every step that the other checks take, so that these can rely on purity.
    """

    def check(inputs: Sequence[Event]) -> Counterexample | None:
        fed = _fed(inputs, closing, lag)
        state: Any = _copy(op.initial)
        outputs: list[Event] = []
        for name, call, taken in _calls(op, fed, ends={len(inputs), len(fed)}):
            try:
                later, more = _call_twice(name, call, state)
            except _ImpureError as impure:
                return Counterexample(tuple(fed[:taken]), tuple(outputs), str(impure))
            if name == "step":
                state = later
                outputs.extend(more)
        return None

    return check


def _calls(
    op: Operator, inputs: Sequence[Event], ends: Collection[int]
) -> Iterator[tuple[str, Callable[[Any], _Outcome], int]]:
    """The calls for a stream that may end at several positions, each with the inputs until then."""
    for taken in range(len(inputs) + 1):
        if taken:
            yield "step", partial(_step, op, inputs[taken - 1]), taken
        if taken in ends:
            yield "finish", partial(_finish, op), taken


_Outcome = tuple[Any, tuple[Any, ...]]


def _step(op: Operator, event: Event, state: Any) -> _Outcome:
    later, outputs = op.step(state, event)
    return later, tuple(outputs)


def _finish(op: Operator, state: Any) -> _Outcome:
    return None, _at_end(op, state)


def _call_twice(name: str, call: Callable[[Any], _Outcome], state: Any) -> _Outcome:
    before = _copy(state)
    try:
        later, outputs = call(state)
        first = _copy((later, outputs))
        changed = _differ(before, state)
        second = call(before)
    except Exception as error:
        raise _ImpureError(f"{name} raised {error!r}") from None
    if changed:
        raise _ImpureError(f"{name} changed the state that it was given")
    if _differ(first, second):
        raise _ImpureError(f"{name} returned something else when it was called again")
    for output in outputs:
        if not isinstance(output, Data | Watermark):
            raise _ImpureError(f"{name} emitted {output!r}, which is not an event")
    return later, outputs


def _copy(value: Any) -> Any:
    """A deep copy; the value itself if it cannot be copied."""
    try:
        return deepcopy(value)
    except Exception:
        return value


def _differ(a: Any, b: Any) -> bool:
    """Are the two different, for a type whose ``==`` compares values?"""
    try:
        return bool(a != b and a == _copy(a))
    except Exception:
        return False
