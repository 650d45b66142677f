"""Metrics of a run, in the text format of Prometheus, served on a port.

``docs/operations.md`` says what each of them means and what to alert on.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cutwater.errors import Problem, RefusedError
from cutwater.spark.telemetry.progress import Progress

__all__ = [
    "BAD",
    "DURATIONS",
    "EPOCH",
    "EPOCHS",
    "FAMILIES",
    "FINISHED",
    "FRONTIER_LAG",
    "LAG",
    "LATE",
    "MEMORY",
    "READ",
    "ROWS",
    "STATE",
    "WATERMARK",
    "Family",
    "Labels",
    "Metrics",
    "serve",
]

Labels = tuple[tuple[str, str], ...]

DURATIONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper limits of what durations of epochs are counted by, in seconds."""


@dataclass(frozen=True)
class Family:
    """A metric, of whatever labels."""

    name: str
    kind: str
    """``counter`` or ``gauge``."""
    about: str


EPOCHS = Family("cutwater_epochs_total", "counter", "Epochs that this run has finished")
EPOCH = Family("cutwater_epoch", "gauge", "The newest epoch that was finished")
FINISHED = Family("cutwater_epoch_finished_seconds", "gauge", "When it was, in seconds since 1970")
ROWS = Family("cutwater_rows_total", "counter", "Rows for each sink")
READ = Family("cutwater_read_total", "counter", "What was read of each source, in its unit")
WATERMARK = Family(
    "cutwater_watermark_seconds", "gauge", "What each source has completed, in seconds since 1970"
)
LAG = Family("cutwater_lag_seconds", "gauge", "How far each watermark is behind the clock now")
FRONTIER_LAG = Family(
    "cutwater_frontier_lag_seconds",
    "gauge",
    "How far what is complete at each step is behind the clock now, and what holds it",
)
LATE = Family("cutwater_late_events_total", "counter", "Events that came too late")
BAD = Family("cutwater_bad_records_total", "counter", "Records that were kept aside")
STATE = Family("cutwater_state_bytes", "gauge", "The files of the state")
MEMORY = Family("cutwater_state_memory_bytes", "gauge", "What the state stores hold in memory")
FAMILIES = (
    EPOCHS, EPOCH, FINISHED, ROWS, READ, WATERMARK, LAG, FRONTIER_LAG, LATE, BAD, STATE, MEMORY,
)  # fmt: skip
_DURATION = "cutwater_epoch_duration_seconds"


class Metrics:
    """What is counted of one run."""

    def __init__(self, flow: str, now: Callable[[], float] = time.time) -> None:
        self.flow = flow
        self._flow: Labels = (("flow", flow),)
        self._now = now
        self._lock = threading.Lock()
        self._values: dict[tuple[Family, Labels], float] = {
            (family, self._flow): 0 for family in (EPOCHS, LATE, BAD)
        }
        self._frontiers: dict[Labels, float] = {}
        """What is complete at each step, in seconds since 1970."""
        self._durations: Counter[float] = Counter()
        self._seconds = 0.0

    def note(self, progress: Progress) -> None:
        """Take note of an epoch."""
        with self._lock:
            self._add(EPOCHS, 1)
            self._set(EPOCH, progress.epoch)
            self._set(FINISHED, self._now())
            self._add(LATE, progress.late)
            self._add(BAD, progress.bad_records)
            self._set(STATE, progress.state_bytes)
            self._set(MEMORY, progress.state_memory_bytes)
            for sink, rows in progress.rows.items():
                self._add(ROWS, rows, ("sink", sink))
            for name, source in progress.sources.items():
                if source.unit:
                    self._add(READ, source.read, ("source", name), ("unit", source.unit))
                if source.lag_seconds is not None:
                    self._set(WATERMARK, self._now() - source.lag_seconds, ("source", name))
            self._note_frontiers(progress)
            seconds = progress.duration_ms / 1000
            self._seconds += seconds
            self._durations[
                next((most for most in DURATIONS if seconds <= most), float("inf"))
            ] += 1

    def _note_frontiers(self, progress: Progress) -> None:
        """The holder of a step is a label of it, so the one before goes."""
        self._frontiers = {
            (*self._flow, ("step", step), ("holder", found.holders[0].label)): (
                self._now() - found.lag_seconds
            )
            for step, found in progress.frontiers.items()
            if found.lag_seconds is not None
        }

    def values(self, family: Family) -> list[tuple[Labels, float]]:
        """The values of a family as they are now, by labels."""
        with self._lock:
            if family is LAG:
                moments = [(of, value) for (f, of), value in self._values.items() if f is WATERMARK]
                return [(labels, self._now() - moment) for labels, moment in moments]
            if family is FRONTIER_LAG:
                return [(of, self._now() - moment) for of, moment in self._frontiers.items()]
            return [(labels, value) for (f, labels), value in self._values.items() if f is family]

    def text(self) -> str:
        """All of it, as Prometheus reads it."""
        lines = []
        for family in FAMILIES:
            found = self.values(family)
            if found:
                lines += _head(family.name, family.kind, family.about)
                lines += [_line(family.name, labels, value) for labels, value in found]
        return "\n".join([*lines, *self._histogram()]) + "\n"

    def _histogram(self) -> Iterator[str]:
        yield from _head(_DURATION, "histogram", "How long epochs took, from plan to commit")
        with self._lock:
            durations, seconds = Counter(self._durations), self._seconds
        total = 0
        for most in (*DURATIONS, float("inf")):
            total += durations[most]
            limit = "+Inf" if most == float("inf") else f"{most:g}"
            yield _line(f"{_DURATION}_bucket", (*self._flow, ("le", limit)), total)
        yield _line(f"{_DURATION}_sum", self._flow, seconds)
        yield _line(f"{_DURATION}_count", self._flow, total)

    def _add(self, family: Family, value: float, *labels: tuple[str, str]) -> None:
        place = (family, (*self._flow, *labels))
        self._values[place] = self._values.get(place, 0) + value

    def _set(self, family: Family, value: float, *labels: tuple[str, str]) -> None:
        self._values[family, (*self._flow, *labels)] = value


@contextmanager
def serve(metrics: Metrics, port: int, host: str = "127.0.0.1") -> Iterator[int]:
    """Serve metrics under ``/metrics`` while something runs; the port, if 0 was asked for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_ours = self.path.split("?")[0] in ("/", "/metrics")
            body = metrics.text().encode() if is_ours else b"only /metrics is here\n"
            self.send_response(200 if is_ours else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        said = f"metrics cannot be served on {host}:{port}: {getattr(error, 'strerror', error)}"
        raise RefusedError(Problem("unusable-port", said, "choose another port")) from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    said = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{said}}} {'+Inf' if value == float('inf') else repr(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
