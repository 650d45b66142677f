"""One call of a vectorised function: its arguments, and the validation of its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from cutwater.errors import InputError, Problem
from cutwater.vectors.arrays import Array, np
from cutwater.vectors.keys import Keys
from cutwater.vectors.layouts import Columns, Layout

__all__ = ["BatchOutcome", "Emit", "Layouts", "Vectorised", "run_batch"]

_Output = TypeVar("_Output")


@dataclass(frozen=True)
class Emit(Generic[_Output]):
    """The outputs of a batch if they are not exactly one per event.

    >>> import numpy as np
    >>> Emit(np.array([0, 0, 2]), np.array([1.5, 2.5, 3.5])).rows.tolist()
    [0, 0, 2]
    """

    rows: Any
    """For each output the index of the event that causes it, ascending and repeated for an event
    with several outputs; or a boolean mask of the events that cause one output each."""
    outputs: _Output
    """One per row; with a boolean mask, one per event works as well."""


@dataclass(frozen=True)
class Layouts:
    """The column layouts of a task's states, events and outputs."""

    state: Layout
    event: Layout
    output: Layout


class Vectorised(Protocol):
    """What a call needs of a vectorised task."""

    @property
    def vector(self) -> Callable[[Any, Any, Keys], Any]:
        """The user's function."""

    @property
    def name(self) -> str:
        """Its name in error messages."""


@dataclass(frozen=True)
class BatchOutcome:
    """The outcome of a batch. Its arrays may alias the inputs: do not change them."""

    states: Columns
    """The state of each key after the batch."""
    rows: Array | None
    """For each output the index of its event, ascending; None: one output per event, in order."""
    outputs: Columns | None
    """None: no outputs."""
    deleted: Array | None
    """For each key whether its state was deleted; None: no state was."""


def run_batch(
    task: Vectorised,
    states: Mapping[str, Array],
    events: Mapping[str, Array],
    keys: Keys,
    layouts: Layouts,
    *,
    is_watched: bool = False,
) -> BatchOutcome:
    """Call a vectorised function and validate its result; `InputError` if it is not valid.

    The function gets read-only arrays. A few numpy functions write to them all the same
    (``np.add.at``); with `is_watched` such a write is detected, at the cost of a copy.
    """
    before = _bytes_of(states, events) if is_watched else []
    state = layouts.state.record(_read_only(states))
    event = layouts.event.record(_read_only(events))
    result = _called(task, state, event, keys)
    if is_watched and _bytes_of(states, events) != before:
        raise _changes_arrays(task.name)
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise _not_a_result(task.name, result)
    after = layouts.state.split(result[0], keys.size, f"the state that '{task.name}' returned")
    rows, outputs = _outputs(task.name, result[1], len(keys), layouts.output)
    deleted = _deleted(task.name, result[2], keys.size) if len(result) == 3 else None
    return BatchOutcome(after, rows, outputs, deleted)


def _called(task: Vectorised, state: Any, event: Any, keys: Keys) -> Any:
    try:
        return task.vector(state, event, keys)
    except InputError as error:
        named = [replace(p, message=f"'{task.name}': {p.message}") for p in error.problems]
        raise InputError(named) from None
    except ValueError as error:
        if "read-only" in str(error):  # numpy's message for such a write
            raise _changes_arrays(task.name) from error
        raise


def _read_only(columns: Mapping[str, Array]) -> Columns:
    views = {name: column.view() for name, column in columns.items()}
    for column in views.values():
        column.flags.writeable = False
    return views


def _bytes_of(*records: Mapping[str, Array]) -> list[bytes]:
    """The content of arrays; for object columns, the identities of the objects."""
    return [column.tobytes() for columns in records for column in columns.values()]


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
    """The number of outputs in a record of arrays; None if it has no array with a length."""
    fields = [getattr(outputs, n, None) for n in layout.columns] if layout.is_record else [outputs]
    return next((len(f) for f in fields if isinstance(f, (np.ndarray, list)) and np.ndim(f)), None)


def _checked_rows(name: str, rows: Array, events: int) -> Array:
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
        message = f"an array of {rows.dtype}" if rows.ndim == 1 else f"the shape {rows.shape}"
        raise _wrong_rows(name, message, "rows are positions of events, or one bool for each event")
    rows = rows.astype(np.int64, copy=False)
    outside = rows[(rows < 0) | (rows >= events)]
    if outside.size:
        raise _wrong_rows(
            name, f"row {outside[0]}", f"the batch has {events} events, counted from 0"
        )
    falls = np.flatnonzero(rows[1:] < rows[:-1])
    if falls.size:
        first = int(falls[0])
        message = f"row {rows[first + 1]} after row {rows[first]}"
        raise _wrong_rows(
            name, message, "rows ascend, as outputs come in the order of their causes"
        )
    return rows


def _deleted(name: str, deleted: Any, keys: int) -> Array:
    array = np.asarray(deleted)
    if array.dtype == bool and array.shape == (keys,):
        return array
    message = f"{array.size} elements of {array.dtype}"
    raise InputError(
        Problem(
            "vector-gone",
            f"the third value that '{name}' returned has {message}; it is an array with a bool for "
            f"each of {keys} keys: whether its state is deleted",
            "leave it out if no state is deleted",
        )
    )


def _wrong_rows(name: str, message: str, rule: str) -> InputError:
    return InputError(
        Problem(
            "vector-rows",
            f"'{name}' returned an Emit with {message}; {rule}",
            "for instance cw.Emit(np.flatnonzero(mask), outputs)",
        )
    )


def _not_a_result(name: str, result: Any) -> InputError:
    alone = "None" if result is None else f"a {type(result).__name__}"
    got = f"{len(result)} things" if isinstance(result, tuple) else alone
    return InputError(
        Problem(
            "vector-result",
            f"'{name}' returned {got}; it returns a state and outputs, both as arrays, and third, "
            "if keys lose their state, which",
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
