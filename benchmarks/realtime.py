"""From an event being due to its row in another session of PostgreSQL, on both engines.

    python benchmarks/realtime.py [--rate 50 500] [--levels 1 2] [--seconds 20]
    python benchmarks/realtime.py --bare        # beside the engine without its guarantee
    python benchmarks/realtime.py --stages      # where the milliseconds go
    python benchmarks/realtime.py --snapshot-intervals 0.5 1 5 30
    python benchmarks/realtime.py --batch-ends  # what the end of a Spark batch costs

Events are generated records, each due at its time by the clock. Another session looks for rows
every 2 ms. Both engines run the same flow to a table with early release, in turns, each in a
session of its own; the first seconds after the first row are warm-up. A server is started for it,
as it comes: every commit is on the disk. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from counting import Counted, Reading, running, scalar_flow
from feeding import import_by_name
from harness import Bench, Comparison, Goal, Side, number
from visible import MICRO_BATCH, MODES, REAL_TIME, Trial

import cutwater as cw

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.connectors.postgres_server import PostgresServer, postgres_server

BARE = "real time, without ledger, plan and snapshots"
MOST_ADDED_MS = 10.0
SHORT_BATCH_S = 5.0
WANTED_MS = {(1, "p50 ms"): 20.0, (1, "p99 ms"): 100.0, (2, "p50 ms"): 35.0}
"""At most, by the number of levels."""


@dataclass(frozen=True)
class Parity:
    """What comes out of the second level, for each reading."""

    position: int
    odd: int
    count: int


@cw.task(initial=0)
def by_parity(state: int, counted: Counted) -> tuple[int, list[Parity]]:
    """Count what the first level sent."""
    return state + 1, [Parity(counted.position, counted.count % 2, state + 1)]


def odd(counted: Counted) -> int:
    """The key of the second level."""
    return counted.position % 16


def flow_of(levels: int) -> cw.Flow:
    """One level: a count by key. Two: what it sends is counted again, by another key."""
    if levels == 1:
        return scalar_flow()
    flow = cw.Flow("two levels")
    counted = flow.source("readings", Reading).key_by("key").apply(running)
    flow.sink("counts", counted.key_by(odd).apply(by_parity))
    return flow


def trial(server: PostgresServer, levels: int, rate: float, seconds: float) -> Trial:
    """A run of the real-time engine."""
    record = Counted if levels == 1 else Parity
    return Trial(server, flow_of(levels), MODES[REAL_TIME], rate, seconds, record)


def engines(bench: Bench, given: argparse.Namespace, server: PostgresServer) -> None:
    """Both engines at each rate and depth."""
    for levels, rate in itertools.product(given.levels, given.rate):
        ours = trial(server, levels, rate, given.seconds)
        sides = [Side(REAL_TIME, replace(ours, has_stages=given.stages))]
        if given.bare:
            sides += [Side(BARE, replace(ours, has_stages=given.stages, has_guarantee=False))]
        else:
            sides += [Side(MICRO_BATCH, replace(ours, mode=MODES[MICRO_BATCH]))]
        base = sides[-1].name
        goals = [] if given.bare else [Goal(REAL_TIME, base, "p50 ms", at_most=0.1)]
        title = f"{rate:g} events/s, levels: {levels}"
        found = bench.compare(title, sides, base=base, goals=goals)
        for sentence in [*limits(found, levels), *(added(found) if given.bare else ())]:
            bench.say(sentence)


def limits(found: Comparison, levels: int) -> Iterator[str]:
    """What became of the wanted milliseconds."""
    for (depth, figure), most in WANTED_MS.items():
        if depth == levels and REAL_TIME in found.values.get(figure, {}):
            middle = statistics.median(found.values[figure][REAL_TIME])
            verdict = "met" if middle <= most else "NOT met"
            yield f"{REAL_TIME}, {figure}: wanted at most {most:g}, {number(middle)}: {verdict}"


def added(found: Comparison) -> Iterator[str]:
    """What the guarantee adds, repetition by repetition."""
    sides = found.values["p50 ms"]
    more = [a - b for a, b in zip(sides[REAL_TIME], sides[BARE], strict=True)]
    middle = statistics.median(more)
    verdict = "met" if middle <= MOST_ADDED_MS else "NOT met"
    yield (
        f"ledger, plan and snapshots add {number(middle)} ms at p50 ({min(more):.1f} to "
        f"{max(more):.1f}); wanted at most {MOST_ADDED_MS:g}: {verdict}"
    )


def intervals(bench: Bench, given: argparse.Namespace, server: PostgresServer) -> None:
    """The real-time engine with each interval between snapshots."""
    for levels, rate in itertools.product(given.levels, given.rate):
        ours = trial(server, levels, rate, given.seconds)
        names = {
            interval: f"a snapshot every {interval:g} s" for interval in given.snapshot_intervals
        }
        sides = [Side(name, replace(ours, snapshot_interval=i)) for i, name in names.items()]
        base = sides[-1].name
        goals = [Goal(side.name, base, "p50 ms", at_least=0.9, at_most=1.1) for side in sides[:-1]]
        bench.compare(f"{rate:g} events/s, levels: {levels}", sides, base=base, goals=goals)


def batch_ends(bench: Bench, given: argparse.Namespace, server: PostgresServer) -> None:
    """The real-time engine with Spark batches that end while it is measured, and with none."""
    for levels, rate in itertools.product(given.levels, given.rate):
        ours = replace(trial(server, levels, rate, given.seconds), has_longest=True)
        sides = [
            Side("no batch ends", ours),
            Side(
                f"a batch ends every {SHORT_BATCH_S:g} s",
                replace(ours, batch_interval=SHORT_BATCH_S),
            ),
        ]
        title = f"{rate:g} events/s, levels: {levels}"
        bench.compare(title, sides, base=sides[0].name)


def main() -> int:
    """Compare what is asked for."""
    bench = Bench("real time", __doc__ or "")
    bench.parser.add_argument("--rate", type=float, nargs="*", default=[50.0, 500.0])
    bench.parser.add_argument("--levels", type=int, nargs="*", default=[1, 2])
    bench.parser.add_argument("--seconds", type=float, default=20.0)
    bench.parser.add_argument("--stages", action="store_true", help="where the milliseconds go")
    bench.parser.add_argument("--bare", action="store_true", help="beside no guarantee at all")
    bench.parser.add_argument("--snapshot-intervals", type=float, nargs="+", metavar="S")
    bench.parser.add_argument("--batch-ends", action="store_true", help="what they cost")
    given = bench.arguments()
    import_by_name()
    with postgres_server(settings={}) as server:
        if given.batch_ends:
            batch_ends(bench, given, server)
        else:
            (intervals if given.snapshot_intervals else engines)(bench, given, server)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
