"""How every benchmark measures and tells: sides, repetitions in turns, medians, ratios.

A *side* is one way to do the work; calling it does one repetition and gives figures, such as
``{"rows/s": 120_000.0}`` or ``{"p50 ms": 31.0, "p95 ms": 80.0}``. All sides do each repetition
before the next one begins, in an order shuffled anew, so that a machine that gets slower or faster
meanwhile favours none of them. A ratio compares two sides within the same repetition.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["REPETITIONS", "Bench", "Comparison", "Goal", "Side"]

REPETITIONS = 5
WIDTH = 110


@dataclass(frozen=True)
class Side:
    """One way to do the work."""

    name: str
    once: Callable[[], Mapping[str, float]]
    """One repetition; its figures by their names, which end with their unit."""


@dataclass(frozen=True)
class Goal:
    """A ratio between two sides that is wanted."""

    side: str
    base: str
    figure: str
    at_least: float | None = None
    at_most: float | None = None
    condition: str = ""

    def __str__(self) -> str:
        bounds = {"at least": self.at_least, "at most": self.at_most}
        wanted = " and ".join(f"{which} {bound:g}x" for which, bound in bounds.items() if bound)
        return f"{self.side} / {self.base}, {self.figure}: wanted {wanted}"

    def is_met(self, ratio: float) -> bool:
        """Is the median as wanted?"""
        if self.at_least is not None and ratio < self.at_least:
            return False
        return self.at_most is None or ratio <= self.at_most


@dataclass
class Comparison:
    """Sides that did the same work, with every single figure."""

    title: str
    base: str
    """The side that the others are compared with in the table."""
    goals: Sequence[Goal] = ()
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Figure -> side -> repetitions."""
    is_judged: bool = True
    """Is it under the conditions of its goals? Little data meets or misses them by chance."""

    def note(self, side: str, figures: Mapping[str, float]) -> None:
        """One more repetition of a side."""
        for figure, value in figures.items():
            self.values.setdefault(figure, {}).setdefault(side, []).append(value)

    def ratios(self, figure: str, side: str, base: str) -> list[float]:
        """How many times the base's figure a side had, repetition by repetition."""
        sides = self.values[figure]
        if side not in sides or base not in sides:
            return []
        return [a / b for a, b in zip(sides[side], sides[base], strict=False)]

    def tables(self) -> list[Table]:
        """To read: one table for each figure."""
        return [self._table(figure, sides) for figure, sides in self.values.items()]

    def _table(self, figure: str, sides: dict[str, list[float]]) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column(f"median (min–max) of {max(map(len, sides.values()))}")
        table.add_column(figure, justify="right")
        table.add_column(f"x of '{self.base}'", justify="right")
        for side, values in sides.items():
            ratios = self.ratios(figure, side, self.base)
            table.add_row(side, spread(values), spread(ratios) if ratios else "")
        return table

    def sentences(self) -> list[str]:
        """What became of each goal."""
        found = []
        for goal in self.goals:
            if ratios := self.ratios(goal.figure, goal.side, goal.base):
                is_met = goal.is_met(statistics.median(ratios))
                verdict = ("met" if is_met else "NOT met") if self.is_judged else "not judged here"
                told = f"{goal}, measured {spread(ratios)}: {verdict}"
                found.append(f"{told} ({goal.condition})" if goal.condition else told)
        return found

    def as_json(self) -> dict[str, Any]:
        """Everything that was measured."""
        return {
            "title": self.title,
            "base": self.base,
            "figures": {
                figure: {
                    side: {
                        "repetitions": values,
                        "median": statistics.median(values),
                        "ratios_to_base": self.ratios(figure, side, self.base),
                    }
                    for side, values in sides.items()
                }
                for figure, sides in self.values.items()
            },
            "goals": self.sentences(),
        }


def spread(values: Sequence[float]) -> str:
    """The median, and the smallest and the largest."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{number(middle)} ({number(low)}–{number(high)})"


def number(value: float) -> str:
    """Three digits that matter, no exponent."""
    digits = sum(abs(value) < limit for limit in (100, 10, 1))
    return f"{value:,.{digits}f}"


class Bench:
    """A benchmark: its options, what it has measured, and how it tells."""

    def __init__(self, name: str, about: str, *, quick_repetitions: int = REPETITIONS) -> None:
        self.name = name
        self._quick_repetitions = quick_repetitions
        self.results: list[Comparison] = []
        self.parser = argparse.ArgumentParser(description=about.splitlines()[0])
        add = self.parser.add_argument
        add("--quick", action="store_true", help="little work: to see that it runs")
        add("--repetitions", type=int, metavar="N", help=f"{REPETITIONS} if not told")
        add("--json", type=Path, metavar="FILE", help="write every single figure")
        add("--plot", type=Path, metavar="FILE", help="draw the medians: .svg or .png")
        add("--seed", type=int, default=0, help="for the order of the sides")
        self._start = time.monotonic()
        self._console = Console(width=WIDTH, highlight=False)

    def arguments(self, argv: Sequence[str] | None = None) -> argparse.Namespace:
        """Read the options; to be called before anything is compared."""
        self.given = self.parser.parse_args(argv)
        self.is_quick: bool = self.given.quick
        self.repetitions: int = self.given.repetitions or (
            self._quick_repetitions if self.is_quick else REPETITIONS
        )
        self._rng = random.Random(self.given.seed)
        return self.given

    def tell(self, sentence: str) -> None:
        """Progress, to the standard error output."""
        print(f"{time.monotonic() - self._start:5.0f} s  {sentence}", file=sys.stderr, flush=True)

    def compare(
        self,
        title: str,
        sides: Sequence[Side],
        *,
        base: str,
        goals: Sequence[Goal] = (),
        warm_ups: int = 0,
    ) -> Comparison:
        """Warm up, then do the repetitions in turns, and print the tables."""
        found = Comparison(title, base, goals, is_judged=not self.is_quick)
        for repetition in range(-warm_ups, self.repetitions):
            what = f"repetition {repetition + 1} of {self.repetitions}"
            for side in self._rng.sample(sides, len(sides)):
                figures = side.once()
                shown = ", ".join(f"{number(value)} {name}" for name, value in figures.items())
                self.tell(f"{title}, {what if repetition >= 0 else 'warm-up'}: {side.name} {shown}")
                if repetition >= 0:
                    found.note(side.name, figures)
        in_order = {figure: dict.fromkeys(s.name for s in sides) for figure in found.values}
        for figure, names in in_order.items():
            found.values[figure] = {
                n: found.values[figure][n] for n in names if n in found.values[figure]
            }
        return self.add(found)

    def add(self, found: Comparison) -> Comparison:
        """Print a comparison and keep it."""
        self.results.append(found)
        self.say(found.title)
        for table in found.tables():
            self._console.print(table)
        for sentence in found.sentences():
            self.say(sentence)
        self._console.print()
        return found

    def say(self, sentence: str) -> None:
        """A remark that belongs to the result, such as a side that was left out."""
        self._console.print(sentence, markup=False)

    def finish(self) -> int:
        """Write what was asked for."""
        if self.given.json:
            self.given.json.parent.mkdir(parents=True, exist_ok=True)
            self.given.json.write_text(json.dumps(self._as_json(), indent=2) + "\n")
        if self.given.plot:
            self.given.plot.parent.mkdir(parents=True, exist_ok=True)
            plot(self.name, self.results, self.given.plot)
        return 0

    def _as_json(self) -> dict[str, Any]:
        return {
            "benchmark": self.name,
            "date": time.strftime("%Y-%m-%d"),
            "cores": os.cpu_count(),
            "load_average": os.getloadavg(),
            "python": platform.python_version(),
            "is_quick": self.is_quick,
            "seed": self.given.seed,
            "comparisons": [found.as_json() for found in self.results],
        }


def plot(name: str, results: Sequence[Comparison], file: Path) -> None:
    """Bars of the medians on a logarithmic scale, one panel for each comparison and figure."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("no plot: install matplotlib (the extra 'bench')", file=sys.stderr)
        return
    mpl.use("agg")
    from matplotlib import pyplot

    panels = [
        (found.title, figure, sides) for found in results for figure, sides in found.values.items()
    ]
    if not panels:
        return
    heights = [0.9 + 0.42 * len(sides) for *_, sides in panels]
    figure_, axes = pyplot.subplots(
        len(panels), 1, figsize=(9, sum(heights)), height_ratios=heights, squeeze=False
    )
    for (title, unit, sides), (axis,) in zip(panels, axes, strict=True):
        middles = [statistics.median(values) for values in sides.values()]
        low = [m - min(values) for m, values in zip(middles, sides.values(), strict=True)]
        high = [max(values) - m for m, values in zip(middles, sides.values(), strict=True)]
        bars = axis.barh(list(sides), middles, xerr=[low, high], color="#4477aa", ecolor="#222222")
        axis.bar_label(bars, [f" {number(m)}" for m in middles], padding=14, fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(min(middles) / 3, max(middles) * 4)
        axis.invert_yaxis()
        axis.set_title(f"{title}: {unit}", fontsize=9, loc="left")
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure_.suptitle(f"{name}: medians, with the smallest and the largest", fontsize=10)
    figure_.tight_layout()
    figure_.savefig(file)
    pyplot.close(figure_)
