"""The embedded Spark session, with the settings that a flow needs and those that matter."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from cutwater.errors import Problem, RefusedError
from cutwater.spark.embedded.fork_server import start_fork_server
from cutwater.spark.embedded.java import java_home
from cutwater.spark.state.partitions import SETTING
from cutwater.spark.storage.durable import make_folder

__all__ = [
    "check_session",
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
    # Two attempts of a task write other bytes: a version must not mix what both have written.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
"""What any session must have."""

_CHANGEABLE = {
    # Snapshots are uploaded and old files deleted meanwhile: a run that lives shorter never does.
    "spark.sql.streaming.stateStore.maintenanceInterval": "20s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What the user interface would show is kept in memory also where there is none.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
"""What suits a run, and may be set otherwise."""

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
"""Settings on which a flow rests, or for which a run has a word of its own."""

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
    """Why a setting of the embedded session is not the user's to make."""
    if name in _OURS:
        said = f"{name} is set by the run; a flow rests on it"
        return Problem("setting-of-ours", said, "leave it out, or run on a session of your own")
    if not name.startswith("spark."):
        said = f"'{name}' is no setting of Spark; their names begin with 'spark.'"
        return Problem("unknown-setting", said, f"did you mean 'spark.{name}'?")
    return None


def embedded_session(
    scratch: Path,
    *,
    master: str = "local[*]",
    partitions: int | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> SparkSession:
    """A session of our own; Spark's words go to ``spark.log`` in the scratch folder.

    `more` are settings besides ours.
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
    java = f"-Xss8m -Dlog4j2.configurationFile=file:{logging} {more.get(_JAVA_OPTIONS, '')}"
    settings = {
        **_SETTINGS,
        **(_on_this_machine() if is_on_this_machine(master) else {}),
        **({SETTING: str(partitions)} if partitions else {}),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **more,
        _JAVA_OPTIONS: java.strip(),
    }
    conf = SparkConf(loadDefaults=False).setAppName("cutwater").setMaster(master)
    conf.setAll(list(settings.items()))
    try:
        with _python_processes(master, more):
            with (scratch / "jvm.log").open("ab") as log, _compiled_pyspark(master):
                # A process has one JVM for life: a second one would be started and never used.
                # Ctrl-C is for this process alone: Python workers would die of it in mid-epoch.
                gateway = SparkContext._gateway or launch_gateway(  # type: ignore[no-untyped-call]
                    conf, {"stdout": log, "stderr": log, "start_new_session": True}
                )
            with _same_interrupts():
                return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, PySparkRuntimeError) as error:
        raise RefusedError(_not_started(error, scratch)) from error


@contextmanager
def _compiled_pyspark(master: str) -> Iterator[None]:
    """Let the JVM started meanwhile run its Python processes on the installed, compiled pyspark.

    Spark puts ``python/lib/pyspark.zip`` of its home first on their path, and each of a dozen
    processes would compile the sources in it anew, which is half of what a start costs. A home
    without that folder, everything else being the same, leaves them what this process imports.
    """
    is_needed = SparkContext._gateway is None and master.startswith("local")
    if "SPARK_HOME" in os.environ or not is_needed:
        yield
        return
    home = Path(tempfile.mkdtemp(prefix="spark-", dir=_temporary()))
    for entry in Path(_find_spark_home()).iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


@contextmanager
def _python_processes(master: str, more: Mapping[str, str]) -> Iterator[None]:
    """Let a session that is made meanwhile have its Python processes forked, where that is safe.

    Not if they are of another pyspark, or are given variables that count when a process starts.
    """
    is_local = sys.platform == "linux" and master.startswith("local")
    is_plain = not any(name.startswith("spark.executorEnv.") for name in more)
    can_fork = is_local and is_plain and "SPARK_HOME" not in os.environ
    python = _forking() if can_fork else sys.executable
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    try:
        yield
    finally:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


@cache
def _forking() -> str:
    """What Spark runs in place of the interpreter: one server for this process, for life."""
    return start_fork_server(Path(_temporary()))


@contextmanager
def _same_interrupts() -> Iterator[None]:
    """Leave it to the caller what Ctrl-C does; a Spark context would cancel its jobs."""
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


def _on_this_machine() -> dict[str, str]:
    """What can be settled where no other machine takes part: no port is open to the network."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.unix.domain.socket.dir": _temporary(),
        "spark.local.dir": _temporary(),
    }


@cache
def _temporary() -> str:
    """A folder for sockets and shuffled data: one for the JVM of this process, for life.

    A path of a Unix socket has at most 107 bytes, so it cannot lie in just any scratch folder.
    """
    made = tempfile.mkdtemp(prefix="cutwater-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _not_started(error: Exception, scratch: Path) -> Problem:
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage() if java is not None else error).strip() or type(error).__name__
    return Problem(
        "spark-did-not-start",
        f"Spark did not start: {said.splitlines()[0]}",
        f"see {scratch / 'jvm.log'}, or run with --debug",
    )


def check_session(spark: SparkSession) -> None:
    """Refuse a session on which a flow would not keep its guarantees, with what to set."""
    if not hasattr(spark, "_jvm"):
        raise RefusedError(
            Problem(
                "connect-session",
                "the session is a Spark Connect client; a flow needs the driver's own session",
                "run the flow where the driver runs, with a classic SparkSession",
            )
        )
    found = {name: spark.conf.get(name, None) for name in _NEEDED}
    problems = [_setting(n, value, found[n]) for n, value in _NEEDED.items() if found[n] != value]
    if problems:
        raise RefusedError(problems)


def _setting(name: str, value: str, found: str | None) -> Problem:
    return Problem(
        "session-setting",
        f"the session has {name} = {found or 'nothing'}, not {value}; the state of a flow rests "
        "on it",
        f"set it before the session starts: .config('{name}', '{value}')",
    )
