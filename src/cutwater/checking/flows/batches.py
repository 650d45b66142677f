"""Does a vectorised task compute the same on a batch as on its events one by one?

A run records the events of each key, in order. Then they are replayed: all in one batch, and in
random batches of some of the keys, with events of different keys interleaved differently; those of
one key keep their order. A key only receives what it received in a run, so a task that relies on an
invariant of its stream is not blamed.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from cutwater.checking.flows.histories import Histories, KeyedValue, vectorised_steps
from cutwater.checking.flows.report import Finding
from cutwater.checking.flows.splittings import (
    Splitting,
    renumbered,
    smaller_splittings,
    splittings_of,
)
from cutwater.errors import CutwaterError, many
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.vector_tasks import VectorisedTask
from cutwater.jsonable import plain, shown
from cutwater.operators.task import fresh_copies
from cutwater.semantics.frozen import hashable_form
from cutwater.vectors import Keys, run_batch
from cutwater.vectors.arrays import np

__all__ = ["Witness", "check_batches", "witness_of"]

_PATIENCE = 50_000
"""The number of events that are replayed to shrink a counterexample."""


def check_batches(
    flow: Flow, histories: Histories, seed: int, *, tries: int = 20
) -> Iterator[Finding]:
    """A finding for each vectorised task whose result depends on how its events are batched.

    Plus one for all others together.
    """
    steps = vectorised_steps(flow)
    clean = compared = 0
    for step in steps:
        witness, tried = witness_of(step, histories.of(step.name), seed, tries=tries)
        if witness is not None:
            check, extent = f"batches of '{step.name}'", f"{many(tried, 'splitting')} compared"
            yield Finding(check, extent, "violated", (str(witness),))
        else:
            clean, compared = clean + 1, compared + tried
    if clean:
        extent = f"{many(clean, 'function')}, {many(compared, 'splitting')} compared"
        yield Finding("batches mean the same as their events", extent, "not refuted")


@dataclass(frozen=True)
class _Result:
    """The outcome of some events."""

    outputs: tuple[tuple[Any, ...], ...] = ()
    """The outputs of each event."""
    states: Mapping[int, Any] = field(default_factory=dict)
    """The final state of each key; None: no state."""
    failure: str = ""
    """What was raised; empty: nothing."""

    def differs(self, other: _Result) -> bool:
        """Do the two outcomes differ in anything?"""
        mine, theirs = ((r.outputs, dict(r.states), r.failure) for r in (self, other))
        return hashable_form(mine) != hashable_form(theirs)


@dataclass(frozen=True)
class Witness:
    """Events that give another result in batches than one by one."""

    step: s.Apply
    splitting: Splitting
    one_by_one: _Result
    in_batches: _Result

    def __str__(self) -> str:
        lines = [
            f"{self.step.verb} '{self.step.name}', its function at {self.step.task.where}: "
            "a batch does not mean the same as its events one by one"
        ]
        for number, batch in enumerate(self.splitting, 1):
            lines.append(f"  batch {number}")
            lines += [f"    key {key}: {_formatted(value)}" for key, value in batch]
        return "\n".join([*lines, *self._results()])

    def _results(self) -> list[str]:
        one, other = self.one_by_one, self.in_batches
        if other.failure:
            return [f"  in batches it raises {other.failure}"]
        lines = []
        if hashable_form(one.outputs) != hashable_form(other.outputs):
            lines += [
                f"  one by one it emits {_emitted(one)}",
                f"  in batches it emits {_emitted(other)}",
            ]
        if hashable_form(dict(one.states)) != hashable_form(dict(other.states)):
            lines += [
                f"  one by one it keeps {_kept(one)}",
                f"  in batches it keeps {_kept(other)}",
            ]
        return lines


def _formatted(value: Any) -> str:
    return shown(plain(value))


def _emitted(result: _Result) -> str:
    return ", ".join(f"[{', '.join(map(_formatted, outputs))}]" for outputs in result.outputs)


def _kept(result: _Result) -> str:
    return ", ".join(
        f"key {key}: {'nothing' if state is None else _formatted(state)}"
        for key, state in result.states.items()
    )


def witness_of(
    step: s.Apply, histories: Sequence[Sequence[KeyedValue]], seed: int, *, tries: int
) -> tuple[Witness | None, int]:
    """Events whose result depends on their batches, shrunk, or None; and the number compared."""
    assert isinstance(step.task, VectorisedTask)
    drawn = random.Random(seed)
    compared = 0
    for history in histories:
        for splitting in splittings_of(history, drawn, tries):
            compared += 1
            if _depends_on_splitting(step.task, splitting):
                smaller = renumbered(_shrunk(step.task, splitting))
                one, other = _both(step.task, smaller)
                return Witness(step, smaller, one, other), compared
    return None, compared


def _both(task: VectorisedTask, splitting: Splitting) -> tuple[_Result, _Result]:
    alone = tuple((event,) for event in chain(*splitting))
    return _result(task, alone), _result(task, splitting)


def _depends_on_splitting(task: VectorisedTask, splitting: Splitting) -> bool:
    one, other = _both(task, splitting)
    return not one.failure and one.differs(other)


def _result(task: VectorisedTask, splitting: Splitting) -> _Result:
    states: dict[int, Any] = {}
    outputs: list[tuple[Any, ...]] = []
    for batch in splitting:
        try:
            outputs += _called(task, batch, states)
        except Exception as error:
            message = str(error) if isinstance(error, CutwaterError) else repr(error)
            return _Result(failure=message)
    return _Result(tuple(outputs), {key: states[key] for key in sorted(states)})


def _called(
    task: VectorisedTask, batch: Sequence[KeyedValue], states: dict[int, Any]
) -> list[tuple[Any, ...]]:
    """The outputs of each event of a batch; updates the states in place."""
    layouts, fresh = task.layouts, fresh_copies(task.initial)
    events = copy.deepcopy([value for _, value in batch])
    keys = sorted({key for key, _ in batch})
    number = {key: n for n, key in enumerate(keys)}
    before = [fresh() if states.get(key) is None else states[key] for key in keys]
    outcome = run_batch(
        task,
        layouts.state.of_values(before),
        layouts.event.of_values(events),
        Keys(np.array([number[key] for key, _ in batch], np.int64), len(keys)),
        layouts,
        is_watched=True,
    )
    deleted = [False] * len(keys) if outcome.deleted is None else outcome.deleted.tolist()
    after = layouts.state.to_values(outcome.states)
    states.update({k: None if g else v for k, g, v in zip(keys, deleted, after, strict=True)})
    caused: list[list[Any]] = [[] for _ in batch]
    if outcome.outputs is not None:
        values = layouts.output.to_values(outcome.outputs)
        rows = range(len(batch)) if outcome.rows is None else outcome.rows.tolist()
        for row, value in zip(rows, values, strict=True):
            caused[row].append(value)
    return [tuple(values) for values in caused]


def _shrunk(task: VectorisedTask, splitting: Splitting) -> Splitting:
    """Fewer events in fewer batches that still differ, within `_PATIENCE`."""
    patience = _PATIENCE
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in smaller_splittings(splitting):
            patience -= sum(map(len, smaller))
            if patience < 0:
                return splitting
            if _depends_on_splitting(task, smaller):
                splitting, is_smaller = smaller, True
                break
    return splitting
