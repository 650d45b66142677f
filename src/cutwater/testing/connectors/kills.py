"""Connectors on embedded Spark, in processes that are killed with SIGKILL, as ours are killed.

The flow counts per key, so a lost row leaves a gap, a duplicated row appears twice, and a state
that goes back or runs ahead repeats or skips a number (`counting`). The output is read after every
kill.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.testing.connectors.counting import Click
from cutwater.testing.connectors.killed_run import KilledRun
from cutwater.testing.connectors.processes import kill_all, refusal_of, signal_all, wait_until

__all__ = ["KilledSink", "KilledSource"]


class KilledSink:
    """Kills runs that write to a sink; a subclass makes it and reads it, as for `SinkLaws`."""

    has_order = True
    """Does a reader see the rows of a key in order?"""
    points: Sequence[str] = ("before-write", "some-buckets", "before-publish", "after-publish")
    """Where runs are killed, one after another (`traps`); then once at random."""
    seed: int | None = None
    """What the random kill is drawn from; None: a new seed, which is printed."""

    def make_sink(self, folder: Path) -> SinkConnector:
        """A new, empty sink; `folder` is empty and may be used."""
        raise NotImplementedError

    def read(self, sink: SinkConnector) -> Iterable[Mapping[str, Any]]:
        """What a reader sees, in order: rows with the fields of `Counted`; none at first."""
        raise NotImplementedError

    @pytest.fixture
    def run(self, tmp_path: Path, request: pytest.FixtureRequest) -> KilledRun:
        """A run that reads files and writes to the sink."""
        self.request = request
        sink = self.make_sink(tmp_path)
        return KilledRun(tmp_path, sink, lambda: self.read(sink), has_order=self.has_order)

    def test_kills_lose_double_and_reorder_nothing(self, run: KilledRun) -> None:
        """At each point, and at a random one; the output is read after every kill."""
        for point in self.points:
            run.kill_at(point)
            run.check_prefix()
        run.kill_at_random(_drawn_from(self.seed))
        run.check_prefix()
        run.finish()
        run.check_whole()

    def test_a_run_that_was_paused_and_replaced_shows_nothing_more(self, run: KilledRun) -> None:
        """A zombie wakes up, and is fenced."""
        run.feed(4)
        # An early sink releases rows in `write`; there is nothing to fence in `publish`.
        trap = run.trap("before-write" if run.sink.release == "early" else "before-publish")
        zombie = run.start(trap=trap)
        try:
            wait_until(zombie, lambda: trap.is_reached)
            wait_until(zombie, _rests(run))  # no other task may be paused while it holds a lock
            signal_all(zombie, signal.SIGSTOP)
            (run.checkpoint / "lock").unlink()
            run.finish()
            run.check_whole()
            trap.let_go()
            signal_all(zombie, signal.SIGCONT)
            assert "[fenced]" in refusal_of(zombie)
        finally:
            kill_all(zombie)
        run.check_whole()


def _drawn_from(seed: int | None) -> random.Random:
    """Random numbers from a seed, which is printed: pytest shows it if the test fails."""
    chosen = random.randrange(1 << 32) if seed is None else seed
    print(f"the random kill is drawn from seed = {chosen}")
    return random.Random(chosen)


def _rests(run: KilledRun) -> Callable[[], bool]:
    """Has a reader seen the same for a second?"""
    seen, since = -1, 0.0

    def look() -> bool:
        nonlocal seen, since
        rows, now = run.rows(), time.monotonic()
        if rows != seen:
            seen, since = rows, now
        return now - since >= 1.0

    return look


class KilledSource:
    """Kills runs that read a source; a subclass makes it and adds records, as for `SourceLaws`."""

    points: Sequence[str] = ("before-the-batch", "in-the-batch", "before-publish", "after-publish")
    """Where runs are killed, one after another (`traps`); then once at random."""
    seed: int | None = None
    """What the random kill is drawn from; None: a new seed, which is printed."""

    def make_source(self, folder: Path) -> SourceConnector:
        """A source of `Click` records that has none yet; an epoch reads at most 100."""
        raise NotImplementedError

    def append(self, source: SourceConnector, clicks: Sequence[Click]) -> None:
        """Append records, as a writer outside does."""
        raise NotImplementedError

    @pytest.fixture
    def run(self, tmp_path: Path, request: pytest.FixtureRequest) -> KilledRun:
        """A run that reads the source and writes to a folder."""
        self.request = request
        source = self.make_source(tmp_path)
        return KilledRun.of_source(tmp_path, source, lambda clicks: self.append(source, clicks))

    def test_kills_lose_double_and_reorder_nothing(self, run: KilledRun) -> None:
        """At each point, and at a random one; records arrive all the time."""
        for point in self.points:
            run.kill_at(point)
            run.check_prefix()
        run.kill_at_random(_drawn_from(self.seed))
        run.check_prefix()
        run.finish()
        run.check_whole()
