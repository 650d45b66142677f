"""What speculation over a total order costs, and what waiting for the order costs instead.

Computed on the model (`cutwater.semantics.drifting_replay`) in virtual time: the same figures on
every machine. See docs/drifting-state.md.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cutwater.semantics.drifting import Element, Grouping, Time
from cutwater.semantics.drifting_replay import (
    Arrival,
    frontiers,
    speculate,
    wait_in_order,
)

INPUTS = 2_000
INTERVAL = 100
"""Virtual time between two inputs; latencies are told in these."""
DISORDERS = (0, 1, 3, 10, 30, 100)
"""By how many inputs one may be late: delays are uniform up to it."""
WINDOWS = (2, 8)
WORK = (5, 30)
"""How long one window takes, in percent of the interval: the load if each is worked on once."""
SEED = 0


@dataclass(frozen=True)
class Row:
    """One case, measured both ways."""

    window: int
    work: int
    disorder: int
    invalidated: float
    """Elements retracted for each input."""
    load: tuple[float, float]
    """Work for each input, by the interval: speculating, and waiting for the order."""
    order: float
    """The mean time from made to passed by the frontier, which nobody can release before."""
    mean: tuple[float, float]
    """The mean latency of each, in intervals."""
    p99: tuple[float, float]
    held: tuple[int, int]
    """The most elements held at once."""


def arrivals(disorder: int, seed: int = SEED) -> list[Arrival]:
    """Inputs at a steady rate, each delayed by a time of its own."""
    rng = random.Random(seed)
    made = [n * INTERVAL for n in range(1, INPUTS + 1)]
    found = [
        Arrival(Element(Time((n, 0)), n), at, at + rng.randint(0, disorder * INTERVAL))
        for n, at in enumerate(made, 1)
    ]
    return sorted(found, key=lambda arrival: (arrival.at, arrival.element.t))


def measured(window: int, work: int, disorder: int) -> Row:
    """Run both on the same arrivals."""
    flow, given = [Grouping(window)], arrivals(disorder)
    both = speculate(flow, given, work=work), wait_in_order(flow, given, work=work)
    if both[0].released != both[1].released:
        sys.exit(f"window {window}, disorder {disorder}: the two released different outputs")
    return Row(
        window,
        work,
        disorder,
        both[0].cost.retracted / INPUTS,
        _pair(both, lambda run: run.cost.windows * work / (INPUTS * INTERVAL)),
        _order(given),
        _pair(both, lambda run: sum(run.cost.latencies) / len(run.cost.latencies) / INTERVAL),
        _pair(both, lambda run: _percentile(run.cost.latencies, 99) / INTERVAL),
        (both[0].cost.most_held, both[1].cost.most_held),
    )


def _pair(both, figure):  # type: ignore[no-untyped-def]
    return figure(both[0]), figure(both[1])


def _percentile(values: Sequence[int], percent: int) -> int:
    return sorted(values)[len(values) * percent // 100]


def _order(given: Sequence[Arrival]) -> float:
    """How long the order alone makes an output wait."""
    made = sorted(arrival.made for arrival in given)
    total = passed = 0
    for arrival, frontier in zip(given, frontiers(given), strict=True):
        while passed < len(made) and (passed + 1, 0) < frontier:
            total += arrival.at - made[passed]
            passed += 1
    return total / len(made) / INTERVAL


def rows() -> Iterator[Row]:
    """Every case."""
    for window in WINDOWS:
        for work in WORK:
            for disorder in DISORDERS:
                yield measured(window, work, disorder)


HEADER = (
    "window", "work", "disorder", "invalidated", "offered load", "order", "mean latency", "p99 latency",
    "held",
)  # fmt: skip


def table(found: Sequence[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = [f"| {' | '.join(HEADER)} |", "|" + "---:|" * len(HEADER)]
    for row in found:
        cells = (
            f"{row.window}",
            f"{row.work} %",
            f"{row.disorder}",
            f"{row.invalidated:.2f}",
            " / ".join(f"{100 * value:.0f} %" for value in row.load),
            _number(row.order),
            " / ".join(map(_number, row.mean)),
            " / ".join(map(_number, row.p99)),
            " / ".join(f"{value:,}" for value in row.held),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def plot(found: Sequence[Row], file: Path) -> None:
    """Invalidated elements, latency behind the order, and memory, each by disorder."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("no plot: install matplotlib (the extra 'bench')", file=sys.stderr)
        return
    mpl.use("agg")
    from matplotlib import pyplot

    mpl.rcParams["svg.hashsalt"] = "drifting"
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(12, 3.8))
    colours = dict(zip(WINDOWS, ("#4477aa", "#cc6677"), strict=True))
    for window in WINDOWS:
        for work in WORK:
            cases = [row for row in found if (row.window, row.work) == (window, work)]
            x = [row.disorder for row in cases]
            style = {"color": colours[window], "marker": "o", "markersize": 3}
            label = f"window {window}, work {work} %"
            dashes = (None, None) if work == WORK[0] else (4, 2)
            if work == WORK[0]:
                left.plot(x, [r.invalidated for r in cases], label=f"window {window}", **style)
                right.plot(x, [r.held[0] for r in cases], label=f"window {window}", **style)
            behind = [max(1e-3, row.mean[0] - row.order) for row in cases]
            middle.plot(x, behind, dashes=dashes, label=f"speculating, {label}", **style)
    for work, shade in zip(WORK, ("#999999", "#222222"), strict=True):
        cases = [row for row in found if (row.window, row.work) == (WINDOWS[-1], work)]
        x = [row.disorder for row in cases]
        behind = [max(1e-3, row.mean[1] - row.order) for row in cases]
        middle.plot(x, behind, color=shade, marker="s", markersize=3, label=f"in order, {work} %")
    right.plot(x, [r.held[1] for r in cases], color="#222222", marker="s", markersize=3,
               label="in order")  # fmt: skip
    left.set_title("retracted elements per input", fontsize=9)
    middle.set_title("mean latency beyond the order (intervals)", fontsize=9)
    right.set_title("most elements held", fontsize=9)
    middle.set_yscale("log")
    right.set_yscale("log")
    for axis in (left, middle, right):
        axis.set_xscale("symlog", linthresh=1)
        axis.set_xlabel("disorder (inputs)", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.legend(fontsize=6)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, and draw it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it: .svg or .png")
    given = parser.parse_args(argv)
    found = list(rows())
    print(table(found), end="")
    if given.plot:
        plot(found, given.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
