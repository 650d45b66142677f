"""A run of the counting flow, as a script that a user would write; its settings are in a file."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cutwater import spark as cutwater_spark
from cutwater.errors import CutwaterError
from cutwater.flow import Flow
from cutwater.spark import runner
from cutwater.spark.embedded.java import java_home
from cutwater.spark.embedded.session import _SETTINGS
from cutwater.testing.connectors.traps import VARIABLE

__all__ = ["main"]

_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_TRAVELLING = ("PYTHONPATH", VARIABLE)


def main(settings: Mapping[str, Any]) -> int:
    """Run; its report goes to standard output, a refusal to standard error."""
    spark = _session(settings)
    setattr(runner, "LOCK_WAIT_SECONDS", settings["lock_wait_seconds"])  # noqa: B010
    try:
        result = cutwater_spark.run(
            _flow(settings["flow"], settings["sinks"]),
            spark,
            sources=settings["sources"],
            sinks=settings["sinks"],
            checkpoint=settings["checkpoint"],
            until=settings["until"],
            master=settings["master"],
            settings=settings.get("settings", {}),
            **settings.get("asked", {}),
            notify=lambda sentence: print(sentence, file=sys.stderr, flush=True),
        )
    except CutwaterError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(asdict(result)))
    return 0


def _flow(maker: str, sinks: Iterable[str]) -> Flow:
    module, _, name = maker.partition(":")
    made: Flow = getattr(importlib.import_module(module), name)(sinks)
    return made


def _session(settings: Mapping[str, Any]) -> Any:
    """A session with more settings, as a user may pass one; None if there are none."""
    if not settings["conf"]:
        return None
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    given = {f"spark.executorEnv.{name}": os.environ.get(name, "") for name in _TRAVELLING}
    builder = SparkSession.builder.master(settings["master"]).appName("counting")
    for name, value in {**_SETTINGS, **_LOOPBACK, **given, **settings["conf"]}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    sys.exit(main(pickle.loads(Path(sys.argv[1]).read_bytes())))
