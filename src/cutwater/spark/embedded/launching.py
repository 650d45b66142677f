"""Starts the JVM: with its settings in our own file, and Python processes that start quickly.

Settings are not given on the command line, which every user of the machine can read: a key of an
account may be among them.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shlex import quote
from traceback import walk_tb
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from cutwater.errors import ResourceError
from cutwater.spark.embedded import jvm
from cutwater.spark.embedded.fork_server import start_fork_server
from cutwater.spark.storage.durable import create_file

__all__ = ["gateway_to", "python_processes", "temporary_folder"]

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def gateway_to(conf: SparkConf, scratch: Path, master: str) -> Any:
    """The connection to the JVM of this process, which is started if there is none.

    A process has one JVM for life: a second one would be started and never used. Ctrl-C reaches
    this process alone: it would kill Python workers in mid-epoch.
    """
    if SparkContext._gateway is not None:
        return SparkContext._gateway
    with (scratch / "jvm.log").open("ab") as log, _compiled_pyspark(master), _settings_file(conf):
        begin = log.tell()
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                None, {"stdout": log, "stderr": log, "start_new_session": True}
            )
        except PySparkRuntimeError as error:
            process = _started_in_vain(error)
            death = jvm.death_at_start(process, scratch, begin) if process else None
            if death:
                raise ResourceError(death) from error
            raise
    jvm.set_own(gateway.proc)
    return gateway


def _started_in_vain(error: Exception) -> subprocess.Popen[bytes] | None:
    """The process that ended before it was a JVM; only a variable of pyspark's holds it."""
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return next((frame.f_locals["proc"] for frame in frames if "proc" in frame.f_locals), None)


@contextmanager
def _settings_file(conf: SparkConf) -> Iterator[None]:
    """Inside, a JVM that is started reads its settings from a file."""
    file = Path(temporary_folder()) / "settings.properties"
    with create_file(file) as opened:
        opened.write("".join(f"{_escaped(k)}={_escaped(v)}\n" for k, v in conf.getAll()).encode())
    before = os.environ.get(_ARGUMENTS)
    rest = before or "pyspark-shell"
    os.environ[_ARGUMENTS] = f"--properties-file {quote(str(file))} --load-spark-defaults {rest}"
    try:
        yield
    finally:
        file.unlink()
        if before is None:
            del os.environ[_ARGUMENTS]
        else:
            os.environ[_ARGUMENTS] = before


def _escaped(text: str) -> str:
    r"""Text in the syntax of Java's properties.

    >>> _escaped("C:\\a b=ü")
    'C\\:\\\\a\\ b\\=\\u00fc'
    """
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(_escaped_unit(code) for code in codes)


def _escaped_unit(code: int) -> str:
    if not 0x20 <= code < 0x7F:
        return f"\\u{code:04x}"
    return f"\\{chr(code)}" if chr(code) in "\\ :=#!" else chr(code)


@contextmanager
def _compiled_pyspark(master: str) -> Iterator[None]:
    """Inside, a JVM that is started runs its Python processes on the installed, compiled pyspark.

    Spark puts ``python/lib/pyspark.zip`` of its home first on their path, and each of a dozen
    processes would compile the sources in it again, which is half of what a start costs. A home
    without that folder, everything else being the same, leaves them what this process imports.
    """
    is_needed = SparkContext._gateway is None and master.startswith("local")
    if "SPARK_HOME" in os.environ or not is_needed:
        yield
        return
    home = Path(tempfile.mkdtemp(prefix="spark-", dir=temporary_folder()))
    for entry in Path(_find_spark_home()).iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


@contextmanager
def python_processes(master: str, more: Mapping[str, str]) -> Iterator[None]:
    """Inside, a session that is made has its Python processes forked, where that is safe.

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
    return start_fork_server(Path(temporary_folder()))


@cache
def temporary_folder() -> str:
    """A folder for sockets and shuffled data: one for the JVM of this process, for life.

    A path of a Unix socket has at most 107 bytes, so not every scratch folder will do.
    """
    made = tempfile.mkdtemp(prefix="cutwater-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
