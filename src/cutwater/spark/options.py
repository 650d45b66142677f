"""How a flow is run: one declaration for Python, for a file and for the command line.

Each key of `RunOptions` is an argument of `run`, a key of ``[run]`` in TOML and an option of
``cutwater run``. Its `Option` holds the default and what ``--help`` says; the text below it is
for readers of the reference.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from cutwater.errors import Problem, RefusedError, did_you_mean

__all__ = ["Option", "ProcessOptions", "RunOptions", "declared", "settled"]


@dataclass(frozen=True)
class Option:
    """What a key has beside its type."""

    default: Any
    help: str
    """A line for the command line."""
    least: float | None = None
    """The smallest number that it may be."""
    above: float | None = None
    """It must be a number of seconds greater than this."""
    example: str = ""
    """A value that may stand instead of a wrong one, and what it means."""
    is_for_one_start: bool = False
    """Is it a decision about what was found at one start? A file, which stays, has no such key."""


class RunOptions(TypedDict, total=False):
    """How a flow is run."""

    mode: Annotated[
        Literal["microbatch", "realtime"],
        Option(
            "microbatch", "'microbatch' (default), or 'realtime': rows leave within milliseconds"
        ),
    ]
    """The engine. ``"microbatch"``: epochs of a second or so; ``"realtime"``: ticks of about ten
    milliseconds, whose rows leave at once, to PostgreSQL, Kafka and functions. A checkpoint belongs
    to one of them."""
    until: Annotated[
        Literal["caught-up", "stopped"],
        Option("caught-up", "'caught-up' (default): all that is there now; 'stopped': for ever"),
    ]
    """``"caught-up"``: stop when all that was there is read; ``"stopped"``: run until the query is
    stopped."""
    close: Annotated[
        bool, Option(False, "When all is read, end the input and show what was held back")
    ]
    """Once all is read, end the input: every step shows what it held back, as at the end of
    `simulate`, in an epoch of its own. After that the checkpoint is closed for good."""
    on_bad_record: Annotated[
        Literal["fail", "skip"],
        Option("fail", "'fail' (default), or 'skip': count them and keep them aside"),
    ]
    """``"fail"``: a line that is no record ends the run with a sentence; ``"skip"``: such lines are
    counted and kept under ``checkpoint/bad-records``."""
    forget: Annotated[
        Collection[str],
        Option((), "A step that is gone and whose state may be lost; once for each"),
    ]
    """Steps that the flow no longer has, and whose states in the checkpoint may be lost. Their
    names cannot be used again there."""
    adopt: Annotated[
        bool,
        Option(
            False,
            "Go on behind what sinks show that belong to another checkpoint",
            is_for_one_start=True,
        ),
    ]
    """Go on behind what sinks show that belong to another checkpoint, which is refused otherwise.
    What is read again is shown again. A run of the other checkpoint can write no more."""
    fresh: Annotated[
        bool,
        Option(
            False, "Delete what sinks show that belong to another checkpoint", is_for_one_start=True
        ),
    ]
    """Delete what sinks show that belong to another checkpoint, which is refused otherwise."""
    accept_gap: Annotated[
        Collection[str],
        Option(
            (),
            "A sink whose output lost rows, and goes on without them; once for each",
            is_for_one_start=True,
        ),
    ]
    """Sinks whose outputs lack rows that this checkpoint has shown, since they were restored from
    a backup, emptied, or are others now: go on without these rows."""
    finish_with_this_flow: Annotated[
        bool,
        Option(
            False,
            "Finish an epoch of which another flow has shown something; says what is mixed",
        ),
    ]
    """Let this flow finish an epoch that another one began and of which something was shown, which
    is refused without it. `tell` is told before what each sink has of the other flow."""
    partitions: Annotated[
        int | None,
        Option(None, "Partitions of a new state: 1, 2, 4, 8 or 16; default: the cores"),
    ]
    """How many partitions the state of a new checkpoint lies in, a divisor of 16; without it, the
    session's ``spark.sql.shuffle.partitions`` if that divides 16, else one for each core as far as
    that goes. A checkpoint keeps its number; `rescale` changes it."""
    require: Annotated[
        Literal["exactly-once", "at-least-once"] | None,
        Option(None, "'exactly-once': do not start if a sink has less than that"),
    ]
    """``"exactly-once"``: refuse to start if a sink has less than that from end to end."""
    master: Annotated[str, Option("local[*]", "Where Spark runs; default: local[*]")]
    """The master of the embedded session."""
    fsync: Annotated[
        bool, Option(True, "Do not sync Spark's files: a power loss may end in a refusal")
    ]
    """Sync Spark's checkpoint files before each epoch, so that after a power loss the same command
    goes on. Without it an epoch is some milliseconds shorter; after a power loss, and only then,
    a start may be refused until the checkpoint is restored from a backup."""
    hung_after: Annotated[
        float,
        Option(
            1800.0,
            "Seconds without any progress until the run is cut off; default: 1800",
            above=0,
            example="1800, half an hour; infinity waits for ever",
        ),
    ]
    """End the run if for so many seconds no task was finished and nothing was planned: a function
    does not return, or a process is paused. The embedded session is killed then; of one that was
    passed only the query is stopped. ``float("inf")``: wait for ever."""
    snapshot_interval: Annotated[
        float,
        Option(
            5.0,
            "In real time: seconds between snapshots, which no row waits for; default: 5",
            above=0,
            example="5, which is what a restart replays",
        ),
    ]
    """Real time only: how often states are stored, in seconds. No row waits for it; a restart
    replays what came since."""
    batch_interval: Annotated[
        float,
        Option(
            600.0,
            "In real time: seconds of a batch of Spark's; default: 600",
            least=5,
            example="600, ten minutes",
        ),
    ]
    """Real time only: how long a batch of Spark's is, in seconds, at least 5. At its end no rows
    leave for a moment."""


class ProcessOptions(TypedDict, total=False):
    """What the process of ``cutwater run`` does beside the run; Python has callbacks for it."""

    log: Annotated[str | None, Option(None, "A file to append to: a JSON object for each epoch")]
    metrics_port: Annotated[
        int | None, Option(None, "Serve metrics for Prometheus on this port", least=0)
    ]
    metrics_host: Annotated[
        str, Option("127.0.0.1", "The address to serve them on; default: 127.0.0.1")
    ]
    stop_timeout: Annotated[
        float,
        Option(
            240.0, "Seconds that an epoch may take once the run is to stop; default: 240", least=0
        ),
    ]


def declared(options: type) -> dict[str, tuple[Any, Option]]:
    """The type and the rest of each key, in the order of the declaration."""
    found = {}
    for name, hint in typing.get_type_hints(options, include_extras=True).items():
        tp, option = typing.get_args(hint)
        found[name] = (tp, option)
    return found


def settled(given: Mapping[str, Any]) -> RunOptions:
    """All of `RunOptions`: what is given, and defaults; raises with everything that is wrong."""
    known = declared(RunOptions)
    problems = [_unknown(name, known) for name in given if name not in known]
    options = {name: given.get(name, option.default) for name, (_, option) in known.items()}
    for name, (tp, option) in known.items():
        problems += _problems(name, options[name], tp, option)
    if options["adopt"] and options["fresh"]:
        problems.append(
            Problem(
                "adopt-and-fresh",
                "adopt and fresh are both given; adopt keeps what another checkpoint wrote, and "
                "fresh deletes it",
                "give one of the two",
            )
        )
    if problems:
        raise RefusedError(problems)
    return typing.cast(RunOptions, options)


def _unknown(name: str, known: Collection[str]) -> Problem:
    hint = did_you_mean(name, known) or f"there are: {', '.join(known)}"
    return Problem("unknown-setting", f"'{name}' is no option of a run", hint)


def _problems(name: str, value: Any, tp: Any, option: Option) -> Iterator[Problem]:
    choices = _choices(tp)
    if choices and value not in choices:
        said = " or ".join(repr(choice) for choice in choices if choice is not None)
        yield Problem("unknown-choice", f"{name} is {value!r}; it is {said}", f"use {said}")
    elif tp is float and not _is_long_enough(value, option):
        bound = f"of at least {option.least:g}" if option.least else f"above {option.above:g}"
        said = f"{name} is {value!r}; it is a number of seconds {bound}"
        yield Problem("not-seconds", said, f"for example {option.example}")


def _is_long_enough(value: Any, option: Option) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (option.above is not None and not value > option.above):
        return False
    return option.least is None or value >= option.least


def _choices(tp: Any) -> tuple[Any, ...]:
    """What a value may be, if that is a matter of choice."""
    if typing.get_origin(tp) is Literal:
        return typing.get_args(tp)
    inner = [_choices(each) for each in typing.get_args(tp) if each is not type(None)]
    return (*inner[0], None) if inner and inner[0] else ()
