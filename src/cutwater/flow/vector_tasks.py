"""Vectorised tasks: they take many events at once, as arrays, with one-by-one semantics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args, get_origin

from cutwater.annotations import members, signature_of, union_of
from cutwater.flow.tasks import Task
from cutwater.flow.where import of_function
from cutwater.vectors import Emit, Keys, Layout, Layouts, run_batch
from cutwater.vectors.arrays import np

__all__ = ["OneByOne", "VectorFunction", "VectorisedTask", "vectorised"]

VectorFunction = Callable[[Any, Any, Keys], Any]


@dataclass(frozen=True)
class VectorisedTask(Task):
    """A task made of a function on arrays; called as a task, it runs batches of one event."""

    vector: VectorFunction
    """``vector(state, event, keys)``, the user's function."""

    @property
    def state_type(self) -> Any:
        """The type of the state: annotated, or else the type of the initial state."""
        return _state_type(self.vector, self.initial)

    @property
    def event_type(self) -> Any:
        """The type of the events it takes."""
        return _event_type(self.vector)

    @property
    def output_type(self) -> Any:
        """The type of the values it emits."""
        return _output_type(self.vector)

    @cached_property
    def layouts(self) -> Layouts:
        """The array layouts of its states, events and outputs."""
        return _layouts(self.vector, self.initial)


class OneByOne:
    """A vectorised function as a function on one state and one event, by batches of one."""

    def __init__(self, vector: VectorFunction, initial: Any, name: str) -> None:
        functools.update_wrapper(self, vector)  # messages and other processes rely on its name
        self.vector = vector
        self.initial = initial
        self.name = name

    @cached_property
    def _layouts(self) -> Layouts:
        return _layouts(self.vector, self.initial)

    def __call__(self, state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        """The new state (None if deleted) and the outputs of one event."""
        layouts = self._layouts
        outcome = run_batch(
            self,
            layouts.state.of_values([state], f"'{self.name}': "),
            layouts.event.of_values([event], f"'{self.name}': "),
            Keys(np.zeros(1, np.int64), 1),
            layouts,
            is_watched=True,
        )
        is_deleted = outcome.deleted is not None and bool(outcome.deleted[0])
        after = None if is_deleted else layouts.state.to_values(outcome.states)[0]
        return after, [] if outcome.outputs is None else layouts.output.to_values(outcome.outputs)


def _layouts(vector: VectorFunction, initial: Any) -> Layouts:
    types = _state_type(vector, initial), _event_type(vector), _output_type(vector)
    return Layouts(*map(Layout.of, types))


def _state_type(vector: VectorFunction, initial: Any) -> Any:
    annotated = signature_of(vector).parameters[:1]
    return annotated[0] if annotated and annotated[0] is not Any else type(initial)


def _event_type(vector: VectorFunction) -> Any:
    parameters = signature_of(vector).parameters
    return parameters[1] if len(parameters) > 1 else Any


def _output_type(vector: VectorFunction) -> Any:
    args = get_args(signature_of(vector).result)
    if len(args) not in (2, 3):
        return Any
    kinds = [tp for tp in members(args[1]) if tp not in (None, type(None))]
    return union_of([(*get_args(tp), Any)[0] if _is_emit(tp) else tp for tp in kinds])


def _is_emit(tp: Any) -> bool:
    return tp is Emit or get_origin(tp) is Emit


def vectorised(
    *,
    initial: Any,
    name: str | None = None,
    commutative: bool = False,
    idempotent: bool = False,
) -> Callable[[VectorFunction], VectorisedTask]:
    """Decorator that makes a function on arrays a task; ``stream.apply`` takes it like any other.

    The function ``f(state, event, keys)`` receives a batch: a state whose fields are arrays with
    one element per key, an event whose fields are arrays with one element per event, in order,
    and `Keys`, which maps events to keys. It returns the states after the batch and the outputs in
    the same form: one output per event, or ``None`` for none, or an `Emit`; and third, if keys lose
    their state, an array of bools that says which.

    **A batch means the same as its events one by one**: wherever it is split, states and outputs
    are the same. ``check`` tests that. `simulate` and `check` call it with one event at a time.

    Fields declared int, float and bool are arrays of int64, float64 and bool, all others arrays
    of objects; a value that is no record is an array itself. Records are built from arrays without
    calling their constructor or ``__post_init__``.

    `commutative` and `idempotent` are claims about single events, as for `task`.

    Examples
    --------
    >>> @vectorised(initial=0)
    ... def count(seen: int, event: str, keys: Keys) -> tuple[int, int]:
    ...     counts = keys.running_count(start=seen)
    ...     return keys.last(counts), counts
    >>> count(1, "a"), count.state_type, count.output_type
    ((2, [2]), <class 'int'>, <class 'int'>)
    """

    def decorate(f: VectorFunction) -> VectorisedTask:
        label = name or str(getattr(f, "__name__", "task"))
        return VectorisedTask(
            OneByOne(f, initial, label),
            initial,
            label,
            of_function(f),
            f,
            commutative=commutative,
            idempotent=idempotent,
        )

    return decorate
