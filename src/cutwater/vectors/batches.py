"""One call of a vectorised function: what it is given, and whether what it gives can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from cutwater.errors import InputError, Problem
from cutwater.vectors.arrays import Array, np
from cutwater.vectors.keys import Keys
from cutwater.vectors.layouts import Columns, Layout

__all__ = ["BatchOutcome", "Emit", "Layouts", "Vectorised", "run_batch"]

Output = TypeVar("Output")


@dataclass(frozen=True)
class Emit(Generic[Output]):
    """Outputs that are not one for each event.

    >>> import numpy as np
    >>> Emit(np.array([0, 0, 2]), np.array([1.5, 2.5, 3.5])).rows.tolist()
    [0, 0, 2]
    """

    rows: Any
    """For each output the place of the event that causes it, ascending, a place as often as there
    are outputs of it; or an array of bools that says which events cause one."""
    outputs: Output
    """As many as there are rows; with an array of bools, one for each event will do as well."""


@dataclass(frozen=True)
class Layouts:
    """How states, events and outputs of a task are arrays."""

    state: Layout
    event: Layout
    output: Layout


class Vectorised(Protocol):
    """What there is to know of a vectorised task to call it."""

    @property
    def vector(self) -> Callable[[Any, Any, Keys], Any]:
        """The user's function."""

    @property
    def name(self) -> str:
        """How messages name it."""


@dataclass(frozen=True)
class BatchOutcome:
    """What a batch leads to. The arrays may be those that were given, and are not to be changed."""

    states: Columns
    """For each key its state after the batch."""
    rows: Array | None
    """For each output the event that causes it, ascending; None: one for each event, in order."""
    outputs: Columns | None
    """None: there are none."""
    gone: Array | None
    """For each key whether it has no state any more; None: all have."""


def run_batch(
    task: Vectorised,
    states: Mapping[str, Array],
    events: Mapping[str, Array],
    keys: Keys,
    layouts: Layouts,
) -> BatchOutcome:
    """Call a vectorised function and make sure of its result, or say what is wrong with it.

    The function is given arrays that cannot be written to.
    """
    state = layouts.state.record(_read_only(states))
    event = layouts.event.record(_read_only(events))
    try:
        result = task.vector(state, event, keys)
    except ValueError as error:
        if "read-only" in str(error):
            raise _changes_arrays(task.name) from error
        raise
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise _not_a_result(task.name, result)
    after = layouts.state.split(result[0], keys.size, f"the state that '{task.name}' returned")
    rows, outputs = _outputs(task.name, result[1], len(keys), layouts.output)
    gone = _gone(task.name, result[2], keys.size) if len(result) == 3 else None
    return BatchOutcome(after, rows, outputs, gone)


def _read_only(columns: Mapping[str, Array]) -> Columns:
    given = {name: column.view() for name, column in columns.items()}
    for column in given.values():
        column.flags.writeable = False
    return given


def _outputs(
    name: str, outputs: Any, events: int, layout: Layout
) -> tuple[Array | None, Columns | None]:
    what = f"the output that '{name}' returned"
    if outputs is None:
        return None, None
    if not isinstance(outputs, Emit):
        return None, layout.split(outputs, events, what)
    rows = np.asarray(outputs.rows)
    if rows.dtype != bool:
        rows = _checked_rows(name, rows, events)
        return rows, layout.split(outputs.outputs, len(rows), what)
    if rows.shape != (events,):
        raise _wrong_rows(name, f"{rows.size} bools", f"there is one for each of {events} events")
    mask, rows = rows, np.flatnonzero(rows)
    if _length(outputs.outputs, layout) != events:
        return rows, layout.split(outputs.outputs, len(rows), what)
    columns = layout.split(outputs.outputs, events, what)
    return rows, {name: column[mask] for name, column in columns.items()}


def _length(outputs: Any, layout: Layout) -> int | None:
    """How many outputs a record of arrays stands for, if it says so."""
    fields = [getattr(outputs, n, None) for n in layout.columns] if layout.is_record else [outputs]
    return next((len(f) for f in fields if isinstance(f, (np.ndarray, list)) and np.ndim(f)), None)


def _checked_rows(name: str, rows: Array, events: int) -> Array:
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
        said = f"an array of {rows.dtype}" if rows.ndim == 1 else f"the shape {rows.shape}"
        raise _wrong_rows(name, said, "rows are places of events, or one bool for each event")
    rows = rows.astype(np.int64, copy=False)
    outside = rows[(rows < 0) | (rows >= events)]
    if outside.size:
        raise _wrong_rows(
            name, f"row {outside[0]}", f"the batch has {events} events, counted from 0"
        )
    falls = np.flatnonzero(rows[1:] < rows[:-1])
    if falls.size:
        first = int(falls[0])
        said = f"row {rows[first + 1]} after row {rows[first]}"
        raise _wrong_rows(name, said, "rows ascend, as outputs come in the order of their causes")
    return rows


def _gone(name: str, gone: Any, keys: int) -> Array:
    array = np.asarray(gone)
    if array.dtype == bool and array.shape == (keys,):
        return array
    said = f"{array.size} elements of {array.dtype}"
    raise InputError(
        Problem(
            "vector-gone",
            f"'{name}' returned as third {said}; that says for each of {keys} keys whether its "
            "state goes, by an array of bools",
            "leave it out if all states stay",
        )
    )


def _wrong_rows(name: str, said: str, rule: str) -> InputError:
    return InputError(
        Problem(
            "vector-rows",
            f"'{name}' returned an Emit with {said}; {rule}",
            "for instance cw.Emit(np.flatnonzero(mask), outputs)",
        )
    )


def _not_a_result(name: str, result: Any) -> InputError:
    got = f"{len(result)} things" if isinstance(result, tuple) else f"a {type(result).__name__}"
    return InputError(
        Problem(
            "vector-result",
            f"'{name}' returned {got}; it returns a state and outputs, both as arrays, and third, "
            "if keys go, which",
            "return state, None  where there is nothing to emit",
        )
    )


def _changes_arrays(name: str) -> InputError:
    return InputError(
        Problem(
            "vector-changed",
            f"'{name}' changes an array that it was given; a task changes nothing in place",
            "make a new array, or a copy first: values.copy()",
        )
    )
