"""The display of ``cutwater run``: a table on a terminal, else a line every few seconds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cutwater.cli.durations import duration
from cutwater.cli.screen import errors

if TYPE_CHECKING:
    from cutwater.spark import FrontierProgress, RunProgress, SnapshotProgress

__all__ = ["RunView", "plain_line", "run_view"]

_SECONDS_BETWEEN_LINES = 5.0
_EPOCHS_SHOWN = 20
"""The number of newest epochs that rates and latencies are computed from."""


class RunView:
    """The state of a run, as text."""

    def __init__(self, flow: str, now: Callable[[], float] = time.monotonic) -> None:
        self.flow = flow
        self._now = now
        self._newest: deque[tuple[float, RunProgress]] = deque(maxlen=_EPOCHS_SHOWN + 1)
        self.late = self.bad_records = 0

    def note(self, progress: RunProgress) -> None:
        """Add an epoch."""
        self._newest.append((self._now(), progress))
        self.late += progress.late
        self.bad_records += progress.bad_records

    @property
    def last(self) -> RunProgress | None:
        """The newest epoch."""
        return self._newest[-1][1] if self._newest else None

    @property
    def rows_per_second(self) -> float:
        """Rows for all sinks, over the newest epochs."""
        return self._per_second(lambda p: sum(p.rows.values()))

    def read_per_second(self, source: str) -> float:
        """What is read of a source per second, in its unit."""
        return self._per_second(lambda p: p.sources[source].read if source in p.sources else 0)

    def _per_second(self, amount: Callable[[RunProgress], float]) -> float:
        reports = [progress for _, progress in self._newest]
        first, last = (self._newest[0][0], self._newest[-1][0]) if reports else (0.0, 0.0)
        if last > first:  # the rows of the first came before its report
            return sum(map(amount, reports[1:])) / (last - first)
        worked = sum(progress.duration_ms for progress in reports) / 1000
        return sum(map(amount, reports)) / worked if worked else 0.0

    @property
    def typical_ms(self) -> int:
        """The median duration of the newest epochs."""
        durations = sorted(progress.duration_ms for _, progress in self._newest)
        return durations[len(durations) // 2] if durations else 0


def plain_line(view: RunView) -> str:
    """A run in one line."""
    last = view.last
    if last is None:
        return f"{view.flow}: no epoch yet"
    parts = [
        f"{_unit(last)} {last.epoch}",
        f"{view.rows_per_second:,.0f} rows/s",
        f"{_duration(last)} (median {view.typical_ms:,} ms)",
        *(f"{name} {_behind(source)}" for name, source in last.sources.items() if _behind(source)),
        *_held(last),
        f"state {_size(last.state_bytes)}",
    ]
    parts += [_snapshot(last.snapshot)] if last.snapshot and _is_trouble(last.snapshot) else []
    parts += [f"{view.late:,} late"] if view.late else []
    parts += [f"{view.bad_records:,} bad"] if view.bad_records else []
    return f"{view.flow}: {', '.join(parts)}"


def _unit(progress: RunProgress) -> str:
    return "tick" if progress.snapshot else "epoch"


def _duration(progress: RunProgress) -> str:
    """How long an epoch took; of a tick, the time from its plan to the release of its rows."""
    return f"{'latency ' if progress.snapshot else ''}{progress.duration_ms:,} ms"


def _completed(found: FrontierProgress) -> str:
    return "nothing complete" if found.completed is None else f"complete to {found.completed}"


def _is_trouble(snapshot: SnapshotProgress) -> bool:
    return snapshot.is_late or bool(snapshot.why)


def _snapshot(snapshot: SnapshotProgress) -> str:
    """The age of the newest snapshot, and why there is no newer one."""
    age = f"{duration(snapshot.age_seconds)} old" if snapshot.tick >= 0 else "none yet"
    return f"snapshot {age}" + (f", the next failed: {snapshot.why}" if snapshot.why else "")


def _held(progress: RunProgress) -> list[str]:
    """The step furthest behind and its holder, if there are several candidates or a loop holds it.

    Steps that a loop holds are named even if their times are not clock times.
    """
    may_hold = sum(len(source.positions) for source in progress.sources.values())
    lags = {
        name: found.lag_seconds or 0.0
        for name, found in progress.frontiers.items()
        if found.holders[0].is_loop or (may_hold > 1 and found.lag_seconds)
    }
    if not lags:
        return []
    # a loop is as far behind as what it holds, which says more
    furthest = max(lags, key=lambda n: (lags[n], not _iterates(n, progress.frontiers[n])))
    return [f"{furthest} {_held_by(furthest, progress.frontiers[furthest], 1)}"]


def _iterates(step: str, found: FrontierProgress) -> bool:
    """Is a step a loop that holds itself?"""
    return found.holders[0].is_loop and found.holders[0].source == step


def _held_by(step: str, found: FrontierProgress, most: int | None = None) -> str:
    if _iterates(step, found):
        return "still iterates"
    return f"held by {', '.join(each.label for each in found.holders[:most])}"


def _behind(source: Any) -> str:
    if source.lag_seconds is not None:
        return f"{duration(source.lag_seconds)} behind"
    return "" if source.watermark is None else f"at {source.watermark}"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def _picture(view: RunView, words: str) -> Group:
    """A run as a table."""
    shown = Table.grid(padding=(0, 2))
    last = view.last
    if last is None:
        return Group(Text(words))
    median = f"median {view.typical_ms:,} ms"
    shown.add_row(_unit(last), f"{last.epoch:,}", _duration(last), median)
    by_sink = ", ".join(f"{rows:,} to {sink}" for sink, rows in last.rows.items())
    shown.add_row("rows", f"{view.rows_per_second:,.0f}/s", by_sink)
    for name, source in last.sources.items():
        rate = f"{view.read_per_second(name):,.0f} {source.unit}/s" if source.unit else ""
        shown.add_row(name, rate, _behind(source))
    for name, found in last.frontiers.items():
        shown.add_row(name, _completed(found), _held_by(name, found))
    shown.add_row("state", _size(last.state_bytes), f"{_size(last.state_memory_bytes)} in memory")
    if last.snapshot:
        style = "bold red" if _is_trouble(last.snapshot) else ""
        message = _snapshot(last.snapshot).removeprefix("snapshot ")
        shown.add_row("snapshot", f"tick {last.snapshot.tick:,}", Text(message, style))
    shown.add_row("side outputs", f"{view.late:,} late", f"{view.bad_records:,} bad")
    return Group(Text(words), shown)


class _Terminal:
    def __init__(self, view: RunView, live: Live) -> None:
        self._view, self._live = view, live
        self._words = f"{view.flow}: starting"

    def note(self, progress: RunProgress) -> None:
        self._view.note(progress)
        self._words = f"{self._view.flow} is running"
        self.draw()

    def notify(self, text: str) -> None:
        errors.print(text, soft_wrap=True)

    def draw(self) -> None:
        self._live.update(_picture(self._view, self._words))


class _Lines:
    """A line every few seconds, from the second epoch on."""

    def __init__(self, view: RunView, now: Callable[[], float]) -> None:
        self._view, self._now = view, now
        self._shown: float | None = None

    def note(self, progress: RunProgress) -> None:
        self._view.note(progress)
        if self._shown is None:
            self._shown = self._now()
        elif self._now() - self._shown >= _SECONDS_BETWEEN_LINES:
            self._shown = self._now()
            self.notify(plain_line(self._view))

    def notify(self, text: str) -> None:
        errors.print(text, soft_wrap=True)


@contextmanager
def run_view(flow: str, now: Callable[[], float] = time.monotonic) -> Iterator[_Terminal | _Lines]:
    """Show a run on standard error."""
    view = RunView(flow, now)
    if not errors.is_terminal:
        errors.print(f"{flow}: starting", soft_wrap=True)
        yield _Lines(view, now)
        return
    with Live(console=errors, refresh_per_second=4, transient=True) as live:
        shown = _Terminal(view, live)
        shown.draw()
        yield shown
