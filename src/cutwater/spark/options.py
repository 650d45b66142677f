"""The options of a run: declared once for Python, TOML and the command line.

Each key of `RunOptions` is an argument of `run`, a key of ``[run]`` in TOML and an option of
``cutwater run``. Its `Option` holds the default and the text of ``--help``; the docstring below
it goes into the reference.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from cutwater.errors import Problem, RefusedError, did_you_mean

__all__ = ["Option", "ProcessOptions", "RunOptions", "declared", "settled"]

_RESTARTING = "After a crash or a change"
_REAL_TIME = "In real time"
_OPERATING = "Monitoring and stopping"


@dataclass(frozen=True)
class Option:
    """What an option declares besides its type."""

    default: Any
    help: str
    """One line for ``--help``."""
    least: float | None = None
    """The smallest valid number."""
    above: float | None = None
    """The value must be a number of seconds greater than this."""
    example: str = ""
    """A valid value to suggest in place of a wrong one, and what it means."""
    group: str | None = None
    """Under which heading ``--help`` lists it; None: with the main ones."""
    is_for_one_start: bool = False
    """Does it answer what one start has found? A configuration file outlives that start, so it has
    no such key."""


class RunOptions(TypedDict, total=False):
    """The options of a run."""

    mode: Annotated[
        Literal["microbatch", "realtime"],
        Option(
            "microbatch",
            "'microbatch' (default), or 'realtime': releases rows within milliseconds",
        ),
    ]
    """The engine. ``"microbatch"``: epochs of about a second; ``"realtime"``: ticks of about ten
    milliseconds, whose rows are released at once, to PostgreSQL, Kafka and functions. A
    checkpoint belongs to one engine."""
    until: Annotated[
        Literal["caught-up", "stopped"],
        Option(
            "caught-up",
            "'caught-up' (default): read what is there now; 'stopped': run until stopped",
        ),
    ]
    """``"caught-up"``: stop once all input available at the start is read; ``"stopped"``: run until
    the query is stopped."""
    close: Annotated[
        bool, Option(False, "Once all input is read, end it and emit what was held back")
    ]
    """Once all input is read, end it: every step emits what it held back, as at the end of
    `simulate`, in an epoch of its own. After that the checkpoint is closed for good."""
    on_bad_record: Annotated[
        Literal["fail", "skip"],
        Option("fail", "'fail' (default), or 'skip': count them and write them to a side output"),
    ]
    """``"fail"``: a record that cannot be decoded fails the run; ``"skip"``: such records are
    counted and kept as dead letters under ``checkpoint/bad-records``."""
    forget: Annotated[
        Collection[str],
        Option((), "A removed step whose state may be dropped; once for each", group=_RESTARTING),
    ]
    """Steps that the flow no longer has, and whose states in the checkpoint may be lost. Their
    names cannot be reused in that checkpoint."""
    adopt: Annotated[
        bool,
        Option(
            False,
            "Append to sinks that belong to another checkpoint",
            is_for_one_start=True,
            group=_RESTARTING,
        ),
    ]
    """Take over sinks that belong to another checkpoint, and append to their output; refused
    otherwise. Records that are read again are written again. Runs of the other checkpoint are
    fenced."""
    fresh: Annotated[
        bool,
        Option(
            False,
            "Delete the output of sinks that belong to another checkpoint",
            is_for_one_start=True,
            group=_RESTARTING,
        ),
    ]
    """Take over sinks that belong to another checkpoint, and delete their output; refused
    otherwise."""
    accept_gap: Annotated[
        Collection[str],
        Option(
            (),
            "A sink whose output lost rows, to continue without them; once for each",
            is_for_one_start=True,
            group=_RESTARTING,
        ),
    ]
    """Sinks whose output lacks rows that this checkpoint has released, because it was restored from
    a backup, emptied or replaced: continue without these rows."""
    finish_with_this_flow: Annotated[
        bool,
        Option(
            False,
            "Finish an epoch that another version of the flow has released in part",
            group=_RESTARTING,
        ),
    ]
    """Let this flow finish an epoch that another flow began and has released in part;
    refused otherwise. Before it starts, `notify` receives what each sink has of the other flow."""
    partitions: Annotated[
        int | None,
        Option(None, "Partitions of a new state: 1, 2, 4, 8 or 16; default: one per core"),
    ]
    """The number of state partitions of a new checkpoint, a divisor of 16. Default: the session's
    ``spark.sql.shuffle.partitions`` if that divides 16, else one per core as far as that goes. A
    checkpoint keeps its number; `rescale` changes it."""
    require: Annotated[
        Literal["exactly-once", "at-least-once"] | None,
        Option(None, "'exactly-once': do not start if a sink guarantees less"),
    ]
    """``"exactly-once"``: refuse to start if the end-to-end guarantee of a sink is weaker."""
    master: Annotated[str, Option("local[*]", "Where Spark runs; default: local[*]")]
    """The master of the embedded session."""
    fsync: Annotated[
        bool,
        Option(
            True,
            "Do not sync Spark's files; after a power loss a start may be refused",
            group=_RESTARTING,
        ),
    ]
    """Sync Spark's checkpoint files before each epoch, so that the same command recovers after a
    power loss. Without it an epoch is some milliseconds shorter; after a power loss, and only then,
    a start may be refused until the checkpoint is restored from a backup."""
    hung_after: Annotated[
        float,
        Option(
            1800.0,
            "Seconds without progress after which the run is ended; default: 1800",
            above=0,
            example="1800, half an hour; infinity waits forever",
            group=_OPERATING,
        ),
    ]
    """The watchdog's timeout: end the run if no task finished and nothing was planned for this many
    seconds, because a function does not return or a process is paused. The embedded session is
    killed then; of a session that was passed in, only the query is stopped. ``float("inf")``: wait
    forever."""
    snapshot_interval: Annotated[
        float,
        Option(
            5.0,
            "Seconds between snapshots, which delay no row; default: 5",
            above=0,
            example="5, which is what a restart replays",
            group=_REAL_TIME,
        ),
    ]
    """Real time only: seconds between snapshots of the state. No row waits for a snapshot; a
    restart replays what came since the last one."""
    readers: Annotated[
        int,
        Option(
            1,
            "Tasks that read each source and share its partitions; default: 1",
            least=1,
            example="1, or 2 for a topic whose records one task cannot decode in time",
            group=_REAL_TIME,
        ),
    ]
    """Real time only: how many tasks read each source. Its partitions or files are assigned to them
    by number, including those added later. Each task occupies a Spark slot."""
    batch_interval: Annotated[
        float,
        Option(
            600.0,
            "Length of a Spark batch in seconds; default: 600",
            least=5,
            example="600, ten minutes",
            group=_REAL_TIME,
        ),
    ]
    """Real time only: the length of a Spark batch in seconds, at least 5. Output pauses briefly at
    its end."""


class ProcessOptions(TypedDict, total=False):
    """What the process of ``cutwater run`` does besides the run; in Python, callbacks do it."""

    log: Annotated[
        str | None, Option(None, "A file to append a JSON object per epoch to", group=_OPERATING)
    ]
    metrics_port: Annotated[
        int | None,
        Option(None, "Serve metrics for Prometheus on this port", least=0, group=_OPERATING),
    ]
    metrics_host: Annotated[
        str,
        Option("127.0.0.1", "The address to serve them on; default: 127.0.0.1", group=_OPERATING),
    ]
    stop_timeout: Annotated[
        float,
        Option(
            240.0,
            "Seconds that the last epoch may take after a stop is requested; default: 240",
            least=0,
            group=_OPERATING,
        ),
    ]


def declared(options: type) -> dict[str, tuple[Any, Option]]:
    """The type and `Option` of each key, in the order of declaration."""
    found = {}
    for name, hint in typing.get_type_hints(options, include_extras=True).items():
        tp, option = typing.get_args(hint)
        found[name] = (tp, option)
    return found


def settled(given: Mapping[str, Any]) -> RunOptions:
    """All of `RunOptions`, with defaults filled in; raises listing every problem."""
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
    hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
    return Problem("unknown-setting", f"'{name}' is not an option of a run", hint)


def _problems(name: str, value: Any, tp: Any, option: Option) -> Iterator[Problem]:
    choices = _choices(tp)
    if choices and value not in choices:
        message = " or ".join(repr(choice) for choice in choices if choice is not None)
        yield Problem(
            "unknown-choice", f"{name} is {value!r}; it must be {message}", f"use {message}"
        )
    elif tp is float and not _is_long_enough(value, option):
        bound = f"of at least {option.least:g}" if option.least else f"above {option.above:g}"
        message = f"{name} is {value!r}; it must be a number of seconds {bound}"
        yield Problem("not-seconds", message, f"for example {option.example}")
    elif tp is int and not _is_count(value, option):
        message = f"{name} is {value!r}; it must be a whole number of at least {option.least:g}"
        yield Problem("not-a-count", message, f"for example {option.example}")


def _is_long_enough(value: Any, option: Option) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (option.above is not None and not value > option.above):
        return False
    return option.least is None or value >= option.least


def _is_count(value: Any, option: Option) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and value >= (option.least or 0)


def _choices(tp: Any) -> tuple[Any, ...]:
    """The values that a type with literal choices allows; empty for other types."""
    if typing.get_origin(tp) is Literal:
        return typing.get_args(tp)
    inner = [_choices(each) for each in typing.get_args(tp) if each is not type(None)]
    return (*inner[0], None) if inner and inner[0] else ()
