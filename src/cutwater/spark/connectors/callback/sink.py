"""The callback sink: tasks call a user's function with the rows.

::

    checkpoint/
      calls/<sink>/taken.json      the newest generation
      calls/<sink>/begun.json      the newest epoch in which a call may have begun; in real time
                                   begun-<n>.json for each bucket, since tasks do not wait there
      calls/<sink>/bucket-<n>.json   the newest epoch that the function returned from, and rows

What the function does with the rows cannot be undone. With the notes in the checkpoint no call that
returned is repeated, and a fenced generation makes no call. The beginning of a call is noted before
the fence is checked: a newer generation that has fenced this run either finds the note, or the call
does not happen.
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
    BucketRows,
    Claim,
    Guarantee,
    Receipt,
    Release,
    SinkConnector,
    already_claimed,
    fenced,
)
from cutwater.spark.storage.durable import make_folder, read_json, write_json

__all__ = ["Callback"]


@dataclass(frozen=True)
class Callback(SinkConnector):
    """Calls a function ``f(epoch, bucket, rows)`` in the tasks."""

    function: Any
    """Called with the rows of one bucket and epoch, in order; its result is ignored."""
    accepts: Literal["records"] = field(default="records", init=False)
    release: Release = field(default="early", init=False)

    def guarantee(self) -> Guarantee:
        """At-least-once: a failure before the return is noted repeats the call."""
        return Guarantee(
            AT_LEAST_ONCE,
            f"calls {_named(self.function)}, and calls it again with the same rows if a failure "
            "comes before its return is noted",
        )

    @property
    def location(self) -> str:
        """Empty: the notes are in the checkpoint."""
        return ""

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """Why the function cannot be called with an epoch, a bucket and rows."""
        if not callable(self.function):
            yield Problem(
                "no-function",
                f"sink '{name}' is bound to {self.function!r}, which cannot be called",
                "pass a function: call(send), where def send(epoch, bucket, rows)",
            )
        elif not _takes_three(self.function):
            yield Problem(
                "no-function",
                f"sink '{name}' calls {_named(self.function)} with an epoch, a bucket and a list "
                "of rows, which it does not accept",
                f"define it as def {getattr(self.function, '__name__', 'send')}"
                "(epoch, bucket, rows)",
            )

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """No problems: the notes are part of the checkpoint."""
        return []

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """None: the notes are part of the checkpoint, and are restored with it."""
        return None

    def generation(self, name: str) -> int:
        """0: the checkpoint itself knows its generation."""
        return 0

    def claim(self, claim: Claim) -> None:
        """Note this generation, which fences earlier ones."""
        make_folder(_notes(claim))
        newest = _generation(claim)
        if newest is not None and newest > claim.generation:
            raise already_claimed(f"the function of sink '{claim.sink}'", claim, newest)
        write_json(_notes(claim) / "taken.json", {"generation": claim.generation})

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Receipt:
        """Call the function for each bucket that it has not returned from in this epoch."""
        for bucket in buckets:
            path = _notes(claim) / f"bucket-{bucket.label}.json"
            note = read_json(path, "the note") or {"epoch": -1, "rows": 0}
            if note["epoch"] < epoch:
                _note_begin(claim, epoch, bucket)
            _check_fence(claim, epoch)
            if note["epoch"] < epoch:
                self._call(claim.sink, epoch, bucket)
                _check_fence(claim, epoch)
                write_json(path, {"epoch": epoch, "rows": note["rows"] + len(bucket.orders)})
        return Receipt(claim.sink)

    def _call(self, sink: str, epoch: int, bucket: BucketRows) -> None:
        try:
            self.function(epoch, bucket.label, list(bucket.values))
        except CutwaterError:
            raise
        except (Exception, SystemExit) as error:
            rows = many(len(bucket.orders), "row")
            raise StepError(
                Problem(
                    "call-failed",
                    f"sink '{sink}': {_named(self.function)}, called with {rows} of bucket "
                    f"{bucket.label} in epoch {epoch}, raised {type(error).__name__}: {error}",
                    "correct the function and run again with --finish-with-this-flow: it is called "
                    "again with the same rows",
                )
            ) from error

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Does nothing: the calls were made in the tasks."""

    def released(self, claim: Claim, epoch: int) -> str | None:
        """How far the calls of an epoch came, as a phrase; None if none has begun.

        The effects of a call are unknown, so it counts as released once it has begun.
        """
        if _begun(claim) < epoch:
            return None
        notes = (read_json(path, "the note") for path in _notes(claim).glob("bucket-*.json"))
        returned = sum(1 for note in notes if note and note["epoch"] >= epoch)
        return f"calls of {_named(self.function)}, which returned for {many(returned, 'bucket')}"

    def row_count(self, claim: Claim) -> int:
        """The number of rows in calls that have returned."""
        notes = (read_json(path, "the note") for path in _notes(claim).glob("bucket-*.json"))
        return sum(note["rows"] for note in notes if note)


def _notes(claim: Claim) -> Path:
    return Path(claim.checkpoint) / "calls" / claim.sink


def _begun(claim: Claim) -> int:
    """The newest epoch in which a call may have begun; -1 if none has."""
    return max(map(_begun_by, _notes(claim).glob("begun*.json")), default=-1)


def _begun_by(path: Path) -> int:
    note = read_json(path, "the note")
    return int(note["epoch"]) if note else -1


def _note_begin(claim: Claim, epoch: int, bucket: BucketRows) -> None:
    """Note that a call begins: once per epoch if epochs are bulk-synchronous, else per bucket."""
    name = "begun.json" if claim.is_bulk_synchronous else f"begun-{bucket.label}.json"
    if _begun_by(_notes(claim) / name) < epoch:
        write_json(_notes(claim) / name, {"epoch": epoch})


def _check_fence(claim: Claim, epoch: int) -> None:
    newest = _generation(claim)
    if newest != claim.generation:
        raise fenced(epoch, f"the function of sink '{claim.sink}'", claim, newest)


def _generation(claim: Claim) -> int | None:
    """The newest generation that claimed the sink; None if none has."""
    taken = read_json(_notes(claim) / "taken.json", "the note")
    return int(taken["generation"]) if taken else None


def _takes_three(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(0, 0, [])
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def _named(function: Any) -> str:
    """The name of a function, with the file and line where it is defined."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else name
