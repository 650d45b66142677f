"""Every kind of failure that the table of exit codes has, raised as its system raises it."""

import errno
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

from cutwater.errors import (
    ConnectorError,
    CutwaterError,
    FencedError,
    FlowError,
    InputError,
    Problem,
    RefusedError,
    ResourceError,
    RunError,
    RunFailure,
    StepError,
    TargetError,
    embed,
    extract,
)

AGAIN, CHANGE = 1, 2


@dataclass(frozen=True)
class Kind:
    """One row: what fails, and what a process must end with."""

    fail: Callable[[], None]
    code: int


def raising(error: BaseException) -> Callable[[], None]:
    """Raise an error, as if it came from below."""

    def fail() -> None:
        raise error

    return fail


def across(error: CutwaterError) -> Callable[[], None]:
    """Raise an error of ours that came out of a worker, through the words of Spark."""

    def fail() -> None:
        found = extract(f"Caused by: org.apache.spark.SparkException: {embed(error)}")
        assert found
        raise found

    return fail


def of_postgres(state: str | None) -> Callable[[], None]:
    """Let the server refuse the work of a sink, with an SQLSTATE; None: it does not answer."""

    def fail() -> None:
        import psycopg

        from cutwater.spark.connectors.postgres import connections
        from cutwater.spark.connectors.postgres.settings import Database

        kind = psycopg.errors.lookup(state) if state else psycopg.OperationalError

        def opened(*_: object) -> None:
            raise kind("it is so")

        connections._opened = opened
        connections.PAUSES_S = (0.0,)
        connections.persist(Database("host=nowhere"), "sink 'out'", "write epoch 3", lambda _: None)

    return fail


def of_kafka(name: str) -> Callable[[], None]:
    """Let the client raise an error with one of Kafka's codes."""

    def fail() -> None:
        import confluent_kafka

        from cutwater.spark.connectors.kafka.errors import in_words
        from cutwater.spark.connectors.kafka.settings import Cluster

        code = getattr(confluent_kafka.KafkaError, name)
        with in_words("sink 'out'", Cluster("kafka-1:9092"), "rows"):
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(code))

    return fail


def of_a_store(status: int) -> Callable[[], None]:
    """Let an object store answer every request for a Delta table with an HTTP status."""

    class Store(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    def fail() -> None:
        from cutwater.spark.connectors.delta.sink import Delta

        server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_SKIP_SIGNATURE": "true",
            "max_retries": "0",
        }
        Delta("s3://bucket/table", storage_options=options)._log("out").ledger()

    return fail


def of_a_delta_log(damage: Callable[[Path], None]) -> Callable[[], None]:
    """Let the log of a Delta table be damaged."""

    def fail() -> None:
        import pyarrow as pa
        from deltalake import write_deltalake

        from cutwater.spark.connectors.delta.sink import Delta

        with tempfile.TemporaryDirectory() as folder:
            for _ in range(3):
                write_deltalake(folder, pa.table({"n": [1]}), mode="append")
            damage(Path(folder) / "_delta_log")
            Delta(folder).check("out", None, 0)

    return fail


def of_the_machine(number: int) -> Callable[[], None]:
    """Let a call of the operating system fail."""
    return raising(OSError(number, os.strerror(number), "state/cutwater.json"))


def of_a_worker(number: int) -> Callable[[], None]:
    """Let a call of the operating system fail in a process of Spark's."""

    def fail() -> None:
        from cutwater.spark.job.error_boundary import error_boundary

        try:
            with error_boundary():
                of_the_machine(number)()
        except RuntimeError as error:
            found = extract(f"PythonException: {error}")
            assert found
            raise found from None

    return fail


def of_a_query(message: str, damaged: str | None = None) -> Callable[[], None]:
    """Let Spark end the query of a run on micro-batches, perhaps with a damaged checkpoint."""

    def fail() -> None:
        from pyspark.errors import StreamingQueryException
        from support.fuzz.checkpoints import make_checkpoint

        from cutwater.spark.query_failures import sentence_of

        with tempfile.TemporaryDirectory() as folder:
            made = make_checkpoint(Path(folder))
            if damaged:
                made.file(damaged).write_bytes(b"x")
            raise sentence_of(StreamingQueryException(message), made.checkpoint)

    return fail


def of_real_time(message: str, task: CutwaterError | None = None) -> Callable[[], None]:
    """Let Spark end the query of a real-time run at each attempt, and a task say why."""

    def fail() -> None:
        from pyspark.errors import StreamingQueryException

        from cutwater.spark.checkpoint.store import Checkpoint
        from cutwater.spark.realtime import drive as drives

        def ended(*_: object) -> None:
            raise StreamingQueryException(message)

        opening = SimpleNamespace(
            snapshots=SimpleNamespace(common=lambda: -1), failure=lambda: task, slots=3
        )
        drives.time = SimpleNamespace(sleep=lambda _: None, monotonic=time.monotonic)
        with tempfile.TemporaryDirectory() as folder:
            drive = drives.RealTimeDrive(
                None,
                SimpleNamespace(is_ending=False, generation=1, checkpoint=folder),
                Checkpoint(Path(folder)),
                claim_again=lambda: None,
                on_progress=print,
                is_to_stop=lambda: False,
                notify=lambda _: None,
                watchdog=drives.Watchdog(1e6, lambda: None),
                snapshot_s=1.0,
                batch_s=60.0,
                readers=1,
            )
            drive._open, drive._run = lambda: opening, ended
            drive._claim_next = lambda is_ending: None
            drive.run("stopped")

    return fail


def of_a_start(script: str) -> Callable[[], None]:
    """Let the program that starts Spark be a script."""

    def fail() -> None:
        from cutwater.spark.embedded import session

        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "bin" / "spark-submit"
            program.parent.mkdir()
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o700)
            os.environ["SPARK_HOME"] = folder
            session.java_home = lambda: Path(folder)
            session.embedded_session(Path(folder))

    return fail


def of_a_log(number: int) -> Callable[[], None]:
    """Let the log of a run be on a disk that fails."""

    def fail() -> None:
        from cutwater.spark.telemetry.run_log import RunLog

        class Full:
            name = "run.log"

            def write(self, text: str) -> None:
                raise OSError(number, os.strerror(number))

        RunLog(Full(), "items").event("epoch")

    return fail


def _kind(kind: type[CutwaterError]) -> CutwaterError:
    return kind(Problem("some-code", "it failed"))


KINDS: dict[str, Kind] = {
    **{
        f"class-{kind.__name__}": Kind(raising(_kind(kind)), code)
        for code, kinds in (
            (AGAIN, (RunFailure, FencedError, ConnectorError, ResourceError)),
            (CHANGE, (RunError, RefusedError, StepError, InputError, FlowError, TargetError)),
        )
        for kind in kinds
    },
    "worker-fenced": Kind(across(_kind(FencedError)), AGAIN),
    "worker-late-event": Kind(across(_kind(RunError)), CHANGE),
    "worker-step-failed": Kind(across(_kind(StepError)), CHANGE),
    "worker-damaged-file": Kind(across(_kind(RefusedError)), CHANGE),
    "spark-of-any-kind": Kind(of_a_query("java.lang.IllegalStateException: oops"), AGAIN),
    "spark-no-room": Kind(of_a_query(f"java.io.IOException: {os.strerror(errno.ENOSPC)}"), AGAIN),
    "spark-no-permission": Kind(
        of_a_query(f"java.io.FileNotFoundException: 1.tmp ({os.strerror(errno.EACCES)})"), CHANGE
    ),
    "spark-no-memory": Kind(of_a_query("java.lang.OutOfMemoryError: Java heap space"), AGAIN),
    "spark-damaged-checkpoint": Kind(of_a_query("oops", "state/spark/offsets/1"), CHANGE),
    "spark-bad-record": Kind(of_a_query(embed(_kind(InputError))), CHANGE),
    "start-killed": Kind(of_a_start("kill -KILL $$"), AGAIN),
    "start-no-memory": Kind(of_a_start("echo java.lang.OutOfMemoryError; exit 1"), AGAIN),
    "start-refused-settings": Kind(of_a_start("echo Unrecognized option; exit 1"), CHANGE),
    "realtime-worker-dies": Kind(of_real_time("Python worker exited unexpectedly"), AGAIN),
    "realtime-no-slots": Kind(of_real_time("CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT"), AGAIN),
    "realtime-no-room": Kind(of_real_time(os.strerror(errno.ENOSPC)), AGAIN),
    "realtime-fenced": Kind(of_real_time(embed(_kind(FencedError))), AGAIN),
    "realtime-bad-record": Kind(of_real_time(embed(_kind(InputError))), CHANGE),
    "realtime-sink-down": Kind(of_real_time("EOFException", _kind(ConnectorError)), AGAIN),
    "realtime-step-failed": Kind(of_real_time("EOFException", _kind(StepError)), CHANGE),
    "bug": Kind(raising(KeyError("x")), CHANGE),
    "memory": Kind(raising(MemoryError()), AGAIN),
    **{
        f"errno-{errno.errorcode[number]}": Kind(of_the_machine(number), code)
        for code, numbers in (
            (AGAIN, (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EROFS)),
            (AGAIN, (errno.ENOMEM, errno.EMFILE, errno.ECONNREFUSED, errno.ETIMEDOUT)),
            (CHANGE, (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR)),
            (CHANGE, (errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.ELOOP)),
            (CHANGE, (errno.EINVAL, errno.EXDEV, errno.EADDRINUSE, errno.EADDRNOTAVAIL)),
        )
        for number in numbers
    },
    "worker-errno-ENOSPC": Kind(of_a_worker(errno.ENOSPC), AGAIN),
    "worker-errno-EACCES": Kind(of_a_worker(errno.EACCES), CHANGE),
    "log-errno-ENOSPC": Kind(of_a_log(errno.ENOSPC), AGAIN),
    "log-errno-EACCES": Kind(of_a_log(errno.EACCES), CHANGE),
    **{
        f"postgres-{state}": Kind(of_postgres(state), code)
        for code, states in (
            (AGAIN, (None, "08006", "25006", "25P03", "40001", "40P01", "53100", "53300", "55006")),
            (AGAIN, ("55P03", "57014", "57P01", "57P03", "58030", "XX000")),
            (CHANGE, ("22003", "22P02", "23505", "23502", "28P01", "42501", "42P01", "3D000")),
        )
        for state in states
    },
    **{
        f"delta-status-{status}": Kind(of_a_store(status), code)
        for code, statuses in (
            (AGAIN, (408, 409, 412, 425, 429, 500, 503)),
            (CHANGE, (401, 403, 404)),
        )
        for status in statuses
    },
    "delta-garbage": Kind(of_a_delta_log(lambda log: max(log.iterdir()).write_bytes(b"x")), CHANGE),
    "delta-missing": Kind(of_a_delta_log(lambda log: sorted(log.iterdir())[1].unlink()), CHANGE),
    "delta-torn": Kind(of_a_delta_log(lambda log: min(log.iterdir()).write_bytes(b"")), CHANGE),
    **{
        f"kafka-{name}": Kind(of_kafka(name), code)
        for code, names in (
            (AGAIN, ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_MSG_TIMED_OUT")),
            (AGAIN, ("LEADER_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS", "COORDINATOR_NOT_AVAILABLE")),
            (CHANGE, ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD")),
            (CHANGE, ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL")),
            (CHANGE, ("UNSUPPORTED_SASL_MECHANISM", "TOPIC_AUTHORIZATION_FAILED")),
            (CHANGE, ("GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")),
            (CHANGE, ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "INVALID_TRANSACTION_TIMEOUT")),
            (CHANGE, ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")),
            (CHANGE, ("_INVALID_ARG", "_CONFLICT", "TOPIC_EXCEPTION", "INVALID_CONFIG")),
            (CHANGE, ("POLICY_VIOLATION", "UNSUPPORTED_VERSION")),
        )
        for name in names
    },
}
