"""Running a flow: check everything that can be checked, recover, drive one query to its end.

The module is not called after its function: `cutwater.spark.run` is the function.
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
from cutwater.flow.steps import Sink, Source
from cutwater.flow.timely.cutting import loop_to_cut
from cutwater.spark.binding import bind
from cutwater.spark.checkpoint.lock import LOCK_WAIT_SECONDS, locked
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import bad_records_sink, late_events_sink
from cutwater.spark.connectors.base.sink import Sink as Place
from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.embedded.jvm import kill_own
from cutwater.spark.embedded.session import check_session, embedded_session, looked_after
from cutwater.spark.embedded.watchdog import Watchdog, ended_if_hung
from cutwater.spark.end_to_end import Promise, promises, too_low
from cutwater.spark.job.spec import BUCKETS, MICROBATCH, REALTIME, Job, spark_plan
from cutwater.spark.microbatch.feedback import log_sinks
from cutwater.spark.microbatch.query import Drive
from cutwater.spark.options import RunOptions, settled
from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.drive import SETTINGS as REALTIME_SETTINGS
from cutwater.spark.realtime.drive import RealTimeDrive
from cutwater.spark.realtime.requirements import (
    early,
    partitions_for,
    slots_of,
    slots_of_master,
    too_few_slots,
    unsupported,
)
from cutwater.spark.recovery import Resumption, agree, recover, refuse_closed
from cutwater.spark.support import check_support
from cutwater.spark.telemetry.progress import Progress
from cutwater.spark.telemetry.topology import topology_of, write_topology

__all__ = [
    "RunResult",
    "run",
]


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
    """Rows that readers of each sink see, from all runs of this checkpoint."""
    bad_records: dict[str, int]
    """Bad records of each source that were kept aside, from all runs."""
    late: dict[str, int]
    """Late events of each source that has a watermark, kept aside, from all runs."""
    guarantees: dict[str, Promise]
    """What observers of each sink may rely on, and why."""
    is_stopped: bool = False
    """Did it end because it was asked to, not because it was done?"""
    mode: str = MICROBATCH
    """The engine; in real time, an epoch is a tick with records."""


def run(
    flow: Flow,
    spark: SparkSession | None = None,
    *,
    sources: Mapping[str, str | Path | Feed | Frame],
    sinks: Mapping[str, str | Path | Place],
    checkpoint: str | Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    explain: bool = True,
    permute: int | None = None,
    is_to_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    tell: Callable[[str], None] = lambda _sentence: None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Run a flow exactly-once on Spark Structured Streaming, in one query.

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`, what Spark cannot run raises `RunError`.
    spark
        A session to run on; without one an embedded session is made and stopped.
    sources
        For each source a folder of JSON lines, or `json_lines` of one with settings, another
        kind of source, or a streaming DataFrame in a `frame`.
    sinks
        For each sink a folder, in which every epoch appears at once and whole.
    checkpoint
        The folder that remembers how far the run is; a run that was killed goes on from it.
    settings
        Settings of Spark for the embedded session, besides our own.
    explain
        Tell why each sink has its guarantee, not only which it has.
    is_to_stop
        Asked several times a second; once it says True, the epoch that is running is finished
        and the run ends. With a DataFrame among the sources, an epoch may be cut off; the next
        run finishes it.
    on_progress
        Called with each epoch that was finished.
    tell
        Called with sentences for people; the first ones say what each sink guarantees, and why.
    options
        How it is run, such as ``until="stopped"``: the keys of `RunOptions`.
    """
    planned = spark_plan(flow)
    check_support(planned)
    asked = settled(options)
    engine = _Engine(asked["mode"] == REALTIME)
    bound_sources, bound_sinks = bind(planned, sources, sinks)
    _check_close(asked, bound_sources)
    bound_sinks = engine.released(planned, bound_sources, bound_sinks)
    promised = _promised(flow, bound_sources, bound_sinks, asked["require"])
    place = engine.checkpoint(checkpoint)
    draft = _draft(flow, bound_sources, bound_sinks, place, asked, permute)
    master, resumption = engine.sized(draft, place, _resumption(asked), asked["master"], spark)
    agree(place, draft, resumption)
    refuse_closed(place, asked["close"])
    _check_sources(draft)
    for sentence in _foreword(engine, draft, promised, explain):
        tell(sentence)
    place.create()
    scratch = place.root / "scratch"
    session = spark or embedded_session(scratch, master=master, more=settings, ours=engine.settings)
    cut_off = kill_own if spark is None else _kill_nothing
    with (
        looked_after(session, scratch, is_ours=spark is None),
        ended_if_hung(asked["hung_after"], cut_off) as watchdog,
    ):
        check_session(session, engine.settings)
        engine.check_slots(draft, resumption, session)
        hooks = _Hooks(on_progress, is_to_stop, tell, watchdog)
        with locked(place, session, LOCK_WAIT_SECONDS, tell):
            job = recover(place, draft, resumption, session, tell)
            write_topology(place.root, topology_of(job))
            drive = engine.drive(session, draft, job, place, asked, hooks)
            drive.run(asked["until"])
            if asked["close"] and not drive.is_stopped:
                drive.close()
            return _result(drive.job, place, drive, promised)


def _draft(
    flow: Flow,
    sources: dict[str, Feed | Frame],
    sinks: dict[str, Place],
    place: Checkpoint,
    asked: RunOptions,
    permute: int | None,
) -> Job:
    """The job before it has a checkpoint; what cannot travel is refused."""
    is_skipping = asked["on_bad_record"] == "skip"
    feeds_back = asked["mode"] == MICROBATCH and _feeds_back(flow, sources)
    sinks = sinks | _side_outputs(flow, place.root, is_skipping=is_skipping)
    sinks |= log_sinks(flow, place.root) if feeds_back else {}
    draft = Job(
        flow,
        sources,
        sinks,
        "",
        0,
        BUCKETS,
        str(place.root),
        skip_bad_records=is_skipping,
        permute=permute,
        engine=asked["mode"],
        fsync=asked["fsync"],
        feeds_back=feeds_back,
    )
    draft.to_bytes()
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
    engine: _Engine, draft: Job, promised: Mapping[str, Promise], explain: bool
) -> Iterator[str]:
    """What people are told before a run starts."""
    if engine.is_real_time:
        yield "engine: real time; rows leave with their tick, about every 10 ms, before a snapshot"
    for promise in promised.values():
        yield str(promise) if explain else promise.line
    for name, source in draft.sources.items():
        why = source.why_empty() if isinstance(source, Feed) else None
        if why is not None:
            yield f"source '{name}' is empty: {why}"


@dataclass(frozen=True)
class _Hooks:
    """Whoever looks at a run or ends it."""

    on_progress: Callable[[Progress], None]
    is_to_stop: Callable[[], bool]
    tell: Callable[[str], None]
    watchdog: Watchdog


@dataclass(frozen=True)
class _Engine:
    """What differs between the engines before a query starts."""

    is_real_time: bool

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings that its session must have besides the usual."""
        return REALTIME_SETTINGS if self.is_real_time else {}

    def released(
        self, planned: Plan, sources: Mapping[str, Feed | Frame], sinks: dict[str, Place]
    ) -> dict[str, Place]:
        """The sinks as it releases their rows; what it cannot run is refused."""
        if not self.is_real_time:
            return sinks
        _refuse(list(unsupported(planned, sources, sinks)))
        return early(sinks)

    def checkpoint(self, path: str | Path) -> Checkpoint:
        """A checkpoint, in its numbers: epochs or ticks."""
        return RealTimeCheckpoint.at(path) if self.is_real_time else Checkpoint.at(path)

    def sized(
        self,
        draft: Job,
        place: Checkpoint,
        asked: Resumption,
        master: str,
        spark: SparkSession | None,
    ) -> tuple[str, Resumption]:
        """The master and the partitions with which all tasks can run at once."""
        if not self.is_real_time:
            return master, asked
        found = place.identity()
        slots = spark.sparkContext.defaultParallelism if spark else slots_of_master(master)
        known = asked.partitions or (found.partitions if found else 0)
        partitions = known or partitions_for(draft, slots)
        if spark is None and master == "local[*]":  # slots need not be cores
            master = f"local[{slots_of(draft, partitions)}]"
        elif slots is not None:
            _refuse(too_few_slots(draft, partitions, slots))
        return master, replace(asked, partitions=partitions)

    def check_slots(self, draft: Job, asked: Resumption, session: SparkSession) -> None:
        """Refuse a cluster on which not all tasks can run at once."""
        if self.is_real_time and asked.partitions:
            slots = session.sparkContext.defaultParallelism
            _refuse(too_few_slots(draft, asked.partitions, slots))

    def drive(
        self,
        session: SparkSession,
        draft: Job,
        job: Job,
        place: Checkpoint,
        asked: RunOptions,
        hooks: _Hooks,
    ) -> Drive | RealTimeDrive:
        """What runs the query to its end."""
        if not self.is_real_time:
            return Drive(session, job, place, hooks.on_progress, hooks.is_to_stop, hooks.watchdog)
        again = Resumption(close=asked["close"])
        return RealTimeDrive(
            session,
            job,
            place,
            claim_again=lambda: recover(place, draft, again, session, hooks.tell),
            on_progress=hooks.on_progress,
            is_to_stop=hooks.is_to_stop,
            tell=hooks.tell,
            watchdog=hooks.watchdog,
            snapshot_s=asked["snapshot_interval"],
            batch_s=asked["batch_interval"],
        )


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise RefusedError(problems)


def _promised(
    flow: Flow,
    sources: Mapping[str, Feed | Frame],
    sinks: Mapping[str, Place],
    require: str | None,
) -> dict[str, Promise]:
    promised = promises(flow, sources, sinks)
    problems = too_low(promised, require) if require is not None else []
    if problems:
        raise RefusedError(problems)
    return promised


def _side_outputs(flow: Flow, root: Path, *, is_skipping: bool) -> dict[str, Place]:
    """The sinks of what does not go through the flow: bad records and late events."""
    sinks: dict[str, Place] = {}
    for source in (step for step in flow.steps if isinstance(step, Source)):
        if is_skipping:
            folder = Folder(str(root / "bad-records" / source.name))
            sinks[bad_records_sink(source.name)] = folder
        if source.watermark:
            folder = Folder(str(root / "late-events" / source.name))
            sinks[late_events_sink(source.name)] = folder
    return sinks


def _feeds_back(flow: Flow, sources: Mapping[str, Feed | Frame]) -> bool:
    """May a loop feed back through a log? Spark plans DataFrames, so they are never held."""
    frames = [name for name, bound in sources.items() if isinstance(bound, Frame)]
    loop = loop_to_cut(flow.steps) if frames else None
    if loop and loop.plan == "log":
        raise RefusedError(
            Problem(
                "loop-without-log",
                f"{loop.title} has plan='log', and cannot turn a round an epoch: '{frames[0]}' is "
                "a DataFrame, which cannot be held while the loop turns",
                "leave plan out: its rounds then run inside one epoch",
            )
        )
    return not frames


def _kill_nothing() -> None:
    """A session that was passed is its owner's."""


def _check_close(asked: RunOptions, sources: Mapping[str, Feed | Frame]) -> None:
    close, until = asked["close"], asked["until"]
    frames = [name for name, bound in sources.items() if isinstance(bound, Frame)]
    if close and frames:
        raise RefusedError(
            Problem(
                "close-of-a-frame",
                f"close ends the input of all sources, but '{frames[0]}' is a DataFrame, which "
                "cannot be told to end",
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
    feeds = {name: bound for name, bound in draft.sources.items() if isinstance(bound, Feed)}
    problems = [
        p for name, feed in feeds.items() for p in feed.check(name, draft.source_step(name))
    ]
    if problems:
        raise RefusedError(problems)


def _result(
    job: Job, place: Checkpoint, drive: Drive | RealTimeDrive, promised: dict[str, Promise]
) -> RunResult:
    own = [s.name for s in job.flow.steps if isinstance(s, Sink)]
    shown = {name: sink.rows(job.claim_of(name)) for name, sink in job.sinks.items()}
    bad, late = (
        {name: shown[named(name)] for name in job.sources if named(name) in shown}
        for named in (bad_records_sink, late_events_sink)
    )
    return RunResult(
        flow=job.flow.name,
        generation=job.generation,
        epochs=drive.epochs,
        next_epoch=place.next_epoch(),
        rows={name: shown[name] for name in own},
        bad_records=bad,
        late=late,
        guarantees=promised,
        is_stopped=drive.is_stopped,
        mode=job.engine,
    )
