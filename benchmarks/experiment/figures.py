"""The figures: latencies by interval (the paper's Figures 10 to 12), and kills (its Figure 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from results import PERCENTILES, Measured

__all__ = ["bars", "binned", "draw_intervals", "draw_kills"]

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")
BIN_S = 0.25


def draw_intervals(sides: Sequence[Measured], intervals: Sequence[int], file: Path) -> None:
    """One panel for each interval: the percentiles of all sides that have it, or have none."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, len(intervals), figsize=(11, 3.8), sharey=True)
    for axis, interval in zip(axes, intervals, strict=True):
        shown = bars(sides, interval)
        width = 0.8 / max(len(shown), 1)
        for number, (label, heights) in enumerate(shown):
            places = [n + number * width for n in range(len(PERCENTILES))]
            axis.bar(places, heights, width, label=label, color=COLOURS[number % len(COLOURS)])
        axis.set_yscale("log")
        axis.set_xticks([n + 0.4 - width / 2 for n in range(len(PERCENTILES))])
        axis.set_xticklabels([f"p{n}" for n in PERCENTILES])
        axis.set_title(f"{interval} ms between checkpoints", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("latency in ms")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(file)
    pyplot.close(figure)


def bars(sides: Sequence[Measured], interval: int) -> list[tuple[str, list[float]]]:
    """For the panel of an interval: each side that has it, or has none, and its percentiles."""
    shown = [s for s in sides if s.interval_ms in (None, interval) and s.values("p50")]
    return [
        (f"{s.label}, {s.guarantee}", [s.median(f"p{n}") or 0.0 for n in PERCENTILES])
        for s in shown
    ]


def binned(points: Sequence[Sequence[float]], width: float = BIN_S) -> list[tuple[float, float]]:
    """The largest latency of each stretch of time, so that no spike is lost.

    >>> binned([(0.0, 5.0), (0.2, 9.0), (0.3, 1.0)], 0.25)
    [(0.0, 9.0), (0.25, 1.0)]
    """
    found: dict[int, float] = {}
    for at, latency in points:
        found[int(at // width)] = max(latency, found.get(int(at // width), 0.0))
    return [(number * width, latency) for number, latency in sorted(found.items())]


def draw_kills(runs: Sequence[Mapping[str, Any]], file: Path) -> None:
    """One panel for each side: the latency of documents over the time at which they were due."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(
        len(runs), 1, figsize=(9, 2.2 * len(runs)), sharex=True, sharey=True, squeeze=False
    )
    for run, (axis,) in zip(runs, axes, strict=True):
        axis.plot(*zip(*binned(run["documents"]), strict=True), color=COLOURS[0], linewidth=1)
        for kill in run["kills"]:
            axis.axvline(kill["at_s"], color=COLOURS[4], linestyle="--", linewidth=1)
        axis.set_yscale("log")
        axis.set_ylabel("latency in ms")
        axis.set_title(run["side"], fontsize=9, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1][0].set_xlabel(
        "seconds; dashed: all processes of the side are killed, and it is started"
    )
    figure.tight_layout()
    figure.savefig(file)
    pyplot.close(figure)


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "experiment"
    from matplotlib import pyplot

    return pyplot
