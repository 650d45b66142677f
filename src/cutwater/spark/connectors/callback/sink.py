"""The callable sink: a function of the user's is given the rows, inside the tasks.

::

    checkpoint/
      calls/<sink>/taken.json      the newest generation
      calls/<sink>/begun.json      the newest epoch in which a call may have begun; in real time
                                   begun-<n>.json for each lane, since tasks do not wait there
      calls/<sink>/lane-<n>.json   the newest epoch that the function has returned from, and rows

What the function does with the rows is its own affair, and is not undone. The notes in the
checkpoint keep what has returned from being called again, and earlier generations from calling.
That a call begins is noted before the fence is asked: who fences this run and then looks finds the
note, or the call does not happen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from cutwater.errors import CutwaterError, Problem, StepError, many
from cutwater.spark.connectors.base.sink import (
    AT_LEAST_ONCE,
    Claim,
    Guarantee,
    Lane,
    Receipt,
    Release,
    Sink,
    fenced,
    taken,
)
from cutwater.spark.storage.durable import make_folder, read_json, write_json

__all__ = ["Call"]


@dataclass(frozen=True)
class Call(Sink):
    """A function ``f(epoch, lane, rows)`` that is called where the rows are."""

    function: Any
    """Is given the rows of one lane of one epoch, in order; what it returns is not looked at."""
    takes: Literal["records"] = field(default="records", init=False)
    release: Release = field(default="early", init=False)

    def guarantee(self) -> Guarantee:
        """What the function may rely on."""
        return Guarantee(
            AT_LEAST_ONCE,
            f"calls {_named(self.function)}, and calls it again with the same rows if a failure "
            "comes before its return is noted",
        )

    @property
    def place(self) -> str:
        """Nowhere: the notes are kept in the checkpoint."""
        return ""

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """What cannot be called with an epoch, a lane and rows."""
        if not callable(self.function):
            yield Problem(
                "no-function",
                f"sink '{name}' is bound to {self.function!r}, which cannot be called",
                "pass a function: call(send), where def send(epoch, lane, rows)",
            )
        elif not _takes_three(self.function):
            yield Problem(
                "no-function",
                f"sink '{name}' calls {_named(self.function)} with an epoch, a lane and a list of "
                "rows, which it does not take",
                f"define it so: def {getattr(self.function, '__name__', 'send')}"
                "(epoch, lane, rows)",
            )

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """The notes belong to the checkpoint they lie in."""
        return []

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """Not asked for: the notes lie in the checkpoint, and are restored with it."""
        return None

    def generation(self, name: str) -> int:
        """The checkpoint itself knows its generation."""
        return 0

    def take(self, claim: Claim) -> None:
        """Note this generation: earlier ones call no more."""
        make_folder(_notes(claim))
        newest = _generation(claim)
        if newest is not None and newest > claim.generation:
            raise taken(f"the function of sink '{claim.sink}'", claim, newest)
        write_json(_notes(claim) / "taken.json", {"generation": claim.generation})

    def write(self, claim: Claim, epoch: int, record: Any, lanes: Sequence[Lane]) -> Receipt:
        """Call the function for each lane that it has not returned from in this epoch."""
        for lane in lanes:
            path = _notes(claim) / f"lane-{lane.label}.json"
            note = read_json(path, "the note") or {"epoch": -1, "rows": 0}
            if note["epoch"] < epoch:
                _note_begin(claim, epoch, lane)
            _check_fence(claim, epoch)
            if note["epoch"] < epoch:
                self._call(claim.sink, epoch, lane)
                _check_fence(claim, epoch)
                write_json(path, {"epoch": epoch, "rows": note["rows"] + len(lane.orders)})
        return Receipt(claim.sink)

    def _call(self, sink: str, epoch: int, lane: Lane) -> None:
        try:
            self.function(epoch, lane.label, list(lane.values))
        except CutwaterError:
            raise
        except (Exception, SystemExit) as error:
            rows = many(len(lane.orders), "row")
            raise StepError(
                Problem(
                    "call-failed",
                    f"sink '{sink}': {_named(self.function)}, called with {rows} of lane "
                    f"{lane.label} in epoch {epoch}, raised {type(error).__name__}: {error}",
                    "correct the function and run again with --finish-with-this-flow: it is called "
                    "again with the same rows",
                )
            ) from error

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Nothing is left to do."""

    def shown(self, claim: Claim, epoch: int) -> str | None:
        """What a function did that was called is not known, so a call counts from its begin."""
        if _begun(claim) < epoch:
            return None
        notes = (read_json(path, "the note") for path in _notes(claim).glob("lane-*.json"))
        returned = sum(1 for note in notes if note and note["epoch"] >= epoch)
        return f"calls of {_named(self.function)}, which returned for {many(returned, 'bucket')}"

    def rows(self, claim: Claim) -> int:
        """How many rows the function was given and has returned from."""
        notes = (read_json(path, "the note") for path in _notes(claim).glob("lane-*.json"))
        return sum(note["rows"] for note in notes if note)


def _notes(claim: Claim) -> Path:
    return Path(claim.checkpoint) / "calls" / claim.sink


def _begun(claim: Claim) -> int:
    """The newest epoch in which a call may have begun; -1 if none did."""
    return max(map(_begun_by, _notes(claim).glob("begun*.json")), default=-1)


def _begun_by(path: Path) -> int:
    note = read_json(path, "the note")
    return int(note["epoch"]) if note else -1


def _note_begin(claim: Claim, epoch: int, lane: Lane) -> None:
    """Note it once for an epoch, if tasks go together: they note the same. Else for each lane."""
    name = "begun.json" if claim.is_in_lockstep else f"begun-{lane.label}.json"
    if _begun_by(_notes(claim) / name) < epoch:
        write_json(_notes(claim) / name, {"epoch": epoch})


def _check_fence(claim: Claim, epoch: int) -> None:
    newest = _generation(claim)
    if newest != claim.generation:
        raise fenced(epoch, f"the function of sink '{claim.sink}'", claim, newest)


def _generation(claim: Claim) -> int | None:
    """The newest generation that took the sink; None if none did."""
    taken = read_json(_notes(claim) / "taken.json", "the note")
    return int(taken["generation"]) if taken else None


def _takes_three(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(0, 0, [])
    except TypeError:
        return False
    except ValueError:  # a builtin that does not say what it takes
        return True
    return True


def _named(function: Any) -> str:
    """The function by its name and where it is defined."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else name
