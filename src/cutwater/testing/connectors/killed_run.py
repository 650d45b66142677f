"""Runs of the counting flow as separate processes, and what a reader must see."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutwater.flow.travel.pickling import pickle_by_value
from cutwater.flow.user_modules import held_by, own_modules
from cutwater.observers.folder import FolderObserver
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.sink import Folder
from cutwater.testing.connectors.counting import SOURCE, Click, click, expected
from cutwater.testing.connectors.processes import (
    kill_all,
    numbered_files,
    refusal_of,
    result_of,
    wait_until,
)
from cutwater.testing.connectors.traps import Trap, Trapped

__all__ = ["ROWS_PER_EPOCH", "KilledRun", "start_job"]

_MAX_BYTES = 4_000
ROWS_PER_EPOCH = _MAX_BYTES // len('{"key":"k12","position":123}\n')
_LOCK_WAIT_SECONDS = 20
"""How long a run waits for an earlier one that is about to die, in seconds."""
_IN_EPOCH = ("before-the-batch", "in-the-batch")

_Seen = dict[str, list[tuple[int, int]]]
"""Number and position of the rows of each key, in the order a reader sees them."""


@dataclass
class KilledRun:
    """A checkpoint with its input and output, and its runs."""

    folder: Path
    sink: SinkConnector
    read: Callable[[], Iterable[Mapping[str, Any]]]
    """What a reader of the output sees."""
    has_order: bool = True
    """Does a reader see the rows of a key in order?"""
    source: SourceConnector | None = None
    """The source; None: files in the folder ``in``."""
    more_sources: dict[str, SourceConnector] = field(default_factory=dict)
    """The other sources of a flow that has several."""
    append: Callable[[Sequence[Click]], None] | None = None
    """Adds records to such a source."""
    master: str = "local[2]"
    conf: dict[str, str] = field(default_factory=dict)
    """Settings of a session that is passed to the run; without any the run creates its own."""
    asked: dict[str, Any] = field(default_factory=dict)
    """Further options of a start, such as ``adopt``."""
    fed: int = 0
    """The number of events in its input."""
    flow: str = "cutwater.testing.connectors.counting:flow_to"
    """A function from the names of the sinks to the flow."""
    traps: int = 0
    starts: int = 0

    @classmethod
    def of_source(
        cls, folder: Path, source: SourceConnector, append: Callable[[Sequence[Click]], None]
    ) -> KilledRun:
        """A run that reads a source and writes to a folder."""
        out = folder / "out-of-the-kit"
        sink, reader = Folder(str(out)), FolderObserver(str(out))
        return cls(folder, sink, reader.rows, source=source, append=append)

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoint."""
        return self.folder / "checkpoint"

    # --- input -----------------------------------------------------------------------------------

    def feed(self, epochs: int) -> None:
        """Add input for some epochs."""
        clicks = [click(self.fed + n) for n in range(epochs * ROWS_PER_EPOCH)]
        (self.append or self._append_file)(clicks)
        self.fed += len(clicks)

    def _append_file(self, clicks: Sequence[Click]) -> None:
        source = self.folder / "in"
        source.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(vars(each), separators=(",", ":")) + "\n" for each in clicks]
        hidden = source / f".{self.fed:09}.jsonl"
        hidden.write_text("".join(lines))  # a source must never see half a file
        hidden.rename(source / f"{self.fed:09}.jsonl")

    def feed_ahead(self, epochs: int) -> None:
        """Add input for at least this many epochs after those that have begun."""
        begun = (len(self.offsets()) and self.offsets()[-1] + 1) * ROWS_PER_EPOCH
        missing = epochs - (self.fed - begun) // ROWS_PER_EPOCH
        if missing > 0:
            self.feed(missing)

    # --- runs ------------------------------------------------------------------------------------

    def trap(self, point: str, epochs_ahead: int = 1) -> Trap:
        """A trap at a point, some epochs after the newest one."""
        self.traps += 1
        start = self.next_epoch() + epochs_ahead
        if point in _IN_EPOCH:
            start = self.rows() + epochs_ahead * ROWS_PER_EPOCH + ROWS_PER_EPOCH // 2
        return Trap(point, self.folder / f"trap-{self.traps}", start)

    def start(
        self,
        until: str = "stopped",
        trap: Trap | None = None,
        environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> subprocess.Popen[str]:
        """Start a run, in its own session, with the command."""
        self.starts += 1
        files = JsonLines(str(self.folder / "in"), _MAX_BYTES)
        settings = {
            "sources": {SOURCE: self.source or files, **self.more_sources},
            "sinks": {"counts": Trapped(self.sink)},
            "checkpoint": str(self.checkpoint),
            "until": until,
            "master": self.master,
            "conf": self.conf,
            "asked": self.asked,
            "flow": self.flow,
        }
        variables = {**(trap.environment() if trap else {}), **(environment or {})}
        return start_job(self.folder / f"start-{self.starts}", settings, variables, before)

    def finish(self, trap: Trap | None = None, **environment: str) -> dict[str, Any]:
        """Run until all is read; returns its report."""
        return result_of(self.start("caught-up", trap, environment))

    def refusal(self, **environment: str) -> str:
        """Run, expecting a refusal; returns its message."""
        return refusal_of(self.start("caught-up", environment=environment))

    def kill_at(self, point: str) -> None:
        """Start a run, and kill it at a point."""
        self.feed_ahead(4)
        self.kill_in(self.trap(point))

    def kill_in(self, trap: Trap) -> None:
        """Start a run with a trap, and kill it there."""
        process = self.start(trap=trap)
        try:
            wait_until(process, lambda: trap.is_reached)
        finally:
            kill_all(process)

    def kill_at_random(self, rng: random.Random) -> str:
        """Start a run, and kill it somewhere in an epoch or while it starts."""
        self.feed_ahead(5)
        epochs, part = rng.randrange(4), rng.random()
        before = self.generation()
        goal = self.next_epoch() + epochs
        process = self.start()
        try:
            began = time.monotonic()
            wait_until(process, lambda: self.generation() > before)
            if epochs:
                wait_until(process, lambda: self.next_epoch() >= goal - 1)
                began = time.monotonic()
                wait_until(process, lambda: self.next_epoch() >= goal)
            # The point of the kill is a random share of the time that the last epoch took.
            time.sleep(part * min(time.monotonic() - began, 3.0))
        finally:
            kill_all(process)
        return f"{epochs} epochs and {part:.2f}"

    # --- what is seen ----------------------------------------------------------------------------

    def offsets(self) -> list[int]:
        """The epochs in Spark's offset log."""
        return numbered_files(self.checkpoint / "spark" / "offsets")

    def commits(self) -> list[int]:
        """The epochs in Spark's commit log."""
        return numbered_files(self.checkpoint / "spark" / "commits")

    def next_epoch(self) -> int:
        """The first epoch that is not yet planned."""
        return max(self.offsets(), default=-1) + 1

    def generation(self) -> int:
        """How many runs have claimed the checkpoint."""
        path = self.checkpoint / "cutwater.json"
        return int(json.loads(path.read_text())["generation"]) if path.exists() else 0

    def seen(self) -> _Seen:
        """The rows of each key, in the order a reader sees them."""
        found: _Seen = {}
        for row in self.read():
            found.setdefault(row["key"], []).append((row["number"], row["position"]))
        return found if self.has_order else {key: sorted(rows) for key, rows in found.items()}

    def rows(self) -> int:
        """How many rows a reader sees."""
        return sum(map(len, self.seen().values()))

    def check_prefix(self) -> None:
        """A reader sees a prefix of the rows of each key, each once and in order."""
        given = expected(self.fed)
        for key, rows in self.seen().items():
            assert rows == given[key][: len(rows)], f"the rows of '{key}' are {rows}"

    def check_whole(self) -> None:
        """A reader sees all rows, each once and in order."""
        assert self.seen() == expected(self.fed)


def start_job(
    path: Path,
    settings: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start a run of the counting flow with the command; its settings are in a file."""
    modules = [sys.modules[name] for name in own_modules(held_by(_bound(settings)))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        pickle_by_value({"lock_wait_seconds": _LOCK_WAIT_SECONDS, **settings}, modules)
    )
    return subprocess.Popen(
        [*before, sys.executable, "-m", "cutwater.testing.connectors.job", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **(environment or {})},
    )


def _bound(settings: Mapping[str, Any]) -> list[Any]:
    trapped = (sink.inner for sink in settings["sinks"].values())
    return [*settings["sources"].values(), *trapped]
