"""Drives one query: from a job whose sinks are claimed to its end, a stop, or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.embedded.session import make_active
from cutwater.spark.embedded.watchdog import Watchdog
from cutwater.spark.exchange.envelope import ROW_SCHEMA
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch.dataframes import rows_of
from cutwater.spark.microbatch.feedback import LogSource
from cutwater.spark.microbatch.source_reader import EpochDataSource
from cutwater.spark.microbatch.stateful_operator import Level
from cutwater.spark.microbatch.writer import SinksWriter
from cutwater.spark.operators.late_filter import LateFilter
from cutwater.spark.query_failures import sentence_of
from cutwater.spark.state.partitions import shuffling_to
from cutwater.spark.stopping import StopRequest
from cutwater.spark.telemetry.progress import Reports, RunProgress

__all__ = ["Drive", "build_query"]


def build_query(spark: SparkSession, job: Job) -> DataFrame:
    """The whole flow as one DataFrame: sources, then one stateful operator per level."""
    data = dump_job(job)
    frames = []
    for number, (name, bound) in enumerate(sorted(job.sources.items())):
        if isinstance(bound, Frame):
            frames.append(rows_of(job, data, name, bound))
            continue
        source = EpochDataSource.of(data, name, number)
        spark.dataSource.register(source)
        frames.append(spark.readStream.format(source.name()).load())
    for number, log in enumerate(
        job.loops.logs
    ):  # after the sources: offsets are matched to them by position
        out_of_log = LogSource.of(data, log.name, number)
        spark.dataSource.register(out_of_log)
        frames.append(spark.readStream.format(out_of_log.name()).load())
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.union(frame)
    if job.topology.late_filtered:
        rows = rows.groupBy("label").transformWithState(
            LateFilter(data), ROW_SCHEMA, "append", "None"
        )
    for level in range(len(job.topology.levels)):
        rows = rows.groupBy("label").transformWithState(
            Level(data, level), ROW_SCHEMA, "append", "None"
        )
    if job.topology.has_scattered_buckets:
        rows = rows.repartition("label")
    return rows


class Drive:
    """A run whose sinks are claimed and whose query can start."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        checkpoint: Checkpoint,
        on_progress: Callable[[RunProgress], None],
        is_to_stop: Callable[[], bool],
        watchdog: Watchdog,
    ) -> None:
        self._spark = spark
        self.job = job
        self._checkpoint = checkpoint
        self._on_progress = on_progress
        self._is_to_stop = is_to_stop
        self._watchdog = watchdog
        self._request = StopRequest(checkpoint.root)
        self.epochs = 0
        """Epochs finished so far."""
        self.is_stopped = False
        """Was it asked to stop?"""

    def run(self, until: str) -> None:
        """Run the query to its end, or until the run is asked to stop."""
        if self._is_to_stop():
            self.is_stopped = True
            return
        try:
            with self._watchdog.watching():
                self._run(until)
        except StreamingQueryException as error:
            raise sentence_of(error, self._checkpoint) from error
        if self.job.survives_power_loss:  # so that a reboot after this discards no commit
            SparkFiles(self._checkpoint.root, self.job.generation).sync_all()

    def _run(self, until: str) -> None:
        query = self._start(self.job, until)
        try:
            self._watch(query, self.job)
        finally:
            if query.isActive:
                query.stop()
            self._request.withdraw()

    def close(self) -> None:
        """Run the last epoch: all sources end in it, together."""
        self.job = replace(self.job, is_ending=True)
        self.run("caught-up")
        identity = self._checkpoint.identity()
        assert identity is not None
        if not self.is_stopped:
            self._checkpoint.save(replace(identity, is_closed=True))

    def _start(self, job: Job, until: str) -> StreamingQuery:
        make_active(self._spark)
        rows = build_query(self._spark, job)
        self._spark.dataSource.register(SinksWriter.of(dump_job(job)))
        writer = rows.writeStream.format("cutwater_sinks").outputMode("append")
        writer = writer.option("checkpointLocation", str(self._checkpoint.spark))
        is_endless = until != "caught-up"
        trigger = {"processingTime": "0 seconds"} if is_endless else {"availableNow": True}
        identity = self._checkpoint.identity()
        assert identity is not None
        with shuffling_to(self._spark, identity.partitions):
            return writer.trigger(**trigger).start()

    def _watch(self, query: StreamingQuery, job: Job) -> None:
        reports = Reports(job)
        is_over = False
        finished, reported = -1, None
        while not is_over:
            is_over = bool(query.awaitTermination(0.1))  # type: ignore[arg-type]
            is_over = self._stops(job) or is_over
            self._see_to(query)
            newest = query._jsq.lastProgress()
            if newest is None or newest.timestamp() == reported:
                continue
            reported = newest.timestamp()
            self._watchdog.see()
            for report in _reports_since(query, finished):
                finished = report["batchId"]
                self.epochs += 1
                self._on_progress(reports.of(report))

    def _see_to(self, query: StreamingQuery) -> None:
        """Look closer if no epoch has finished for a while."""
        self._watchdog.refuse_hung()
        if not self._watchdog.is_quiet():
            return
        status = query._jsq.status()
        if not status.isTriggerActive():  # waiting for input, which is no hang
            self._watchdog.see()
        self._watchdog.note("status", status.message())
        self._watchdog.note("tasks", _tasks_done(self._spark, query))

    def _stops(self, job: Job) -> bool:
        """Is the run to stop, and is nothing running any more?"""
        if job.is_ending or not (self.is_stopped or self._is_to_stop()):
            return False
        if not self.is_stopped:
            self.is_stopped = True
            self._request.make()
        connectors = [
            name for name, bound in job.sources.items() if isinstance(bound, SourceConnector)
        ]
        has_frames = len(connectors) < len(job.sources)
        if not self._request.is_seen_by(connectors):
            return False
        return not (has_frames and self._checkpoint.is_mid_epoch())


def _tasks_done(spark: SparkSession, query: StreamingQuery) -> tuple[int, int]:
    """The newest job of a query, and how many of its tasks are finished."""
    tracker = spark.sparkContext.statusTracker()
    newest = max(tracker.getJobIdsForGroup(query.runId), default=-1)
    job = tracker.getJobInfo(newest)
    stages = map(tracker.getStageInfo, job.stageIds if job else ())
    return newest, sum(stage.numCompletedTasks for stage in stages if stage)


def _reports_since(query: StreamingQuery, finished: int) -> Iterator[StreamingQueryProgress]:
    """Spark's reports of the epochs after `finished`.

    Spark keeps a hundred, and fetching them all costs as much as a small epoch; so that is done
    only if some were missed.
    """
    last = query.lastProgress
    is_next = finished >= 0 and last is not None and last["batchId"] == finished + 1
    for report in [last] if last and is_next else query.recentProgress:
        is_epoch = report["durationMs"].get("addBatch") is not None
        if report["batchId"] > finished and is_epoch:
            yield report
