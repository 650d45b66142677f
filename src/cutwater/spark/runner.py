"""Run a flow: check everything that can be checked, recover, drive one query to its end.

The module is not named after its function, because `cutwater.spark.run` is the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Unpack

from pyspark.sql import SparkSession

from cutwater.errors import Problem, RefusedError
from cutwater.flow import Flow
from cutwater.flow.fusing import Plan
from cutwater.flow.guarantees.engines import ENGINES
from cutwater.flow.steps import Sink, Source
from cutwater.flow.timely.cutting import loop_sentences, loop_to_cut
from cutwater.spark.binding import bind
from cutwater.spark.checkpoint.fencing import fenced_if_overtaken
from cutwater.spark.checkpoint.lock import LOCK_WAIT_SECONDS, locked
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import bad_records_sink, late_events_sink
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.embedded.jvm import kill_own
from cutwater.spark.embedded.session import check_session, closing_session, embedded_session
from cutwater.spark.embedded.watchdog import Watchdog, ended_if_hung
from cutwater.spark.end_to_end import SinkGuarantee, sink_guarantees, too_low
from cutwater.spark.job.spec import BUCKETS, MICROBATCH, REALTIME, Job, spark_plan
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch.feedback import log_sinks
from cutwater.spark.microbatch.query import Drive
from cutwater.spark.options import RunOptions, settled
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.drive import SETTINGS as REALTIME_SETTINGS
from cutwater.spark.realtime.drive import RealTimeDrive
from cutwater.spark.realtime.requirements import (
    partitions_for,
    slots_of,
    slots_of_master,
    slots_of_session,
    too_few_slots,
    unsupported,
    with_early_release,
)
from cutwater.spark.recovery import Resumption, agree, recover, refuse_closed
from cutwater.spark.support import check_support
from cutwater.spark.telemetry.progress import RunProgress
from cutwater.spark.telemetry.topology import topology_of, write_topology

__all__ = [
    "RunResult",
    "run",
]


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run."""

    flow: str
    generation: int
    """How many runs this checkpoint has had, including this one."""
    epochs: int
    """Epochs that this run finished."""
    next_epoch: int
    """The first epoch that is not in the checkpoint."""
    rows: dict[str, int]
    """Rows that readers of each sink see, from all runs of this checkpoint."""
    bad_records: dict[str, int]
    """Bad records of each source that were kept as dead letters, from all runs."""
    late: dict[str, int]
    """Late events of each source with a watermark that were kept, from all runs."""
    guarantees: dict[str, SinkGuarantee]
    """The guarantee for observers of each sink, and the reason for it."""
    is_stopped: bool = False
    """Did it end on request, rather than because all input was read?"""
    mode: str = MICROBATCH
    """The engine; in real time, an epoch is a tick with records."""


def run(
    flow: Flow,
    spark: SparkSession | None = None,
    *,
    sources: Mapping[str, str | Path | SourceConnector | Frame],
    sinks: Mapping[str, str | Path | SinkConnector],
    checkpoint: str | Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    explain: bool = True,
    permute: int | None = None,
    is_to_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[RunProgress], None] = lambda _progress: None,
    notify: Callable[[str], None] = lambda _sentence: None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Run a flow exactly-once on Spark Structured Streaming, in one query.

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`, what Spark cannot run raises `RunError`.
    spark
        A session to run on; without one, an embedded session is started and stopped.
    sources
        For each source a folder of JSON lines, or another connector such as `json_lines` with
        settings, or a streaming DataFrame wrapped in a `frame`.
    sinks
        For each sink a folder, in which every epoch appears atomically, or another connector.
    checkpoint
        The folder that records the progress of the run; a run that was killed resumes from it.
    settings
        Spark settings for the embedded session, in addition to Cutwater's own.
    explain
        Report why each sink has its guarantee, not only which one it has.
    is_to_stop
        Polled several times a second; once it returns True, the running epoch is finished and the
        run ends. With a DataFrame among the sources, an epoch may be cut off; the next run
        finishes it.
    on_progress
        Called after each finished epoch.
    notify
        Called with messages for people; the first ones say what each sink guarantees, and why.
    options
        The keys of `RunOptions`, such as ``until="stopped"``.
    """
    planned = spark_plan(flow)
    check_support(planned)
    asked = settled(options)
    engine = _Engine(asked["mode"] == REALTIME, asked["readers"])
    bound_sources, bound_sinks = bind(planned, sources, sinks)
    _check_close(asked, bound_sources)
    bound_sinks = engine.released(planned, bound_sources, bound_sinks)
    found = _promised(flow, bound_sources, bound_sinks, asked["require"])
    store = engine.checkpoint(checkpoint)
    draft = _draft(flow, bound_sources, bound_sinks, store, asked, permute)
    master, resumption = engine.sized(draft, store, _resumption(asked), asked["master"], spark)
    agree(store, draft, resumption)
    refuse_closed(store, asked["close"])
    _check_sources(draft)
    for sentence in _foreword(engine, draft, found, explain):
        notify(sentence)
    store.create()
    scratch = store.root / "scratch"
    session = spark or embedded_session(scratch, master=master, more=settings, ours=engine.settings)
    cut_off = kill_own if spark is None else _kill_nothing
    with (
        closing_session(session, scratch, is_ours=spark is None),
        ended_if_hung(asked["hung_after"], cut_off) as watchdog,
    ):
        check_session(session, engine.settings)
        engine.check_slots(draft, resumption, session)
        hooks = _Hooks(on_progress, is_to_stop, notify, watchdog)
        with locked(store, session, LOCK_WAIT_SECONDS, notify):
            job = recover(store, draft, resumption, session, notify)
            write_topology(store.root, topology_of(job))
            drive = engine.drive(session, draft, job, store, asked, hooks)
            with fenced_if_overtaken(lambda: drive.job):
                drive.run(asked["until"])
                if asked["close"] and not drive.is_stopped:
                    drive.close()
            return _result(drive.job, store, drive, found)


def _draft(
    flow: Flow,
    sources: dict[str, SourceConnector | Frame],
    sinks: dict[str, SinkConnector],
    store: Checkpoint,
    asked: RunOptions,
    permute: int | None,
) -> Job:
    """The job before it has claimed a checkpoint; refused if it cannot be serialised."""
    is_skipping = asked["on_bad_record"] == "skip"
    feeds_back = asked["mode"] == MICROBATCH and _feeds_back(flow, sources)
    sinks = sinks | _side_outputs(flow, store.root, is_skipping=is_skipping)
    sinks |= log_sinks(flow, store.root) if feeds_back else {}
    draft = Job(
        flow,
        sources,
        sinks,
        "",
        0,
        BUCKETS,
        str(store.root),
        skip_bad_records=is_skipping,
        permute=permute,
        engine=asked["mode"],
        fsync=asked["fsync"],
        feeds_back=feeds_back,
    )
    dump_job(draft)
    return draft


def _resumption(asked: RunOptions) -> Resumption:
    others: Literal["refuse", "adopt", "fresh"] = (
        "adopt" if asked["adopt"] else "fresh" if asked["fresh"] else "refuse"
    )
    return Resumption(
        asked["forget"],
        asked["partitions"],
        others,
        asked["close"],
        asked["accept_gap"],
        asked["finish_with_this_flow"],
    )


def _foreword(
    engine: _Engine, draft: Job, found: Mapping[str, SinkGuarantee], explain: bool
) -> Iterator[str]:
    """The messages for people before a run starts."""
    words = ENGINES[draft.engine]
    yield f'engine: {words.name} (mode = "{draft.engine}"): {words.release}'
    for guarantee in found.values():
        yield str(guarantee) if explain else guarantee.line
    yield from loop_sentences(draft.flow.steps, _why_no_log(draft.sources))
    for name, source in draft.sources.items():
        why = source.why_empty() if isinstance(source, SourceConnector) else None
        if why is not None:
            yield f"source '{name}' is empty: {why}"


@dataclass(frozen=True)
class _Hooks:
    """Callbacks that observe a run or end it."""

    on_progress: Callable[[RunProgress], None]
    is_to_stop: Callable[[], bool]
    notify: Callable[[str], None]
    watchdog: Watchdog


@dataclass(frozen=True)
class _Engine:
    """What differs between the engines before a query starts."""

    is_real_time: bool
    readers: int
    """How many tasks read each source, in real time."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings that the engine's session needs in addition to the usual ones."""
        return REALTIME_SETTINGS if self.is_real_time else {}

    def released(
        self,
        planned: Plan,
        sources: Mapping[str, SourceConnector | Frame],
        sinks: dict[str, SinkConnector],
    ) -> dict[str, SinkConnector]:
        """The sinks as this engine releases their rows; refuses what it cannot run."""
        if not self.is_real_time:
            return sinks
        _refuse(list(unsupported(planned, sources, sinks)))
        return with_early_release(sinks)

    def checkpoint(self, path: str | Path) -> Checkpoint:
        """The checkpoint as this engine numbers it: in epochs or in ticks."""
        return RealTimeCheckpoint.at(path) if self.is_real_time else Checkpoint.at(path)

    def sized(
        self,
        draft: Job,
        store: Checkpoint,
        asked: Resumption,
        master: str,
        spark: SparkSession | None,
    ) -> tuple[str, Resumption]:
        """The master and the partitions with which all tasks can run at once."""
        if not self.is_real_time:
            return master, asked
        found = store.identity()
        known = asked.partitions or (found.partitions if found else 0)
        fewest = slots_of(draft, known or 1, self.readers)
        slots = slots_of_session(spark, fewest) if spark else slots_of_master(master)
        partitions = known or partitions_for(draft, slots, self.readers)
        if spark is None and master == "local[*]":  # a local master may have more slots than cores
            master = f"local[{slots_of(draft, partitions, self.readers)}]"
        elif slots is not None:
            _refuse(too_few_slots(draft, partitions, slots, self.readers))
        return master, replace(asked, partitions=partitions)

    def check_slots(self, draft: Job, asked: Resumption, session: SparkSession) -> None:
        """Refuse a cluster that cannot run all tasks at once."""
        if self.is_real_time and asked.partitions:
            slots = slots_of_session(session, slots_of(draft, asked.partitions, self.readers))
            _refuse(too_few_slots(draft, asked.partitions, slots, self.readers))

    def drive(
        self,
        session: SparkSession,
        draft: Job,
        job: Job,
        store: Checkpoint,
        asked: RunOptions,
        hooks: _Hooks,
    ) -> Drive | RealTimeDrive:
        """The driver that runs the query to its end."""
        if not self.is_real_time:
            return Drive(session, job, store, hooks.on_progress, hooks.is_to_stop, hooks.watchdog)
        again = Resumption(close=asked["close"])
        return RealTimeDrive(
            session,
            job,
            store,
            claim_again=lambda: recover(store, draft, again, session, hooks.notify),
            on_progress=hooks.on_progress,
            is_to_stop=hooks.is_to_stop,
            notify=hooks.notify,
            watchdog=hooks.watchdog,
            snapshot_s=asked["snapshot_interval"],
            batch_s=asked["batch_interval"],
            readers=self.readers,
        )


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise RefusedError(problems)


def _promised(
    flow: Flow,
    sources: Mapping[str, SourceConnector | Frame],
    sinks: Mapping[str, SinkConnector],
    require: str | None,
) -> dict[str, SinkGuarantee]:
    found = sink_guarantees(flow, sources, sinks)
    problems = too_low(found, require) if require is not None else []
    if problems:
        raise RefusedError(problems)
    return found


def _side_outputs(flow: Flow, root: Path, *, is_skipping: bool) -> dict[str, SinkConnector]:
    """The sinks of side outputs: bad records and late events."""
    sinks: dict[str, SinkConnector] = {}
    for source in (step for step in flow.steps if isinstance(step, Source)):
        if is_skipping:
            folder = Folder(str(root / "bad-records" / source.name))
            sinks[bad_records_sink(source.name)] = folder
        if source.watermark:
            folder = Folder(str(root / "late-events" / source.name))
            sinks[late_events_sink(source.name)] = folder
    return sinks


def _feeds_back(flow: Flow, sources: Mapping[str, SourceConnector | Frame]) -> bool:
    """May a loop feed back through a log? Not with DataFrames: they cannot be held back."""
    why = _why_no_log(sources)
    loop = loop_to_cut(flow.steps) if why else None
    if loop and loop.plan == "log":
        raise RefusedError(
            Problem(
                "loop-without-log",
                f"{loop.title} has plan='log', and cannot run one iteration per epoch: {why}",
                "leave plan out: its iterations then run inside one epoch",
            )
        )
    return not why


def _why_no_log(sources: Mapping[str, SourceConnector | Frame]) -> str:
    """Why no loop of a run can feed back through a log; empty if one may."""
    frames = [name for name, bound in sources.items() if isinstance(bound, Frame)]
    if not frames:
        return ""
    return f"'{frames[0]}' is a DataFrame, which cannot be held back while the loop iterates"


def _kill_nothing() -> None:
    """Kill nothing: a session that was passed in belongs to its owner."""


def _check_close(asked: RunOptions, sources: Mapping[str, SourceConnector | Frame]) -> None:
    close, until = asked["close"], asked["until"]
    frames = [name for name, bound in sources.items() if isinstance(bound, Frame)]
    if close and frames:
        raise RefusedError(
            Problem(
                "close-of-a-frame",
                f"close ends the input of all sources, but '{frames[0]}' is a DataFrame, which "
                "cannot be ended by the run",
                "leave close out, or read files with json_lines",
            )
        )
    if close and until != "caught-up":
        raise RefusedError(
            Problem(
                "close-of-an-endless-run",
                f"close ends the input once all is read, but until is {until!r}",
                "leave close out, or use until='caught-up'",
            )
        )


def _check_sources(draft: Job) -> None:
    connectors = {
        name: bound for name, bound in draft.sources.items() if isinstance(bound, SourceConnector)
    }
    problems = [
        p
        for name, connector in connectors.items()
        for p in connector.check(name, draft.topology.source_step(name))
    ]
    if problems:
        raise RefusedError(problems)


def _result(
    job: Job, store: Checkpoint, drive: Drive | RealTimeDrive, found: dict[str, SinkGuarantee]
) -> RunResult:
    own = [s.name for s in job.flow.steps if isinstance(s, Sink)]
    shown = {name: sink.row_count(job.claim_of(name)) for name, sink in job.sinks.items()}
    bad, late = (
        {name: shown[named(name)] for name in job.sources if named(name) in shown}
        for named in (bad_records_sink, late_events_sink)
    )
    return RunResult(
        flow=job.flow.name,
        generation=job.generation,
        epochs=drive.epochs,
        next_epoch=store.next_epoch(),
        rows={name: shown[name] for name in own},
        bad_records=bad,
        late=late,
        guarantees=found,
        is_stopped=drive.is_stopped,
        mode=job.engine,
    )
