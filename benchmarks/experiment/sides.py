"""The sides of the experiment: each is a command with a file of settings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flink_home

__all__ = ["INTERVALS_MS", "SIDES", "Place", "Side"]

HERE = Path(__file__).resolve().parent
INTERVALS_MS = (50, 500, 1000)
"""Between checkpoints of Flink, and between snapshots of ours, as in the paper."""
EXACTLY_ONCE, NONE = "exactly-once", "none"


@dataclass(frozen=True)
class Place:
    """Where a side reads and writes."""

    folder: Path
    dsn: str
    url: str
    """The same database, for JDBC."""
    table: str
    rate: float

    @property
    def began(self) -> Path:
        """When document 0 was due, once the side has said so."""
        return self.folder / "began"


@dataclass(frozen=True)
class Side:
    """One engine with one guarantee."""

    engine: str
    guarantee: str
    interval_ms: int | None = None
    """Between checkpoints or snapshots; None: it has none, or they are not apart from commits."""
    how: str = ""
    """What of the engine is meant, if it has several ways."""

    @property
    def name(self) -> str:
        """As in tables."""
        parts = [self.engine, *([self.how] if self.how else []), self.guarantee]
        return ", ".join([*parts, *([f"{self.interval_ms} ms"] if self.interval_ms else [])])

    @property
    def file(self) -> str:
        """As a name of a file."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower()).replace("--", "-")

    def why_not(self) -> str | None:
        """A sentence, if it cannot run here."""
        return flink_home.why_not() if "Flink" in self.engine else None

    def command(self, place: Place) -> list[str]:
        """What starts it, once its settings are written; again after a crash."""
        settings = self._settings(place)
        file = place.folder / "settings.json"
        file.write_text(json.dumps(settings))
        if self.engine == FLINK:
            properties = place.folder / "settings.properties"
            properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
            path = ":".join(map(str, flink_home.class_path()))
            options = [*JAVA_OPTIONS, f"-Dlog4j.configurationFile={LOGGING}"]
            launcher = str(flink_home.java())
            return [launcher, *options, "-cp", path, "InvertedIndex", str(properties)]
        python = str(flink_home.PYTHON) if self.engine == PYFLINK else sys.executable
        return [python, str(HERE / SCRIPTS[self.engine]), str(file)]

    def environment(self) -> Mapping[str, str]:
        """The environment of the command."""
        return os.environ | {"JAVA_HOME": str(flink_home.java().parent.parent)}

    def _settings(self, place: Place) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "dsn": place.dsn,
            "url": place.url,
            "table": place.table,
            "folder": str(place.folder),
            "began": str(place.began),
            "rate": place.rate,
            "guarantee": self.guarantee,
            "interval_ms": self.interval_ms,
        }
        if self.engine in MODES:
            release = {"on commit": "commit"}.get(self.how, "early")
            return settings | {"mode": MODES[self.engine], "release": release}
        if self.engine in (FLINK, PYFLINK):
            settings |= {"corpus": str(place.folder / "corpus")} | FLINK_SETTINGS
            settings |= self._checkpoints(place)
        if self.engine == PYFLINK:
            path = [f"file://{jar}" for jar in flink_home.class_path()[-2:]]
            settings |= PYFLINK_SETTINGS | {"pipeline.jars": ";".join(path)}
        return settings

    def _checkpoints(self, place: Place) -> dict[str, str]:
        """What Flink is told of checkpoints; after a crash, with which one it begins."""
        if not self.interval_ms:
            return {}
        kept = place.folder / "checkpoints"
        done = [path.parent for path in kept.glob("*/chk-*/_metadata")]
        newest = max(done, key=lambda path: path.stat().st_mtime, default=None)
        return {
            "execution.checkpointing.interval": f"{self.interval_ms} ms",
            "execution.checkpointing.storage": "filesystem",
            "execution.checkpointing.dir": f"file://{kept}",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            **({"execution.state-recovery.path": f"file://{newest}"} if newest else {}),
        }


OURS, MICRO_BATCHES = "Cutwater, real time", "Cutwater, micro-batches"
PYSPARK, FLINK, PYFLINK = "PySpark", "Flink", "PyFlink"
MODES = {OURS: "realtime", MICRO_BATCHES: "microbatch"}
SCRIPTS = {
    OURS: "cutwater_job.py",
    MICRO_BATCHES: "cutwater_job.py",
    PYSPARK: "pyspark_job.py",
    PYFLINK: "pyflink_job.py",
}
LOGGING = HERE / "flink" / "log4j2.properties"
JAVA_OPTIONS = (
    "-Xmx2g",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
)
FLINK_SETTINGS = {
    "parallelism.default": "2",
    "execution.buffer-timeout.interval": "0 ms",
    "pipeline.object-reuse": "true",
    "pipeline.generic-types": "true",
    "state.backend.type": "hashmap",
    "execution.checkpointing.min-pause": "0 ms",
    "restart-strategy.type": "none",
}
"""The buffer timeout and the state backend are those of the paper."""
PYFLINK_SETTINGS = {
    "python.execution-mode": "thread",
    "python.fn-execution.bundle.size": "1",
    "python.fn-execution.bundle.time": "1",
}
"""Python inside the JVM; in the mode with processes, bundles of one element."""
SIDES: Sequence[Side] = (
    Side(OURS, NONE),
    *(Side(OURS, EXACTLY_ONCE, interval) for interval in INTERVALS_MS),
    Side(MICRO_BATCHES, EXACTLY_ONCE, how="early"),
    Side(MICRO_BATCHES, EXACTLY_ONCE, how="on commit"),
    Side(PYSPARK, EXACTLY_ONCE),
    Side(FLINK, NONE),
    *(Side(FLINK, EXACTLY_ONCE, interval) for interval in INTERVALS_MS),
    Side(PYFLINK, NONE),
    *(Side(PYFLINK, EXACTLY_ONCE, interval) for interval in INTERVALS_MS),
)
