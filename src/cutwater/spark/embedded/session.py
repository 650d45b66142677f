"""The embedded Spark session, with the settings that a flow needs."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from cutwater.errors import (
    ConnectorError,
    CutwaterError,
    Problem,
    RefusedError,
    ResourceError,
)
from cutwater.spark.embedded import jvm
from cutwater.spark.embedded.java import java_home
from cutwater.spark.embedded.jvm import OUT_OF_MEMORY_OPTION
from cutwater.spark.embedded.launching import gateway_to, python_processes, temporary_folder
from cutwater.spark.state.partitions import SETTING
from cutwater.spark.storage.durable import make_folder

__all__ = [
    "check_session",
    "closing_session",
    "embedded_session",
    "is_on_this_machine",
    "make_active",
    "setting_problem",
]

_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"

_NEEDED = {
    _PROVIDER: _STATE_STORE,
    # Two attempts of a task write different bytes: a version must not mix them.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
"""Settings that every session must have."""

_CHANGEABLE = {
    # Maintenance uploads snapshots and deletes old files; a run shorter than that never does it.
    "spark.sql.streaming.stateStore.maintenanceInterval": "20s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The data of the user interface is kept in memory even if it is disabled.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
"""Defaults for a run, which the user may change."""

_SETTINGS = {
    **_NEEDED,
    **_CHANGEABLE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_OURS = {
    *_SETTINGS,
    SETTING,
    "spark.app.name",
    "spark.master",
    "spark.sql.warehouse.dir",
} - {*_CHANGEABLE}
"""Settings that a flow depends on, or that have an option of `run`."""

_LOGGING = """status = off
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


def setting_problem(name: str) -> Problem | None:
    """Why the user may not change a setting of the embedded session."""
    if name in _OURS:
        message = f"{name} is set by the run; a flow depends on it"
        return Problem("setting-of-ours", message, "leave it out, or run on a session of your own")
    if not name.startswith("spark."):
        message = f"'{name}' is not a Spark setting; their names begin with 'spark.'"
        return Problem("unknown-setting", message, f"did you mean 'spark.{name}'?")
    return None


def embedded_session(
    scratch: Path,
    *,
    master: str = "local[*]",
    partitions: int | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
    ours: Mapping[str, str] = MappingProxyType({}),
) -> SparkSession:
    """An embedded session; Spark's output goes to ``spark.log`` in the scratch folder.

    `more` are the user's settings, `ours` those of the engine.
    """
    problems = [problem for problem in map(setting_problem, more) if problem]
    if problems:
        raise RefusedError(problems)
    if SparkContext._active_spark_context is not None:
        raise RefusedError(
            Problem(
                "session-already-there",
                "this process already has a Spark session, and a process can have only one",
                "pass it: run(flow, spark, ...), or stop it first",
            )
        )
    os.environ["JAVA_HOME"] = str(java_home())
    make_folder(scratch)
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOGGING.format(log=scratch / "spark.log"))
    java = (
        f"-Xss8m {OUT_OF_MEMORY_OPTION} -Dlog4j2.configurationFile=file:{logging} "
        f"{more.get(_JAVA_OPTIONS, '')}"
    )
    settings = {
        **_SETTINGS,
        **(_on_this_machine(master) if is_on_this_machine(master) else {}),
        **({SETTING: str(partitions)} if partitions else {}),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **more,
        **ours,
        _JAVA_OPTIONS: java.strip(),
    }
    conf = SparkConf(loadDefaults=False).setAppName("cutwater").setMaster(master)
    conf.setAll(list(settings.items()))
    try:
        with python_processes(master, more), _same_interrupts():
            gateway = gateway_to(conf, scratch, master)
            context = SparkContext(conf=conf, gateway=gateway)
            _quieten(context)
            return SparkSession(context)
    except (Py4JError, PySparkRuntimeError, ConnectionError) as error:
        process = jvm.own()
        death = jvm.death_of(process, scratch) if process else None
        if death:
            raise ResourceError(death) from error
        if _is_stopped(error):
            raise ConnectorError(_cluster_unavailable(master, scratch)) from error
        raise RefusedError(_not_started(error, scratch)) from error


def _quieten(context: SparkContext) -> None:
    """Silence a thread of pyspark when the JVM dies: an error already explains the cause."""
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: None


@contextmanager
def closing_session(session: SparkSession, scratch: Path, *, is_ours: bool) -> Iterator[None]:
    """Stop our own session at the end; raises an error that explains why a JVM died."""
    process = jvm.own() if is_ours else None
    try:
        yield
    except CutwaterError:
        raise
    except Exception as error:  # whatever pyspark makes of a connection that broke
        death = jvm.death_of(process, scratch) if process else None
        if death:
            raise ResourceError(death) from error
        if isinstance(error, (Py4JNetworkError, ConnectionError)):
            raise ResourceError(_gone(error)) from error
        if _is_stopped(error):
            raise ResourceError(_SESSION_STOPPED) from error
        raise
    finally:
        if is_ours:
            _stop(session, is_alive=process is None or process.poll() is None)


def _stop(session: SparkSession, *, is_alive: bool) -> None:
    if is_alive:
        with suppress(Py4JNetworkError, ConnectionError):  # it is about to die
            session.stop()
            return
    # Nothing is left to stop; the next session of this process has a JVM of its own.
    SparkSession._instantiatedSession = None
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    jvm.set_own(None)


_SESSION_STOPPED = Problem(
    "session-stopped",
    "the Spark session was stopped while the run used it: its cluster gave it up, or another part "
    "of this program stopped it",
    "check the cluster, and run it again: nothing is lost",
)


def _is_stopped(error: Exception) -> bool:
    """Did Spark stop its context by itself? It does when a cluster does not answer any more."""
    return "stopped SparkContext" in str(error)


def _gone(error: Exception) -> Problem:
    text = str(error).strip() or type(error).__name__
    return Problem(
        "jvm-gone",
        f"the JVM of the session does not answer any more: {text.splitlines()[0]}",
        "find out why it died; run again on a new session: nothing is lost",
    )


@contextmanager
def _same_interrupts() -> Iterator[None]:
    """Keep the caller's handler of Ctrl-C; a Spark context would cancel its jobs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def make_active(spark: SparkSession) -> None:
    """Let Spark look for data sources in this session, in whatever thread this is."""
    SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def is_on_this_machine(master: str) -> bool:
    """Do all processes of such a session run here?

    >>> is_on_this_machine("local[2]"), is_on_this_machine("spark://127.0.0.1:7077")
    (True, True)
    >>> is_on_this_machine("spark://node-1:7077"), is_on_this_machine("yarn")
    (False, False)
    """
    return re.match(r"local\b|spark://(127\.|localhost\b|\[::1\])", master) is not None


def _on_this_machine(master: str) -> dict[str, str]:
    """Settings for a session on one machine: no port is open to the network."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.unix.domain.socket.dir": temporary_folder(),
        "spark.local.dir": temporary_folder(),
        # Other users of the machine reach the ports of loopback; in local mode Spark makes a
        # secret by itself, which never leaves the JVM.
        **({"spark.authenticate": "true"} if master.startswith("local") else {}),
    }


def _not_started(error: Exception, scratch: Path) -> Problem:
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java is not None else error).strip() or type(error).__name__
    return Problem(
        "spark-did-not-start",
        f"Spark did not start: {text.splitlines()[0]}",
        f"see {scratch / 'jvm.log'}, or run with --debug",
    )


def _cluster_unavailable(master: str, scratch: Path) -> Problem:
    return Problem(
        "cluster-unavailable",
        f"the cluster {master} did not accept the run; Spark gave up",
        f"check that its master runs and can be reached, see {scratch / 'spark.log'}, and run it "
        "again: nothing is lost",
    )


def check_session(spark: SparkSession, engine: Mapping[str, str] = MappingProxyType({})) -> None:
    """Refuse a session on which a flow would not keep its guarantees, with what to set.

    `engine` are the settings that its engine needs.
    """
    if not hasattr(spark, "_jvm"):
        raise RefusedError(
            Problem(
                "connect-session",
                "the session is a Spark Connect client; a flow needs the driver's own session",
                "run the flow where the driver runs, with a classic SparkSession",
            )
        )
    needed = {**_NEEDED, **engine}
    found = {name: spark.conf.get(name, None) for name in needed}
    problems = [_setting(n, value, found[n]) for n, value in needed.items() if found[n] != value]
    if problems:
        raise RefusedError(problems)


def _setting(name: str, value: str, found: str | None) -> Problem:
    return Problem(
        "session-setting",
        f"the session has {name} = {found or 'nothing'}, not {value}; a flow depends on it",
        f"set it before the session starts: .config('{name}', '{value}')",
    )
