"""One Spark session for all tests of a process: a JVM takes long to start, and there can be one."""

import os
import tempfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from cutwater.spark.embedded.session import embedded_session


@cache
def shared_session() -> SparkSession:
    """Return the session; it lives until the process ends."""
    scratch = Path(tempfile.gettempdir()) / f"cutwater-tests-{os.getuid()}"
    return embedded_session(scratch, master="local[2]")
