"""What speculation over a total order costs, and what waiting for the order costs instead.

Computed on the model (`cutwater.semantics.drifting.replay`) in virtual time: the same figures on
every machine. See docs/drifting-state.md.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutwater.semantics.drifting.elements import Element, Grouping, Time
from cutwater.semantics.drifting.replay import (
    Arrival,
    Replayed,
    frontiers,
    speculate,
    wait_in_order,
)

INPUTS = 2_000
INTERVAL = 100
"""Virtual time between two inputs; latencies are told in these."""
DISORDERS = (0, 3, 10, 30, 100)
"""By how many inputs one may be late: delays are uniform up to it."""
SHAPES = ((1, 2), (1, 8), (3, 2))
"""Steps of the flow, and the window of each."""
WORK = (6, 30)
"""How long all windows of an input take, in percent of the interval: the load if there are no more
than one for each step."""
SEED = 0


@dataclass(frozen=True)
class Row:
    """One case, measured both ways."""

    shape: tuple[int, int]
    """Steps, and the window of each."""
    work: int
    disorder: int
    retracted: float
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


def measured(shape: tuple[int, int], work: int, disorder: int) -> Row:
    """Run both on the same arrivals."""
    steps, window = shape
    flow, given, each = [Grouping(window)] * steps, arrivals(disorder), work // steps
    both = speculate(flow, given, work=each), wait_in_order(flow, given, work=each)
    if both[0].released != both[1].released:
        sys.exit(f"{steps} x {window}, disorder {disorder}: the two released different outputs")
    return Row(
        shape,
        work,
        disorder,
        both[0].cost.retracted / INPUTS,
        _pair(both, lambda run: run.cost.windows * each / (INPUTS * INTERVAL)),
        _order(given),
        _pair(both, lambda run: statistics.fmean(run.cost.latencies) / INTERVAL),
        _pair(both, lambda run: _percentile(run.cost.latencies, 99) / INTERVAL),
        (both[0].cost.most_held, both[1].cost.most_held),
    )


def _pair(
    both: tuple[Replayed, Replayed], figure: Callable[[Replayed], float]
) -> tuple[float, float]:
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
    for shape in SHAPES:
        for work in WORK:
            for disorder in DISORDERS:
                yield measured(shape, work, disorder)


HEADER = (
    "steps × window", "work", "disorder", "retracted", "load", "order", "mean latency",
    "p99 latency", "held",
)  # fmt: skip


def table(found: Sequence[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = [f"| {' | '.join(HEADER)} |", "|" + "---:|" * len(HEADER)]
    for row in found:
        cells = (
            " × ".join(map(str, row.shape)),
            f"{row.work} %",
            f"{row.disorder}",
            f"{row.retracted:.2f}",
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


COLOURS = dict(zip(SHAPES, ("#4477aa", "#cc6677", "#ddaa33"), strict=True))


def plot(found: Sequence[Row], file: Path) -> None:
    """Retracted elements, latency beyond the order, and memory, each by disorder."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("no plot: install matplotlib (the extra 'bench')", file=sys.stderr)
        return
    mpl.use("agg")
    from matplotlib import pyplot

    mpl.rcParams |= {"svg.hashsalt": "drifting", "svg.fonttype": "none", "font.size": 8}
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.8))
    for shape in SHAPES:
        little, much = ([r for r in found if (r.shape, r.work) == (shape, work)] for work in WORK)
        name = f"{shape[0]} × {shape[1]}"
        _line(axes[0], little, [row.retracted for row in little], shape, name)
        for n, side in enumerate(("speculating", "in order")):
            behind = [row.mean[n] - row.order for row in much]
            _line(axes[1], much, behind, shape, f"{name}, {side}", is_dashed=bool(n))
            held = [row.held[n] for row in little]
            _line(axes[2], little, held, shape, f"{name}, {side}", is_dashed=bool(n))
    titles = (
        "retracted elements per input",
        f"mean latency beyond the order, work {WORK[1]} % (intervals)",
        "most elements held at once",
    )
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=9)
        axis.set_xscale("symlog", linthresh=3)
        axis.set_xticks(DISORDERS, [str(disorder) for disorder in DISORDERS])
        axis.set_xlabel("disorder (inputs)")
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    axes[1].set_yscale("log")
    axes[2].set_yscale("log")
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def _line(
    axis: Any,
    cases: Sequence[Row],
    values: Sequence[float],
    shape: tuple[int, int],
    label: str,
    *,
    is_dashed: bool = False,
) -> None:
    axis.plot(
        [row.disorder for row in cases],
        values,
        color=COLOURS[shape],
        linestyle="--" if is_dashed else "-",
        marker="s" if is_dashed else "o",
        markersize=3,
        label=label,
    )


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
