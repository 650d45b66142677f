"""What was measured, as percentiles, a table and sentences; reads no clock and starts nothing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["PERCENTILES", "Measured", "percentiles", "sentences", "table"]

PERCENTILES = (50, 75, 95, 99)
AT_MOST = 1.1
"""How many times the smallest p50 the largest may be, for it not to depend on the interval."""


def percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """The paper's percentiles.

    >>> percentiles([float(n) for n in range(101)])
    {'p50': 50.0, 'p75': 75.0, 'p95': 95.0, 'p99': 99.0}
    """
    parts = statistics.quantiles(latencies, n=100, method="inclusive")
    return {f"p{n}": round(parts[n - 1], 1) for n in PERCENTILES}


@dataclass(frozen=True)
class Measured:
    """A side, and the percentiles of each of its repetitions."""

    engine: str
    guarantee: str
    how: str
    interval_ms: int | None
    repetitions: Sequence[Mapping[str, float] | None]
    """None: it failed."""

    @staticmethod
    def of_json(kept: Mapping[str, Any]) -> Measured:
        """A side of a file of results."""
        names = ("engine", "guarantee", "how", "interval_ms", "repetitions")
        return Measured(**{name: kept[name] for name in names})

    @property
    def label(self) -> str:
        """The engine and which way of it."""
        return f"{self.engine}, {self.how}" if self.how else self.engine

    def values(self, percentile: str) -> list[float]:
        """One for each repetition that did not fail."""
        return [each[percentile] for each in self.repetitions if each]

    def median(self, percentile: str) -> float | None:
        """The median of the repetitions; None: none was measured."""
        values = self.values(percentile)
        return statistics.median(values) if values else None


def number(ms: float | None) -> str:
    """A latency with the digits that matter.

    >>> number(1234.5), number(87.61), number(8.76), number(None)
    ('1,234', '88', '8.8', 'not measured')
    """
    if ms is None:
        return "not measured"
    return f"{ms:,.1f}" if ms < 10 else f"{ms:,.0f}"


def table(sides: Iterable[Measured]) -> str:
    """Markdown: a row for each side, medians of its repetitions in ms."""
    lines = ["| engine | guarantee | interval | p50 (all) | p75 | p95 | p99 |"]
    lines.append("|---|---|---|---|---|---|---|")
    for side in sides:
        interval = f"{side.interval_ms} ms" if side.interval_ms else "—"
        cells = [number(side.median(f"p{n}")) for n in PERCENTILES]
        if values := side.values("p50"):
            cells[0] += f" ({', '.join(map(number, values))})"
        if failed := sum(each is None for each in side.repetitions):
            cells[0] += f"; {failed} of {len(side.repetitions)} failed"
        lines.append(f"| {' | '.join([side.label, side.guarantee, interval, *cells])} |")
    return "\n".join(lines) + "\n"


def sentences(sides: Sequence[Measured], ours: str, others: Sequence[str]) -> list[str]:
    """What was to be shown, and whether it was: ours does not grow, others' do, ours is ahead."""
    found = [_growth(sides, ours, is_wanted_flat=True)]
    found += [_growth(sides, other, is_wanted_flat=False) for other in others]
    for other in others:
        found += [_ahead(sides, ours, other, n) for n in PERCENTILES]
    return [sentence for sentence in found if sentence]


def by_interval(sides: Sequence[Measured], engine: str) -> dict[int, Measured]:
    """The sides of an engine that are exactly-once, by their intervals."""
    return {
        side.interval_ms: side
        for side in sides
        if side.engine == engine and side.interval_ms and side.values("p50")
    }


def _growth(sides: Sequence[Measured], engine: str, *, is_wanted_flat: bool) -> str:
    measured = {ms: side.median("p50") or 0.0 for ms, side in by_interval(sides, engine).items()}
    if len(measured) < 2:
        return ""
    told = ", ".join(f"{number(p50)} ms at {ms} ms" for ms, p50 in sorted(measured.items()))
    if is_wanted_flat:
        ratio = max(measured.values()) / min(measured.values())
        verdict = "holds" if ratio <= AT_MOST else "does NOT hold"
        return f"{engine}, p50: {told}; within 10 %: {verdict} ({ratio:.2f}x)"
    ratio = measured[max(measured)] / measured[min(measured)]
    verdict = "holds" if ratio > AT_MOST else "does NOT hold"
    return f"{engine}, p50: {told}; it grows: {verdict} ({ratio:.1f}x)"


def _ahead(sides: Sequence[Measured], ours: str, other: str, percentile: int) -> str:
    name, found, is_ahead = f"p{percentile}", [], True
    mine, theirs = by_interval(sides, ours), by_interval(sides, other)
    for ms in sorted(mine.keys() & theirs.keys()):
        pairs = zip(mine[ms].repetitions, theirs[ms].repetitions, strict=False)
        ratios = [a[name] / b[name] for a, b in pairs if a and b]
        if ratios:
            found.append(f"{statistics.median(ratios):.2f} at {ms} ms")
            is_ahead &= statistics.median(ratios) < 1
    if not found:
        return ""
    verdict = "holds" if is_ahead else "does NOT hold"
    return f"{ours} / {other}, {name}: {', '.join(found)}; ahead at every interval: {verdict}"
