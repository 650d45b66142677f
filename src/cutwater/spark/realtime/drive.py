"""Starting the query of a real-time run, watching it, and starting it again when a task dies."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cutwater.errors import Problem, RunFailure, many, recover
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.embedded.session import make_active
from cutwater.spark.embedded.watchdog import Watchdog
from cutwater.spark.job.spec import Job
from cutwater.spark.query_failures import cause_of, sentence_of
from cutwater.spark.realtime.opening import Opening, open_generation
from cutwater.spark.realtime.operator_task import operator
from cutwater.spark.realtime.protocol import TICK_S
from cutwater.spark.realtime.reader_task import reader
from cutwater.spark.realtime.reports import TickReports
from cutwater.spark.realtime.side_outputs import publish_side_outputs
from cutwater.spark.realtime.wire import SCHEMA
from cutwater.spark.stopping import StopRequest
from cutwater.spark.telemetry.progress import Progress

__all__ = [
    "RESTARTS",
    "SETTINGS",
    "RealTimeDrive",
    "build_query",
    "dies_again",
]

SETTINGS = {
    # Our operators are Python, which the list of what is known to be quick does not have.
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    "spark.python.udf.pipelined.enabled": "true",
    # A row is sent when it is there, not when a batch or a buffer is full.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    "spark.shuffle.streaming.networkBufferSize": "64",
}
"""What a session for real-time runs has besides the usual."""

RESTARTS = 5
"""How often the query is started again without a snapshot in between."""
_REPORT_S = 1.0
_DEATHS = re.compile(
    r"Python worker (exited|failed)|crashed|EOFException|Connection reset|Broken pipe|ExecutorLost"
)
"""What Spark says when a process died, which real-time mode does not try again by itself."""


def _open_source(spark: SparkSession, partitions: int) -> DataFrame:
    """A stream without rows that keeps a batch open: what is read, readers read themselves."""
    jvm = spark._jvm
    assert jvm is not None
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    companion = getattr(getattr(sources, "LowLatencyMemoryStream$"), "MODULE$")
    strings = jvm.org.apache.spark.sql.Encoders.STRING()
    return DataFrame(companion.apply(spark._jsparkSession, partitions, strings).toDF(), spark)


def build_query(
    spark: SparkSession, job: Job, opening: Opening, *, is_catching_up: bool
) -> DataFrame:
    """Readers, then an exchange and an operator for each level."""
    data = job.to_bytes()
    read = reader(data, opening, is_catching_up=is_catching_up)
    rows = _open_source(spark, len(opening.sources)).mapInArrow(read, SCHEMA)
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
        place: Checkpoint,
        *,
        claim_again: Callable[[], Job],
        on_progress: Callable[[Progress], None],
        is_to_stop: Callable[[], bool],
        tell: Callable[[str], None],
        watchdog: Watchdog,
        snapshot_s: float,
        batch_s: float,
    ) -> None:
        self._spark, self.job, self._place = spark, job, place
        self._claim_again = claim_again
        """Recovers anew: a job of a higher generation, with all earlier ones fenced."""
        self._on_progress, self._tell = on_progress, tell
        self._is_to_stop = is_to_stop
        self._watchdog = watchdog
        self._snapshot_ticks = max(1, round(snapshot_s / TICK_S))
        self._batch_s = batch_s
        self._request = StopRequest(place.root)
        self.epochs = 0
        """Ticks with records so far, of the source with most."""
        self.is_stopped = False
        """Was it asked to end?"""

    def run(self, until: str) -> None:
        """Run until all is read, or until the run is to stop; supervise the query meanwhile."""
        if self._is_to_stop() and not self.job.is_ending:
            self.is_stopped = True
            return
        deaths = 0
        while True:
            opening = self._open()
            before = opening.snapshots.common()
            try:
                with self._watchdog.watching():
                    self._run(opening, until)
                return
            except StreamingQueryException as error:
                deaths = 1 if opening.snapshots.common() > before else deaths + 1
                self._start_again_after(error, deaths)

    def close(self) -> None:
        """The last tick: all sources end in it, together."""
        self.job = replace(self._claim_again(), is_ending=True)
        self.run("caught-up")
        identity = self._place.identity()
        assert identity is not None
        self._place.save(replace(identity, is_closed=True))

    def _start_again_after(self, error: StreamingQueryException, deaths: int) -> None:
        """Claim a new generation if a process died; raise what it was if not, or too often."""
        if recover(str(error)) is not None or not _DEATHS.search(str(error)):
            raise sentence_of(error, self._place) from error
        if deaths > RESTARTS:
            raise RunFailure(dies_again(cause_of(str(error)), deaths)) from error
        ending = self.job.is_ending
        self.job = replace(self._claim_again(), is_ending=ending)
        self._tell(
            f"a process of Spark's died ({cause_of(str(error))}); the query starts again as "
            f"generation {self.job.generation}, {deaths} of at most {RESTARTS} times without a "
            "snapshot; nothing is lost"
        )

    def _open(self) -> Opening:
        identity = self._place.identity()
        assert identity is not None
        return open_generation(
            self.job,
            partitions=identity.partitions,
            snapshot_ticks=self._snapshot_ticks,
            tick_s=TICK_S,
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
        rows = build_query(self._spark, self.job, opening, is_catching_up=until == "caught-up")
        writer = rows.writeStream.format("noop").outputMode("update")
        # Spark's own checkpoint of such a query says nothing: ours is the truth.
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
        """Is the run to stop? The end of the input comes whole."""
        if not self.job.is_ending and self._is_to_stop():
            self.is_stopped = True
        return self.is_stopped

    def _is_done(self, opening: Opening, until: str) -> bool:
        return until == "caught-up" and opening.has_caught_up()

    def _has_ended(self, opening: Opening) -> bool:
        """Have all readers stopped, and is there a snapshot of all that they sent?"""
        is_seen = self._request.is_seen_by(opening.sources)
        return is_seen and opening.snapshots.common() >= opening.planned()


def dies_again(cause: str, deaths: int) -> Problem:
    """What is said of a run whose processes die each time."""
    return Problem(
        "dies-again",
        f"a process of Spark's died {many(deaths, 'time')} without a snapshot in between: {cause}",
        "see what ends it (a function that ends its process, or too little memory), and run again: "
        "nothing is lost",
    )
