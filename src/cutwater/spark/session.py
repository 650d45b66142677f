"""The embedded Spark session, with the settings that a flow needs and those that matter."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from cutwater.errors import Problem, RunError
from cutwater.spark.java import java_home

__all__ = ["check_session", "embedded_session"]

_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"

_SETTINGS = {
    _PROVIDER: _STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_LOGGING = """status = off
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


def embedded_session(scratch: Path, *, master: str = "local[*]", partitions: int) -> SparkSession:
    """A session of our own; Spark's words go to ``spark.log`` in the scratch folder."""
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch.mkdir(parents=True, exist_ok=True)
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOGGING.format(log=scratch / "spark.log"))
    # A path of a Unix socket has at most 107 bytes, so it cannot lie in just any scratch folder.
    sockets = tempfile.mkdtemp(prefix="cutwater-")
    settings = {
        **_SETTINGS,
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.python.unix.domain.socket.dir": sockets,
        "spark.local.dir": sockets,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Xss8m -Dlog4j2.configurationFile=file:{logging}",
    }
    conf = SparkConf(loadDefaults=False).setAppName("cutwater").setMaster(master)
    conf.setAll(list(settings.items()))
    with (scratch / "jvm.log").open("ab") as log:
        gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    return SparkSession(SparkContext(conf=conf, gateway=gateway))


def check_session(spark: SparkSession, *, partitions: int) -> None:
    """Refuse a session on which a flow would not keep its guarantees, with what to set."""
    problems = []
    if not hasattr(spark, "_jvm"):
        problems.append(
            Problem(
                "connect-session",
                "the session is a Spark Connect client; a flow needs the driver's own session",
                "run the flow where the driver runs, with a classic SparkSession",
            )
        )
        raise RunError(problems)
    if spark.conf.get(_PROVIDER, None) != _STATE_STORE:
        problems.append(_setting(_PROVIDER, _STATE_STORE))
    shuffles = spark.conf.get("spark.sql.shuffle.partitions", None)
    if shuffles != str(partitions):
        problems.append(_setting("spark.sql.shuffle.partitions", str(partitions)))
    if problems:
        raise RunError(problems)


def _setting(name: str, value: str) -> Problem:
    return Problem(
        "session-setting",
        f"the session does not have {name} = {value}; the state of a flow rests on it",
        f"set it before the session starts: .config('{name}', '{value}')",
    )
