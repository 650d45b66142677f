"""Do functions depend on, or change, more than their arguments?

This is undecidable. Every call is repeated on equal copies of its arguments: in another order after
other calls, with another clock and random seed, and, where the function can be imported again, in
another process with another hash seed. Code that names clocks, random numbers, input and output or
mutable variables gets a warning. The verdict is "no impurity found".
"""

from __future__ import annotations

import copy
import dataclasses
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from cutwater.annotations import is_immutable
from cutwater.checking.purity.other_process import (
    HANGS,
    CallOrigin,
    CallsToRepeat,
    Elsewhere,
    call_after,
    call_elsewhere,
    call_origin,
)
from cutwater.checking.purity.static_hints import hints_of
from cutwater.errors import InputError, StepError
from cutwater.flow import steps as s
from cutwater.flow.lowering import named
from cutwater.flow.where import Where, of_function
from cutwater.jsonable import plain, shown
from cutwater.operators.bounded import bounded
from cutwater.operators.operator import no_outputs
from cutwater.semantics.frozen import hashable_form
from cutwater.semantics.hanging import HangingError

__all__ = [
    "Call",
    "Calls",
    "Gives",
    "Impurity",
    "PurityResult",
    "check_purity",
    "encoded",
    "encoded_result",
    "functions_of",
    "gives_of",
    "listed",
]


_MOST_OUTPUTS = 100_000
"""The most values a function may emit for one event; an infinite generator would never return."""


@dataclass(frozen=True)
class Call:
    """A recorded call: its arguments, copied before the call, and its result."""

    arguments: tuple[Any, ...]
    result: bytes = b""

    @property
    def shown_arguments(self) -> str:
        """The arguments, for people."""
        return ", ".join(shown(plain(argument)) for argument in self.arguments)

    def copies(self) -> tuple[Any, ...]:
        """Copies of the arguments; immutable ones too, since a restored state is another object."""
        return tuple(map(_copied, self.arguments))


def _copied(argument: Any) -> Any:
    try:
        return copy.deepcopy(argument)
    except Exception:  # anything a user's class raises
        if is_immutable(argument):
            return argument
        raise


@dataclass
class Calls:
    """The calls of each of a flow's functions; `watch` makes steps that record them."""

    limit: int = 10_000
    """The number of different calls of a function that are kept, from its first."""
    functions: dict[tuple[str, str], tuple[s.Step, Callable[..., Any]]] = field(
        default_factory=dict
    )
    """By step and role: the step and the user's function."""
    origins: dict[tuple[str, str], CallOrigin | None] = field(default_factory=dict)
    """How another process gets each function as it was before its first call."""
    made: dict[tuple[str, str], list[Call]] = field(default_factory=dict)
    seen: dict[tuple[str, str], set[Any]] = field(default_factory=dict)
    """The arguments of the calls in comparable form, to record equal calls once; beyond the limit
    their hashes, to count them."""

    def watch(self, step: s.Step) -> s.Step:
        """The step, with functions that record their calls."""
        changes: dict[str, Any] = {}
        for role, f in functions_of(step).items():
            if (step.name, role) not in self.functions:
                self.origins[step.name, role] = call_origin(f, step.name, role)
            self.functions[step.name, role] = (step, f)
            noted = self._noting(step, role, f)
            if isinstance(step, s.Apply):
                changes["task"] = dataclasses.replace(step.task, f=noted)
            elif isinstance(step, s.Operate):
                op = changes.get("op", step.op)
                changes["op"] = dataclasses.replace(op, **{role: noted})
            else:
                changes[role] = noted
        return dataclasses.replace(step, **changes) if changes else step

    def _noting(self, step: s.Step, role: str, f: Callable[..., Any]) -> Callable[..., Any]:
        gives, title = gives_of(step, role), step.title
        made = self.made.setdefault((step.name, role), [])
        seen = self.seen.setdefault((step.name, role), set())

        def noting(*arguments: Any) -> Any:
            with _named(title):
                held, is_full = hashable_form(arguments), len(made) >= self.limit
            is_known = held in seen or (is_full and hash(held) in seen)
            if not is_known:
                seen.add(hash(held) if is_full else held)
            if is_known or is_full:
                return listed(f(*arguments), gives, title)
            before = Call(arguments).copies()
            result = listed(f(*arguments), gives, title)
            with _named(title):
                made.append(Call(before, encoded(result)))
            return result

        return noting


@contextmanager
def _named(title: str) -> Iterator[None]:
    """Name the step in the problem of a value that cannot be compared."""
    try:
        yield
    except InputError as error:
        problem = error.problems[0]
        message = f"{title}: {problem.message}"
        raise InputError(dataclasses.replace(problem, message=message)) from None


Gives = Literal["a value", "values", "a state and values"]
"""What a function's result is; values may be in any iterable."""


def gives_of(step: s.Step, role: str) -> Gives:
    """What a step's function in a role returns."""
    if isinstance(step, (s.FlatMap, s.Bulk)) or role == "finish":
        return "values"
    has_state = isinstance(step, (s.Apply, s.OnComplete, s.Operate))
    return "a state and values" if has_state else "a value"


def functions_of(step: s.Step) -> dict[str, Callable[..., Any]]:
    """A step's functions by their role in it."""
    if isinstance(step, s.Apply):
        return {"task": step.task.f}
    if isinstance(step, s.Operate):
        roles = ("step", "finish", "barrier")
        found = {role: getattr(step.op, role) for role in roles}
        return {role: f for role, f in found.items() if f is not None and f is not no_outputs}
    names = [name for name in ("f", "receive", "complete") if hasattr(step, name)]
    return {name: getattr(step, name) for name in names if callable(getattr(step, name))}


@dataclass(frozen=True)
class Impurity:
    """A call that shows that a function is not pure."""

    step: str
    """The step, as messages name it."""
    where: Where
    """Where the function is defined."""
    what: str
    """What it does wrong."""
    arguments: str
    results: tuple[str, ...] = ()
    """The different results of the same call."""

    def __str__(self) -> str:
        lines = [
            f"{self.step}, its function at {self.where}: {self.what}",
            f"  given {self.arguments}",
        ]
        return "\n".join([*lines, *(f"  gave  {result}" for result in self.results)])


@dataclass(frozen=True)
class PurityResult:
    """What is known of one function."""

    step: str
    role: str
    calls: int
    """The number of different calls that were repeated."""
    distinct: int
    """The number of different calls that were made."""
    elsewhere: bool
    """Were they repeated in another process, with another hash seed?"""
    impurity: Impurity | None
    is_reordered: bool
    """Does the order of a dict in its results depend on the hash seed?"""
    warnings: tuple[str, ...]
    """What its code refers to that a pure function need not."""


def check_purity(calls: Calls) -> list[PurityResult]:
    """Repeat the recorded calls and compare."""
    jobs = _jobs(calls)
    elsewhere = _elsewhere(jobs)
    results = []
    for (name, role), (step, f) in calls.functions.items():
        made, others = calls.made[name, role], elsewhere.get((name, role))
        found, is_reordered = None, False
        if others:
            found = _differs_elsewhere(_title(step), of_function(f), made, others, jobs[name, role])
            is_reordered = any(results != others[0][1] for _, results in others)
        found = found or _repeat(step, f, made, gives=gives_of(step, role))
        is_elsewhere = others is not None
        count = max(len(made), len(calls.seen[name, role]))
        hints = hints_of(f)
        results.append(
            PurityResult(name, role, len(made), count, is_elsewhere, found, is_reordered, hints)
        )
    return results


_AGAIN = "called again with the same arguments it gives another result"

_Others = list[tuple[Elsewhere, list[bytes]]]
"""For each process that repeated the calls, their results there."""


def _jobs(calls: Calls) -> dict[tuple[str, str], CallsToRepeat]:
    """The calls that other processes can repeat."""
    jobs: dict[tuple[str, str], CallsToRepeat] = {}
    for (name, role), (step, _) in calls.functions.items():
        origin = calls.origins[name, role]
        if origin is not None and calls.made[name, role]:
            arguments = [call.copies() for call in calls.made[name, role]]
            jobs[name, role] = CallsToRepeat(origin, arguments, gives_of(step, role))
    return jobs


def _elsewhere(jobs: Mapping[tuple[str, str], CallsToRepeat]) -> dict[tuple[str, str], _Others]:
    """The results of the functions' calls in other processes."""
    found = call_elsewhere(list(jobs.values()))
    made = {
        which: [(one, result) for one in found or () if (result := one.results[n]) is not None]
        for n, which in enumerate(jobs)
    }
    return {which: others for which, others in made.items() if others}


def _differs_elsewhere(
    title: str, where: Where, made: Sequence[Call], others: _Others, job: CallsToRepeat
) -> Impurity | None:
    """A call whose result differs between processes."""
    for _, elsewhere in others:
        if HANGS in elsewhere:
            what = "called again with the same arguments in another process, it does not return"
            return Impurity(title, where, what, made[elsewhere.index(HANGS)].shown_arguments)
    first, results = others[0]
    for index, call in enumerate(made):
        arguments = call.shown_arguments
        for one, elsewhere in others[1:]:
            if _unordered(elsewhere[index]) != _unordered(results[index]):
                before = _call_that_matters(job, index)
                what = _how_it_differs(first, one)
                if before is not None:
                    what = f"{_AGAIN}: after it was given {made[before].shown_arguments}"
                return _differing(title, where, what, arguments, results[index], elsewhere[index])
    return None


def _call_that_matters(job: CallsToRepeat, index: int) -> int | None:
    """A call that changes the result of a later one; None if no single call does.

    Found by bisection: how many of the others must come first for the result to change.
    """
    others = [number for number in range(len(job.arguments)) if number != index]
    alone = call_after(job, (), index)
    if alone is None or call_after(job, others, index) == alone:
        return None
    few, enough = 0, len(others)
    while enough - few > 1:
        half = (few + enough) // 2
        if call_after(job, others[:half], index) == alone:
            few = half
        else:
            enough = half
    return others[few]


def _how_it_differs(first: Elsewhere, other: Elsewhere) -> str:
    if other.hash_seed != first.hash_seed and not other.is_reversed:
        return "in another process, with another hash seed, it gives another result"
    return (
        f"{_AGAIN}: in another process, after other calls, with another clock, time zone and "
        "environment"
    )


def _title(step: s.Step) -> str:
    return f"{step.verb} '{step.name}'"


class _HangsError(Exception):
    """A call that returned before does not return when repeated."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.shown_arguments)
        self.call = call


def _repeat(
    step: s.Step, f: Callable[..., Any], made: Sequence[Call], gives: Gives
) -> Impurity | None:
    """Repeat the calls twice in this process, up to one that does not return."""
    # In one call that the timer can interrupt, with lazy results iterated inside it.
    again = named(step, lambda *arguments: listed(f(*arguments), gives, step.title))
    try:
        with _environment(seed=1, later=0.0):
            first = [_outcome(again, call, gives) for call in made]
        with _environment(seed=2, later=86_400.0 * 400):
            second = [_outcome(again, call, gives) for call in reversed(made)][::-1]
    except _HangsError as error:
        what = "called again with the same arguments it does not return"
        return Impurity(_title(step), of_function(f), what, error.call.shown_arguments)
    title, where = _title(step), of_function(f)
    found = _compared(title, where, zip(made, first, second, strict=True))
    return found or _changed_later(title, where, zip(made, first, strict=True))


def _changed_later(
    title: str, where: Where, repeated: Iterable[tuple[Call, _Outcome]]
) -> Impurity | None:
    """The first call of which a later one changed what it was given, or returned."""
    for call, outcome in repeated:
        if is_immutable((outcome.arguments, outcome.returned)):
            continue
        if outcome.returned is not None and encoded(outcome.returned) != outcome.result:
            what = "it changes what it has returned in a later call; a copy of it is not changed"
            return _differing(
                title, where, what, call.shown_arguments, outcome.result, encoded(outcome.returned)
            )
        kept = _changed_argument(outcome.arguments, outcome.forms)
        if kept:
            what = f"it keeps its {kept}, and changes it in a later call"
            return Impurity(title, where, what, call.shown_arguments)
    return None


def _compared(
    title: str, where: Where, repeated: Iterable[tuple[Call, _Outcome, _Outcome]]
) -> Impurity | None:
    """The first call whose repetitions differ, or change their arguments."""
    for call, one, two in repeated:
        arguments = call.shown_arguments
        if one.changed or two.changed:
            what = f"it changes its {one.changed or two.changed} in place"
            return Impurity(title, where, what, arguments)
        for result in (one.result, two.result):
            if call.result != result:
                return _differing(title, where, _AGAIN, arguments, call.result, result)
    return None


def _differing(
    title: str, where: Where, what: str, arguments: str, one: bytes, two: bytes
) -> Impurity:
    results = tuple(shown(msgspec.json.decode(result)) for result in (one, two))
    return Impurity(title, where, what, arguments, results)


@dataclass(frozen=True, slots=True)
class _Outcome:
    result: bytes
    changed: str
    """Which argument it changed; empty if none."""
    arguments: tuple[Any, ...]
    forms: list[Any]
    """The forms of the arguments before the call."""
    returned: Any
    """The result itself; None if it raised."""


_ROLES = {1: ("event",), 2: ("state", "event"), 3: ("state", "time", "event")}
"""The roles of a function's arguments, by their number."""


def _outcome(f: Callable[..., Any], call: Call, gives: Gives) -> _Outcome:
    arguments = call.copies()
    before = [hashable_form(argument) for argument in arguments]
    returned = None
    try:
        returned = listed(f(*arguments), gives)
        result = encoded(returned)
    except HangingError:
        raise _HangsError(call) from None
    except Exception as error:
        result = _encoded_error(error)
    return _Outcome(result, _changed_argument(arguments, before), arguments, before, returned)


def _changed_argument(arguments: tuple[Any, ...], before: list[Any]) -> str:
    """The role of the first argument that has changed; empty if none has."""
    names = _ROLES[len(arguments)]
    changed = [n for n, a, b in zip(names, arguments, before, strict=True) if hashable_form(a) != b]
    return changed[0] if changed else ""


def encoded_result(
    f: Callable[..., Any], arguments: Sequence[Any], gives: Gives, *, has_order: bool = False
) -> bytes:
    """The result of a call, or what it raises, as bytes that are equal for equal results.

    With ``has_order=True`` dicts keep the order in which they were filled.
    """
    try:
        return encoded(listed(f(*arguments), gives), has_order=has_order)
    except Exception as error:
        return _encoded_error(error)


def _encoded_error(error: Exception) -> bytes:
    raised = error.__cause__ if isinstance(error, StepError) and error.__cause__ else error
    return encoded(f"raised {type(raised).__name__}: {raised}")


def listed(result: Any, gives: Gives, step: str = "a step") -> Any:
    """A result in which emitted values are lists of bounded length, in the order of iteration."""
    if gives == "values" or isinstance(result, Iterator):
        return bounded(result, step, _MOST_OUTPUTS)
    is_pair = gives == "a state and values" and type(result) is tuple and len(result) == 2
    if is_pair and isinstance(result[1], (Iterator, set, frozenset, dict)):
        return result[0], bounded(result[1], step, _MOST_OUTPUTS)
    return result


def encoded(result: Any, *, has_order: bool = False) -> bytes:
    """Bytes that are equal for equal results; with ``has_order=True`` only if dicts are alike."""
    hashable_form(result)  # raises if it cannot be compared
    return msgspec.json.encode(plain(result), order=None if has_order else "deterministic")


def _unordered(data: bytes) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(data), order="deterministic")


_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")


@contextmanager
def _environment(seed: int, later: float) -> Iterator[None]:
    """Another random seed, and clocks that run ahead."""
    state = random.getstate()
    random.seed(seed)
    numbers = sys.modules.get("numpy.random")
    kept = numbers.get_state() if numbers else None
    if numbers:
        numbers.seed(seed)
    clocks = {name: getattr(time, name) for name in _CLOCKS}
    for name, clock in clocks.items():
        unit = 1_000_000_000 if name.endswith("_ns") else 1
        setattr(time, name, lambda clock=clock, unit=unit: clock() + type(clock())(later * unit))
    try:
        yield
    finally:
        random.setstate(state)
        if numbers:
            numbers.set_state(kept)
        for name, clock in clocks.items():
            setattr(time, name, clock)
