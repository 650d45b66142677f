"""How fast the checker is, what reduction saves, and how soon each broken protocol is found.

    python benchmarks/checking.py [--repetitions 5] [--json FILE]
    python benchmarks/checking.py --only search --beside ../older/src

With ``--beside`` the search of another checkout is measured in turns with this one's, each in a
process of its own; its figures are of the same model in the same repetition.

Shapes and broken protocols are those of ``tests/model``. Every figure is the median of several
repetitions, taken in turns, with the spread; ratios are within one repetition.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
SOURCE = TESTS.parent / "src"
sys.path.insert(0, str(TESTS))

from support.models import shapes  # noqa: E402
from support.models.broken import UNSAFE  # noqa: E402

from cutwater.checking import check_model, failure_transparency  # noqa: E402
from cutwater.semantics.barrier_model import BarrierModel  # noqa: E402

Figures = dict[str, list[float]]


def words(stream: str, epochs: int, events: int) -> list[list[str]]:
    """Distinct events, so that every order of them can be told apart."""
    return [[f"{stream}{epoch}{i}" for i in range(events)] for epoch in range(epochs)]


SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "pipeline of three, 2 epochs of 5": (shapes.PIPELINE, {"x": words("x", 2, 5)}),
    "diamond, 2 epochs of 2": (shapes.DIAMOND, {"x": words("x", 2, 2)}),
    "two sources into one, 2 epochs of 2": (
        shapes.TWO_SOURCES,
        {"x": words("x", 2, 2), "y": words("y", 2, 2)},
    ),
    "two sources, then two tasks, 2 epochs of 2": (
        shapes.TWO_SOURCES_TWO_TASKS,
        {"x": words("x", 2, 2), "y": words("y", 2, 2)},
    ),
}

NAMED_SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a": (shapes.SHORT_PIPELINE, {"x": words("x", 2, 1)}),
    "b": (shapes.TWO_SOURCES, {"x": words("x", 2, 1), "y": words("y", 2, 1)}),
    "c": (shapes.TWO_SOURCES, {"x": words("x", 2, 1), "y": words("y", 2, 1)}),
    "d": (shapes.SHORT_PIPELINE, {"x": words("x", 2, 1)}),
    "e": (shapes.ONE, {"x": words("x", 2, 1)}),
    "g, hidden counter": (shapes.ONE, {"x": words("x", 2, 1)}),
    "g, shared snapshot": (shapes.ONE, {"x": words("x", 2, 1)}),
}


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """What an action gives, and how many seconds it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def measure_reduction(figures: Figures) -> None:
    """Count states with and without reduction, one after the other."""
    for name, (tasks, inputs) in SHAPES.items():
        for crashes in (0, 1, 2):
            model = BarrierModel(shapes.start(tasks, **inputs), crashes=crashes)
            full, full_s = timed(lambda m=model: check_model(m, reduce=False))
            reduced, reduced_s = timed(lambda m=model: check_model(m, reduce=True))
            key = f"{name}, {crashes} crashes"
            note(figures, f"{key}: states", full.unique_states)
            note(figures, f"{key}: reduced", reduced.unique_states)
            note(figures, f"{key}: fewer", full.unique_states / reduced.unique_states)
            note(figures, f"{key}: states/s", full.unique_states / full_s)
            note(figures, f"{key}: quicker", full_s / reduced_s)


def measure_verdicts(figures: Figures) -> None:
    """The real protocol exhaustively, and each broken one until it is found."""
    for name, (tasks, inputs) in SHAPES.items():
        model = BarrierModel(shapes.start(tasks, **inputs), crashes=2)
        result, seconds = timed(
            lambda m=model: failure_transparency(m, m.failure_free(), order=frozenset.issubset)
        )
        if not (result.holds and result.checked.is_exhaustive):
            sys.exit(f"the protocol itself is not transparent on: {name}")
        note(figures, f"transparent: {name}: seconds", seconds)
    for letter, protocol in UNSAFE.items():
        tasks, inputs = NAMED_SHAPES[letter]
        model = BarrierModel(shapes.start(tasks, **inputs), crashes=2, protocol=protocol())
        result, seconds = timed(lambda m=model: failure_transparency(m, m.failure_free()))
        if result.holds:
            sys.exit(f"({letter}) was not found")
        note(figures, f"broken ({letter}): seconds", seconds)
        note(figures, f"broken ({letter}): steps", len(result.counterexample.actions))


SEARCHED = {
    "plain": "TwoPhaseCommit",
    "independent actions": "CommutingTwoPhaseCommit",
}
"""Two-phase commit, and the same that says which of its actions are independent."""

SEARCH = """
import sys, time
sys.path.insert(0, sys.argv[1])
from support.models import classics
from cutwater.checking import check_model
start = time.process_time()
found = check_model(getattr(classics, sys.argv[2])(int(sys.argv[3])))
print(found.unique_states, found.transitions, time.process_time() - start)
"""


def searched(source: Path, model: str, participants: int) -> tuple[int, int, float]:
    """States, steps and seconds of the processor of one search, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, str(TESTS), model, str(participants)],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    states, steps, seconds = done.stdout.split()
    return int(states), int(steps), float(seconds)


def measure_search(figures: Figures, participants: int, beside: Path | None) -> None:
    """Every state of two-phase commit, here and in another checkout, one after the other."""
    name = f"two-phase commit of {participants}"
    other = None
    if beside:
        states, _, other = searched(beside, SEARCHED["plain"], participants)
        note(figures, f"{name}, beside: states/s", states / other)
    for way, model in SEARCHED.items():
        states, steps, seconds = searched(SOURCE, model, participants)
        note(figures, f"{name}, {way}: states", states)
        note(figures, f"{name}, {way}: steps", steps)
        note(figures, f"{name}, {way}: states/s", states / seconds)
        if other:
            note(figures, f"{name}, {way}: times as many as beside", other / seconds)


def note(figures: Figures, key: str, value: float) -> None:
    """One more repetition of a figure."""
    figures.setdefault(key, []).append(value)


def main() -> None:
    """Print every figure as median and spread."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="also write every single measurement")
    parser.add_argument("--participants", type=int, default=7, help="of two-phase commit")
    parser.add_argument("--beside", type=Path, metavar="SRC", help="sources of another checkout")
    parser.add_argument("--only", choices=["search", "protocols"], help="measure these alone")
    arguments = parser.parse_args()
    figures: Figures = {}
    for _ in range(arguments.repetitions):
        if arguments.only != "protocols":
            measure_search(figures, arguments.participants, arguments.beside)
        if arguments.only != "search":
            measure_reduction(figures)
            measure_verdicts(figures)
    for key, values in figures.items():
        middle = statistics.median(values)
        spread = (
            "" if min(values) == max(values) else f"  ({min(values):,.3g} to {max(values):,.3g})"
        )
        print(f"{key:<70} {middle:>12,.4g}{spread}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
