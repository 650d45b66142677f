"""A standalone Spark cluster on loopback: a master and workers, each a process of its own."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

from cutwater.spark.embedded.java import java_home

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE_S = 120


@contextlib.contextmanager
def standalone_cluster(
    folder: Path, workers: int = 2, hosts: bool = False, slots: int = 1
) -> Iterator[str]:
    """The address of a cluster whose workers have so many slots each; it ends with the block.

    With `hosts` each worker has an address of its own, and Spark takes it for a machine.
    """
    with contextlib.ExitStack() as stack:
        master = _started(
            stack, folder / "master.log", "master.Master", "--port", "0", "--webui-port", "0"
        )
        address = _logged(master, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            options = ("--webui-port", "0", "--cores", str(slots), "--memory", "1g", "--work-dir")
            work = folder / f"worker-{number}"
            log = folder / f"worker-{number}.log"
            host = f"127.0.0.{number + 1 if hosts else 1}"
            _started(stack, log, "worker.Worker", *options, str(work), address, host=host)
            _logged(log, "Successfully registered with master")
        yield address


def _started(
    stack: contextlib.ExitStack, log: Path, kind: str, *arguments: str, host: str = "127.0.0.1"
) -> Path:
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": host,
    }
    command = [SPARK_CLASS, f"org.apache.spark.deploy.{kind}", "--host", host, *arguments]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return log


def _logged(log: Path, pattern: str) -> str:
    """Wait until a log has a line; returns the match."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text())
        if found:
            return found[found.lastindex or 0]
        time.sleep(0.2)
    raise AssertionError(f"{log} never had {pattern!r}:\n{log.read_text()[-2000:]}")
