"""Whether the cost of an item grows with how many there are: frontiers, union, a run with a crash.

    python benchmarks/growth.py [--items 1000]

Each is measured with n, 2n and 4n items. One input of the frontier and one side of the union stay
silent, so that all that the other one says waits. Seconds are those of the processor; a cost per
item that is the same is linear.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import cutwater as cw
from cutwater.operators import fproduce, union
from cutwater.operators.frontier import Frontier
from cutwater.times import Left, Product

MOST = 2.0
"""So many times as much an item may cost with four times as many."""


def frontier_of_numbers(items: int) -> None:
    """One input speaks, the other is silent; one watermark waits."""
    frontier = Frontier.of(2)
    for number in range(items):
        frontier, _ = frontier.advance(0, [number])
    assert len(frontier.waiting) == 1


def frontier_of_a_partial_order(items: int) -> None:
    """The same over pairs of numbers, where any of what waits may be asked for."""
    frontier = Frontier.of(2)
    for number in range(items):
        frontier, _ = frontier.advance(0, [Product(number, number)])
    assert len(frontier.waiting) == items


def union_with_a_silent_side(items: int) -> None:
    """P4's operator, which keeps every watermark that waits."""
    fproduce(union(), (cw.Watermark(Left(number)) for number in range(items)))


@cw.task(initial=0)
def count(seen: int, _value: int) -> tuple[int, list[int]]:
    """How many there were."""
    return seen + 1, [seen + 1]


def a_run_with_a_crash(items: int) -> None:
    """A keyed task over ten keys, in epochs of a hundred, that crashes halfway."""
    flow = cw.Flow("growth")
    numbers = flow.source("numbers", int)
    flow.sink("counts", numbers.key_by(lambda number: number % 10).apply(count))
    given: list[object] = list(range(items))
    given.insert(items // 2, cw.CRASH)
    assert len(cw.simulate(flow, {"numbers": given}, epoch_size=100)["counts"]) == items


SIDES: tuple[Callable[[int], None], ...] = (
    frontier_of_numbers,
    frontier_of_a_partial_order,
    union_with_a_silent_side,
    a_run_with_a_crash,
)


def microseconds_each(work: Callable[[int], None], items: int) -> float:
    """What an item costs: the least of three."""
    costs = []
    for _ in range(3):
        start = time.process_time()
        work(items)
        costs.append((time.process_time() - start) / items)
    return min(costs) * 1e6


def main() -> int:
    """Measure and print; 1 if something is not linear."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000, help="the least number of items")
    items = parser.parse_args().items
    is_linear = True
    print(f"µs for each of {items:,}, {2 * items:,} and {4 * items:,} items")
    for work in SIDES:
        costs = [microseconds_each(work, factor * items) for factor in (1, 2, 4)]
        growth = costs[-1] / costs[0]
        is_linear &= growth <= MOST
        shown = "  ".join(f"{cost:8.1f}" for cost in costs)
        print(f"{work.__name__.replace('_', ' '):30}{shown}   x {growth:.2f}")
    return 0 if is_linear else 1


if __name__ == "__main__":
    sys.exit(main())
