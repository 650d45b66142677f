"""Metrics of a run, counted and served by `prometheus_client`.

``docs/operations.md`` says what each of them means and what to alert on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    generate_latest,
    start_http_server,
)
from prometheus_client.samples import Sample

from cutwater.errors import Problem, RefusedError
from cutwater.spark.telemetry.progress import RunProgress

__all__ = ["DURATIONS", "Metrics", "serve"]

DURATIONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The buckets of the histogram of epoch durations, in seconds."""


class Metrics:
    """The metrics of one run."""

    def __init__(self, flow: str, now: Callable[[], float] = time.time) -> None:
        self.flow = flow
        self._now = now
        self.registry = CollectorRegistry()
        self._epochs = self._counter("epochs", "Epochs that this run has finished")
        self._epoch = self._gauge("epoch", "The newest epoch that was finished")
        self._finished = self._gauge(
            "epoch_finished_seconds", "When that epoch was finished, in seconds since 1970"
        )
        self._duration = Histogram(
            "cutwater_epoch_duration_seconds",
            "How long epochs took, from plan to commit",
            ["flow"],
            buckets=DURATIONS,
            registry=self.registry,
        )
        self._rows = self._counter("rows", "Rows for each sink", "sink")
        self._read = self._counter(
            "read", "What was read of each source, in its unit", "source", "unit"
        )
        self._watermark = self._gauge(
            "watermark_seconds", "What each source has completed, in seconds since 1970", "source"
        )
        self._lag = self._gauge(
            "lag_seconds", "How far each watermark is behind the clock now", "source"
        )
        self._frontier_lag = self._gauge(
            "frontier_lag_seconds",
            "How far the frontier of each step is behind the clock now, and what holds it back",
            "step",
            "holder",
        )
        self._late = self._counter("late_events", "Late events")
        self._bad = self._counter(
            "bad_records", "Records that were written to a side output (dead letters)"
        )
        self._state = self._gauge("state_bytes", "The files of the state")
        self._memory = self._gauge("state_memory_bytes", "What the state stores hold in memory")
        self._snapshot_age = self._gauge(
            "snapshot_age_seconds", "In real time: the age of the newest snapshot of all tasks"
        )
        self._snapshot_failures = self._counter(
            "snapshot_failures", "In real time: snapshots that a task could not store"
        )
        for counter in (self._epochs, self._late, self._bad):
            counter.labels(flow)  # which makes it 0 before the first epoch

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"cutwater_{name}", about, ["flow", *labels], registry=self.registry)

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"cutwater_{name}", about, ["flow", *labels], registry=self.registry)

    def note(self, progress: RunProgress) -> None:
        """Count an epoch."""
        self._epochs.labels(self.flow).inc()
        self._epoch.labels(self.flow).set(progress.epoch)
        self._finished.labels(self.flow).set(self._now())
        self._duration.labels(self.flow).observe(progress.duration_ms / 1000)
        self._late.labels(self.flow).inc(progress.late)
        self._bad.labels(self.flow).inc(progress.bad_records)
        self._state.labels(self.flow).set(progress.state_bytes)
        self._memory.labels(self.flow).set(progress.state_memory_bytes)
        for sink, rows in progress.rows.items():
            self._rows.labels(self.flow, sink).inc(rows)
        self._note_sources(progress)
        self._note_frontiers(progress)
        if progress.snapshot is not None:
            moment = self._now() - progress.snapshot.age_seconds
            self._snapshot_age.labels(self.flow).set_function(self._since(moment))
            self._snapshot_failures.labels(self.flow).inc(progress.snapshot.failures)

    def _note_sources(self, progress: RunProgress) -> None:
        for name, source in progress.sources.items():
            if source.unit:
                self._read.labels(self.flow, name, source.unit).inc(source.read)
            if source.lag_seconds is not None:
                moment = self._now() - source.lag_seconds
                self._watermark.labels(self.flow, name).set(moment)
                self._lag.labels(self.flow, name).set_function(self._since(moment))

    def _note_frontiers(self, progress: RunProgress) -> None:
        """The holder of a step is a label, so the previous one is removed."""
        self._frontier_lag.clear()
        for step, found in progress.frontiers.items():
            if found.lag_seconds is not None:
                moment = self._now() - found.lag_seconds
                held = self._frontier_lag.labels(self.flow, step, found.holders[0].label)
                held.set_function(self._since(moment))

    def _since(self, moment: float) -> Callable[[], float]:
        """A lag grows until the next epoch, so it is computed when it is read."""
        return lambda: self._now() - moment

    def families(self) -> list[Metric]:
        """Every metric with its name, type and samples as they are now."""
        return list(self.registry.collect())

    def samples(self, name: str) -> list[Sample]:
        """The values of a metric as they are now."""
        found = next(family for family in self.families() if family.name == name)
        return [sample for sample in found.samples if not sample.name.endswith("_created")]

    def text(self) -> str:
        """All metrics in the format of Prometheus."""
        return generate_latest(self.registry).decode()


@contextmanager
def serve(metrics: Metrics, port: int, host: str = "127.0.0.1") -> Iterator[int]:
    """Serve metrics inside; yields the port, which matters if 0 was asked for."""
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except (OSError, OverflowError) as error:
        message = f"metrics cannot be served on {host}:{port}: {getattr(error, 'strerror', error)}"
        raise RefusedError(Problem("unusable-port", message, "choose another port")) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
