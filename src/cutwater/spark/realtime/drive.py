"""Starts the query of a real-time run, watches it, and restarts it when a task dies."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cutwater.errors import CutwaterError, Problem, RunFailure, extract, many
from cutwater.spark.checkpoint.fencing import refuse_overtaken
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.embedded.session import make_active
from cutwater.spark.embedded.watchdog import Watchdog
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job
from cutwater.spark.query_failures import cause_of, sentence_of
from cutwater.spark.realtime.opening import Opening, open_generation
from cutwater.spark.realtime.operator_task import operator
from cutwater.spark.realtime.protocol import TICK_S
from cutwater.spark.realtime.readers.reader_task import reader
from cutwater.spark.realtime.reports import TickReports
from cutwater.spark.realtime.requirements import SLOTS_POLL_S, SLOTS_WAIT_S
from cutwater.spark.realtime.side_outputs import publish_side_outputs
from cutwater.spark.realtime.wire import SCHEMA
from cutwater.spark.stopping import StopRequest
from cutwater.spark.telemetry.progress import RunProgress

__all__ = [
    "RESTARTS",
    "SETTINGS",
    "RealTimeDrive",
    "build_realtime_query",
    "dies_again",
    "is_death",
    "lacks_slots",
    "too_few_slots_now",
]

SETTINGS = {
    # Our operators are Python, which is not on Spark's allowlist for real-time mode.
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    "spark.python.udf.pipelined.enabled": "true",
    # Send each row at once, not when a batch or a buffer is full. The shuffle's buffer is smaller
    # than any row: with 64 bytes, an empty row after a large one waited there for the next tick.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    "spark.shuffle.streaming.networkBufferSize": "1",
}
"""Settings of a session for real-time runs, in addition to the usual ones."""

RESTARTS = 5
"""How many times the query is restarted without a snapshot in between."""
_REPORT_S = 1.0
_DEATHS = re.compile(
    r"Python worker (exited|failed)|crashed|EOFException|Connection reset|Broken pipe|ExecutorLost"
    r"|ClosedChannelException|Connection to streaming shuffle"
)
"""What Spark reports when a process died; real-time mode does not retry by itself.

Tasks that exchange rows with it fail as well, and report a closed connection.
"""


def _open_source(spark: SparkSession, partitions: int) -> DataFrame:
    """A stream without rows that keeps a batch open: the readers read the input themselves."""
    jvm = spark._jvm
    assert jvm is not None
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    companion = getattr(getattr(sources, "LowLatencyMemoryStream$"), "MODULE$")
    strings = jvm.org.apache.spark.sql.Encoders.STRING()
    return DataFrame(companion.apply(spark._jsparkSession, partitions, strings).toDF(), spark)


def build_realtime_query(
    spark: SparkSession, job: Job, opening: Opening, *, is_catching_up: bool
) -> DataFrame:
    """Readers, then an exchange and an operator for each level."""
    data = dump_job(job)
    read = reader(data, opening, is_catching_up=is_catching_up)
    rows = _open_source(spark, opening.senders).mapInArrow(read, SCHEMA)
    for level in range(opening.levels):
        sent = rows.repartitionById(opening.partitions, "receiver")
        rows = sent.mapInArrow(operator(data, opening, level), SCHEMA)
    return rows


class RealTimeDrive:
    """A run whose sinks are claimed and whose query can start."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        checkpoint: Checkpoint,
        *,
        claim_again: Callable[[], Job],
        on_progress: Callable[[RunProgress], None],
        is_to_stop: Callable[[], bool],
        notify: Callable[[str], None],
        watchdog: Watchdog,
        snapshot_s: float,
        batch_s: float,
        readers: int,
    ) -> None:
        self._spark, self.job, self._checkpoint = spark, job, checkpoint
        self._claim_again = claim_again
        """Recovers again: returns a job of a higher generation, with all earlier ones fenced."""
        self._on_progress, self._notify = on_progress, notify
        self._is_to_stop = is_to_stop
        self._watchdog = watchdog
        self._snapshot_ticks = max(1, round(snapshot_s / TICK_S))
        self._batch_s, self._readers = batch_s, readers
        self._request = StopRequest(checkpoint.root)
        self.epochs = 0
        """Ticks with records so far, of the source that has most."""
        self.is_stopped = False
        """Was it asked to stop?"""

    def run(self, until: str) -> None:
        """Run until all is read or a stop is requested; supervise the query meanwhile."""
        deaths, waited_s = 0, 0.0
        while not self._stops():
            opening = self._open()
            before = opening.snapshots.common()
            try:
                with self._watchdog.watching():
                    self._run(opening, until)
                return
            except StreamingQueryException as error:
                if lacks_slots(str(error)):
                    waited_s += self._wait_for_slots(opening.slots, waited_s, error)
                    continue
                waited_s = 0.0
                deaths = 1 if opening.snapshots.common() > before else deaths + 1
                self._start_again_after(error, deaths, opening.failure())

    def close(self) -> None:
        """Run the last tick: all sources end in it, together."""
        self._claim_next(is_ending=True)
        self.run("caught-up")
        identity = self._checkpoint.identity()
        assert identity is not None
        self._checkpoint.save(replace(identity, is_closed=True))

    def _start_again_after(
        self, error: StreamingQueryException, deaths: int, failure: CutwaterError | None
    ) -> None:
        """Claim a new generation if a process died; raise the cause if not, or if too often."""
        if failure is not None:
            raise failure from error
        if extract(str(error)) is not None or not is_death(str(error)):
            raise sentence_of(error, self._checkpoint) from error
        if deaths > RESTARTS:
            raise RunFailure(dies_again(cause_of(str(error)), deaths)) from error
        self._claim_next(is_ending=self.job.is_ending)
        self._notify(
            f"a process of Spark's died ({cause_of(str(error))}); the query starts again as "
            f"generation {self.job.generation}, {deaths} of at most {RESTARTS} times without a "
            "snapshot; nothing is lost"
        )

    def _claim_next(self, *, is_ending: bool) -> None:
        """Become the next generation; a zombie whose tasks died must not fence its successor."""
        refuse_overtaken(self.job)
        self.job = replace(self._claim_again(), is_ending=is_ending)

    def _wait_for_slots(self, needed: int, waited_s: float, error: Exception) -> float:
        """Wait a moment for executors that come late or are replaced; returns the seconds."""
        if waited_s >= SLOTS_WAIT_S:
            raise RunFailure(too_few_slots_now(needed, waited_s)) from error
        if not waited_s:
            self._notify(
                f"Spark has no free slots for {needed} tasks at once; waiting for them for at most "
                f"{SLOTS_WAIT_S:.0f} s"
            )
        time.sleep(SLOTS_POLL_S)
        self._claim_next(is_ending=self.job.is_ending)
        return SLOTS_POLL_S

    def _open(self) -> Opening:
        identity = self._checkpoint.identity()
        assert identity is not None
        return open_generation(
            self.job,
            partitions=identity.partitions,
            snapshot_ticks=self._snapshot_ticks,
            readers=self._readers,
            now=time.time(),
        )

    def _run(self, opening: Opening, until: str) -> None:
        reports = TickReports(self.job, opening, self._on_progress)
        publish_side_outputs(self.job, opening)
        query = self._start(opening, until)
        try:
            self._watch(query, opening, until, reports)
        finally:
            if query.isActive:
                query.stop()
            self._request.withdraw()
        publish_side_outputs(self.job, opening)
        reports.report()
        self.epochs += reports.ticks

    def _start(self, opening: Opening, until: str) -> StreamingQuery:
        make_active(self._spark)
        rows = build_realtime_query(
            self._spark, self.job, opening, is_catching_up=until == "caught-up"
        )
        writer = rows.writeStream.format("noop").outputMode("update")
        # Spark's own checkpoint of such a query holds nothing of use; ours is authoritative.
        writer = writer.option("checkpointLocation", str(opening.folder / "spark"))
        writer = writer.option("asyncProgressTrackingEnabled", "false")
        trigger = f"{round(1000 * self._batch_s)} milliseconds"
        writer = writer.trigger(realTime=trigger)  # type: ignore[call-overload]
        return cast(StreamingQuery, writer.start())

    def _watch(
        self, query: StreamingQuery, opening: Opening, until: str, reports: TickReports
    ) -> None:
        is_asked, reported = False, time.monotonic()
        while not query.awaitTermination(0.05):  # type: ignore[arg-type]
            self._watchdog.note("released", opening.released())
            self._watchdog.refuse_hung()
            if not is_asked and (self._stops() or self._is_done(opening, until)):
                self._request.make()
                is_asked = True
            if is_asked and self._has_ended(opening):
                return
            if time.monotonic() - reported >= _REPORT_S:
                publish_side_outputs(self.job, opening)
                reports.report()
                reported = time.monotonic()

    def _stops(self) -> bool:
        """Is the run to stop? Not during the end of the input, which is completed."""
        if not self.job.is_ending and self._is_to_stop():
            self.is_stopped = True
        return self.is_stopped

    def _is_done(self, opening: Opening, until: str) -> bool:
        return until == "caught-up" and opening.has_caught_up()

    def _has_ended(self, opening: Opening) -> bool:
        """Have all readers stopped, and is there a snapshot of everything that they sent?"""
        is_seen = self._request.is_seen_by(opening.sources)
        return is_seen and opening.snapshots.common() >= opening.planned()


def is_death(text: str) -> bool:
    """Did a query end because a process died, according to Spark's message?"""
    return _DEATHS.search(text) is not None


def lacks_slots(text: str) -> bool:
    """Was a query refused since Spark could not run all of its tasks at once?"""
    return "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT" in text


def too_few_slots_now(needed: int, waited_s: float) -> Problem:
    """The problem of a run for which executors did not come."""
    return Problem(
        "too-few-slots",
        f"Spark had no free slots for {needed} tasks at once for {waited_s:.0f} s",
        "check that its workers are up and which other applications hold their cores, and run "
        "again: nothing is lost",
    )


def dies_again(cause: str, deaths: int) -> Problem:
    """The problem of a run whose processes die after every restart."""
    return Problem(
        "dies-again",
        f"a process of Spark's died {many(deaths, 'time')} without a snapshot in between: {cause}",
        "find out what ends it (a function that ends its process, or too little memory), and run "
        "again: nothing is lost",
    )
