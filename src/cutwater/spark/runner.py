"""Running a flow: check everything that can be checked, take the output, start one query."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cutwater.errors import FlowError, InputError, Problem, RunError, recover
from cutwater.flow import Flow
from cutwater.flow.fusing import Plan
from cutwater.flow.steps import Sink, Source
from cutwater.spark.checkpoint import Checkpoint, locked
from cutwater.spark.filelog import files_in
from cutwater.spark.folder import Folder
from cutwater.spark.identity import Identity, continued, differences, identity_of
from cutwater.spark.job import Job, JsonLines, spark_plan
from cutwater.spark.level import Level
from cutwater.spark.line_work import bad_records_sink, late_events_sink
from cutwater.spark.lines import JsonLinesSource
from cutwater.spark.rows import ROW_SCHEMA
from cutwater.spark.session import check_session, embedded_session
from cutwater.spark.support import check_support
from cutwater.spark.writer import SinksWriter

__all__ = [
    "BUCKETS",
    "LOCK_WAIT_SECONDS",
    "PARTITIONS",
    "Progress",
    "RunResult",
    "build_query",
    "run",
]

BUCKETS = 16
PARTITIONS = 2
LOCK_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Progress:
    """An epoch that was finished."""

    epoch: int
    duration_ms: int


@dataclass(frozen=True)
class RunResult:
    """What a run did."""

    flow: str
    generation: int
    """How many runs this checkpoint has had, this one included."""
    epochs: int
    """Epochs finished by this run."""
    next_epoch: int
    """The first epoch that is not in the checkpoint."""
    rows: dict[str, int]
    """Rows that readers of each sink see, from all runs."""
    bad_records: dict[str, int]
    """Bad records of each source that were kept aside, from all runs."""
    late: dict[str, int]
    """Late events of each source that has a watermark, kept aside, from all runs."""


def run(
    flow: Flow,
    spark: SparkSession | None = None,
    *,
    sources: Mapping[str, str | Path | JsonLines],
    sinks: Mapping[str, str | Path | Folder],
    checkpoint: str | Path,
    until: str = "caught-up",
    close: bool = False,
    on_bad_record: str = "fail",
    forget: Collection[str] = (),
    master: str = "local[*]",
    permute: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    tell: Callable[[str], None] = lambda _sentence: None,
) -> RunResult:
    """Run a flow exactly-once on Spark Structured Streaming, in one query.

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`, what Spark cannot run raises `RunError`.
    spark
        A session to run on; without one an embedded session is made and stopped.
    sources
        For each source a folder of JSON lines, or `json_lines` of one with settings.
    sinks
        For each sink a folder, in which every epoch appears at once and whole.
    checkpoint
        The folder that remembers how far the run is; a run that was killed goes on from it.
    until
        ``"caught-up"``: stop when all that was there is read; ``"stopped"``: run until the query
        is stopped.
    close
        Once all is read, end the input: every step shows what it held back, as at the end of
        `simulate`, in an epoch of its own. After that the checkpoint is closed for good.
    on_bad_record
        ``"fail"``: a line that is no record ends the run with a sentence; ``"skip"``: such
        lines are counted and kept under ``checkpoint/bad-records``.
    forget
        Steps that the flow no longer has, and whose states in the checkpoint may be lost. Their
        names cannot be used again there.
    """
    planned = spark_plan(flow)
    check_support(planned)
    _check_choices(until, on_bad_record)
    _check_close(close, until)
    bound_sources, bound_sinks = _bind(planned, sources, sinks)
    place = Checkpoint(Path(checkpoint).absolute())
    bound_sinks |= _asides(flow, place.root, is_skipping=on_bad_record == "skip")
    draft = Job(
        flow,
        bound_sources,
        bound_sinks,
        "",
        0,
        BUCKETS,
        str(place.root),
        skip_bad_records=on_bad_record == "skip",
        permute=permute,
    )
    draft.to_bytes()
    _agreed(place, draft, forget)
    _refuse_closed(place, close)
    for name, source in bound_sources.items():
        if not files_in(Path(source.path)):
            tell(f"source '{name}' is empty: {source.path} has no files")
    place.create()
    session = spark or embedded_session(
        place.root / "scratch", master=master, partitions=PARTITIONS
    )
    try:
        check_session(session, partitions=PARTITIONS)
        with locked(place, session, LOCK_WAIT_SECONDS, tell):
            _refuse_closed(place, close)
            job = _take(place, draft, forget, session)
            epochs = _drive(session, job, place, until, on_progress)
            if close:
                epochs += _close(session, job, place, on_progress)
            return _result(job, place, epochs)
    finally:
        if spark is None:
            session.stop()


def _asides(flow: Flow, root: Path, *, is_skipping: bool) -> dict[str, Folder]:
    """The sinks of what does not go through the flow: bad records and late events."""
    sinks = {}
    for source in (step for step in flow.steps if isinstance(step, Source)):
        if is_skipping:
            folder = Folder(str(root / "bad-records" / source.name))
            sinks[bad_records_sink(source.name)] = folder
        if source.watermark:
            folder = Folder(str(root / "late-events" / source.name))
            sinks[late_events_sink(source.name)] = folder
    return sinks


def _check_choices(until: str, on_bad_record: str) -> None:
    problems = []
    for what, value, choices in (
        ("until", until, ("caught-up", "stopped")),
        ("on_bad_record", on_bad_record, ("fail", "skip")),
    ):
        if value not in choices:
            said = " or ".join(repr(choice) for choice in choices)
            problems.append(
                Problem("unknown-choice", f"{what} is {value!r}; it is {said}", f"use {said}")
            )
    if problems:
        raise RunError(problems)


def _check_close(close: bool, until: str) -> None:
    if close and until != "caught-up":
        raise RunError(
            Problem(
                "close-of-an-endless-run",
                f"close ends the input once all is read, but until is {until!r}",
                "leave close out, or use until='caught-up'",
            )
        )


def _refuse_closed(place: Checkpoint, close: bool) -> None:
    """A run goes on from a closed checkpoint only to close it, if a crash came before the end."""
    found = place.identity()
    if found is None or not (found.is_closed or (place.is_ending() and not close)):
        return
    raise RunError(
        Problem(
            "closed-checkpoint",
            f"the input of flow '{found.flow}' has ended: the checkpoint {place.root} was closed, "
            "and what comes after the end has no place",
            "start with a new checkpoint and an empty output"
            if found.is_closed
            else "run with close once more to finish the last epoch",
        )
    )


def _bind(
    planned: Plan,
    sources: Mapping[str, str | Path | JsonLines],
    sinks: Mapping[str, str | Path | Folder],
) -> tuple[dict[str, JsonLines], dict[str, Folder]]:
    problems: list[Problem] = []
    steps = planned.flow.steps
    for kind, bound, names in (
        ("source", sources, [s.name for s in steps if isinstance(s, Source)]),
        ("sink", sinks, [s.name for s in steps if isinstance(s, Sink)]),
    ):
        problems += _binding_problems(kind, list(bound), names)
    found = {
        name: value if isinstance(value, JsonLines) else JsonLines(str(value))
        for name, value in sources.items()
    }
    for name, source in found.items():
        if not Path(source.path).is_dir():
            problems.append(
                Problem(
                    "missing-folder",
                    f"source '{name}' reads {source.path}, which is no folder",
                    "create it, or correct the path",
                )
            )
        if source.max_bytes_per_epoch < 1:
            problems.append(
                Problem(
                    "no-progress",
                    f"source '{name}' may read {source.max_bytes_per_epoch} bytes in an epoch; "
                    "an epoch reads at least one",
                    "leave max_bytes_per_epoch out, or make it larger",
                )
            )
    places = {
        name: value if isinstance(value, Folder) else Folder(str(value))
        for name, value in sinks.items()
    }
    problems += _shared_folders(places)
    if problems:
        raise RunError(problems)
    return (
        {n: replace(s, path=str(Path(s.path).absolute())) for n, s in found.items()},
        {n: Folder(str(place.root.absolute())) for n, place in places.items()},
    )


def _shared_folders(sinks: Mapping[str, Folder]) -> list[Problem]:
    """An epoch is one directory, so the second of two sinks in a folder would be dropped."""
    problems = []
    first: dict[Path, str] = {}
    for name, sink in sinks.items():
        earlier = first.setdefault(sink.root.resolve(), name)
        if earlier != name:
            problems.append(
                Problem(
                    "shared-folder",
                    f"sinks '{earlier}' and '{name}' both go to {sink.root}; each sink has a "
                    "folder of its own",
                    f"choose another folder for '{name}'",
                )
            )
    return problems


def _binding_problems(kind: str, bound: list[str], names: list[str]) -> list[Problem]:
    problems = []
    for name in bound:
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"it has: {', '.join(names)}"
            problems.append(Problem(f"unknown-{kind}", f"'{name}' is no {kind} of this flow", hint))
    for name in names:
        if name not in bound:
            problems.append(
                Problem(
                    f"unbound-{kind}",
                    f"{kind} '{name}' is not bound to a folder; every {kind} needs one",
                    f"pass --{kind} {name}=FOLDER",
                )
            )
    return problems


def _agreed(place: Checkpoint, draft: Job, forget: Collection[str]) -> Identity:
    """The identity to go on with; what must not go together is refused before anything starts."""
    found, wanted = place.identity(), identity_of(draft, PARTITIONS)
    problems = differences(found or wanted, wanted, forget)
    query_id = found.query_id if found else None
    for name, sink in draft.sinks.items():
        problems += sink.check(name, query_id, place.next_epoch())
    if problems:
        raise RunError(problems)
    return continued(found, wanted, forget) if found else wanted


def _take(place: Checkpoint, draft: Job, forget: Collection[str], spark: SparkSession) -> Job:
    """With the lock held: take the next generation and write it to every ledger first."""
    identity = _agreed(place, draft, forget)
    newest = max([identity.generation, *(sink.generation() for sink in draft.sinks.values())])
    identity = replace(identity, generation=newest + 1)
    place.save(identity)
    for name, sink in draft.sinks.items():
        sink.take(identity.flow, name, identity.query_id, identity.generation)
    return replace(
        draft,
        query_id=identity.query_id,
        generation=identity.generation,
        parallelism=spark.sparkContext.defaultParallelism,
    )


def build_query(spark: SparkSession, job: Job) -> DataFrame:
    """The whole flow as one DataFrame: sources, then one stateful operator for each level."""
    data = job.to_bytes()
    frames = []
    for number, name in enumerate(sorted(job.sources)):
        source = JsonLinesSource.of(data, name, number)
        spark.dataSource.register(source)
        frames.append(spark.readStream.format(source.name()).load())
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.union(frame)
    for level in range(len(job.levels)):
        rows = rows.groupBy("label").transformWithState(
            Level(data, level), ROW_SCHEMA, "append", "None"
        )
    writer = SinksWriter.of(data)
    spark.dataSource.register(writer)
    return rows


def _drive(
    spark: SparkSession,
    job: Job,
    place: Checkpoint,
    until: str,
    on_progress: Callable[[Progress], None],
) -> int:
    rows = build_query(spark, job)
    writer = rows.writeStream.format("cutwater_sinks").outputMode("append")
    writer = writer.option("checkpointLocation", str(place.spark))
    trigger = {"availableNow": True} if until == "caught-up" else {"processingTime": "0 seconds"}
    query = writer.trigger(**trigger).start()
    try:
        return _watch(query, on_progress)
    except StreamingQueryException as error:
        raise _sentence(error, place) from error
    finally:
        if query.isActive:
            query.stop()


def _close(
    spark: SparkSession, job: Job, place: Checkpoint, on_progress: Callable[[Progress], None]
) -> int:
    """The last epoch: all sources end in it, together."""
    epochs = _drive(spark, replace(job, is_ending=True), place, "caught-up", on_progress)
    identity = place.identity()
    assert identity is not None
    place.save(replace(identity, is_closed=True))
    return epochs


def _watch(query: StreamingQuery, on_progress: Callable[[Progress], None]) -> int:
    finished = -1
    epochs = 0
    is_over = False
    while not is_over:
        is_over = bool(query.awaitTermination(0.1))  # type: ignore[arg-type]
        for report in query.recentProgress:
            if report["batchId"] > finished and report["durationMs"].get("addBatch") is not None:
                finished = report["batchId"]
                epochs += 1
                on_progress(Progress(finished, report["durationMs"]["triggerExecution"]))
    return epochs


def _sentence(
    error: StreamingQueryException, place: Checkpoint
) -> RunError | InputError | FlowError:
    ours = recover(str(error))
    if isinstance(ours, (RunError, InputError, FlowError)):
        return ours
    return RunError(
        Problem(
            "spark-failed",
            f"Spark ended the run: {_cause(str(error))}",
            f"see {place.root / 'scratch' / 'spark.log'}, or run with --debug",
        )
    )


def _cause(text: str) -> str:
    """The line of a Spark error that says what happened: the end of a Python traceback."""
    lines = text.split("\n\n")[0].split("=== Streaming Query ===")[0].strip().splitlines()
    said = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (said or lines or ["no reason given"])[-1 if said else 0]


def _result(job: Job, place: Checkpoint, epochs: int) -> RunResult:
    bad = {name: job.sinks.get(bad_records_sink(name)) for name in job.sources}
    late = {name: job.sinks.get(late_events_sink(name)) for name in job.sources}
    own = {s.name for s in job.flow.steps if isinstance(s, Sink)}
    return RunResult(
        flow=job.flow.name,
        generation=job.generation,
        epochs=epochs,
        next_epoch=place.next_epoch(),
        rows={name: sink.rows() for name, sink in job.sinks.items() if name in own},
        bad_records={name: sink.rows() for name, sink in bad.items() if sink},
        late={name: sink.rows() for name, sink in late.items() if sink},
    )
