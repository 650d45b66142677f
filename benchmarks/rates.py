"""Latency over rate on both engines: how many events a second each carries, and where they cross.

    python benchmarks/rates.py [--task scalar vectorised] [--rate 500 5000 50000] [--seconds 20]

Every event goes through a keyed task that keeps a count and a sum; one in a hundred of them is
shown, in a table of PostgreSQL with every commit on the disk, so that what is measured is the
engine and not the server beside it on the same cores. Latency is from the event being due to its
row being seen by another session, as in `realtime.py`; that of an engine that does not keep up
grows with the time. See README.md in this folder.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from pathlib import Path

from counting import Counted, Reading, Total
from feeding import import_by_name
from harness import Bench, Comparison, Side, number
from visible import MODES, REAL_TIME, Trial

import cutwater as cw

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.connectors.postgres_server import postgres_server

SHOWN = 100
"""One in so many events is shown."""
RATES = {
    "scalar": [500.0, 5_000.0, 20_000.0, 50_000.0],
    "vectorised": [500.0, 5_000.0, 50_000.0, 150_000.0],
}
WANTED = {"scalar": 50_000.0, "vectorised": 150_000.0}
WANTED_MS = 100.0


@cw.task(initial=Total(0, 0))
def sampled(state: Total, event: Reading) -> tuple[Total, list[Counted]]:
    """One call for each event."""
    state = Total(state.count + 1, state.sum + event.value)
    if event.position % SHOWN:
        return state, []
    return state, [Counted(event.position, event.key, state.count, state.sum)]


@cw.vectorised(initial=Total(0, 0))
def sampled_arrays(state: Total, event: Reading, keys: cw.Keys) -> tuple[Total, cw.Emit[Counted]]:
    """One call for a batch."""
    counts = keys.running_count(start=state.count)
    sums = keys.running_sum(event.value, start=state.sum)
    counted = Counted(event.position, event.key, counts, sums)  # type: ignore[arg-type]
    shown = cw.Emit(event.position % SHOWN == 0, counted)  # type: ignore[arg-type]
    return Total(keys.last(counts), keys.last(sums)), shown  # type: ignore[arg-type]


def flow_of(task: str) -> cw.Flow:
    """The task of a name behind a source."""
    flow = cw.Flow(f"sampled_{task}")
    keyed = flow.source("readings", Reading).key_by("key")
    flow.sink("counts", keyed.apply(sampled if task == "scalar" else sampled_arrays))
    return flow


def reached(found: Comparison, rate: float) -> str:
    """Whether the real-time engine carried a rate."""
    middle = statistics.median(found.values["p50 ms"][REAL_TIME])
    verdict = "met" if middle <= WANTED_MS else "NOT met"
    return f"{rate:,.0f} events/s at p50 {number(middle)} ms, wanted {WANTED_MS:g}: {verdict}"


def main() -> int:
    """Both engines at each rate, with each task."""
    bench = Bench("rates", __doc__ or "", quick_repetitions=1)
    bench.parser.add_argument("--task", nargs="*", choices=list(RATES), default=list(RATES))
    bench.parser.add_argument("--rate", type=float, nargs="*")
    bench.parser.add_argument("--engine", nargs="*", choices=list(MODES), default=list(MODES))
    bench.parser.add_argument("--seconds", type=float, default=20.0)
    bench.parser.add_argument("--stages", action="store_true", help="where the milliseconds go")
    given = bench.arguments()
    import_by_name()
    with postgres_server(settings={}) as server:
        for task in given.task:
            for rate in given.rate or RATES[task]:
                one = Trial(server, flow_of(task), "", rate, given.seconds, shown=SHOWN)
                sides = [
                    Side(
                        engine,
                        replace(
                            one, mode=MODES[engine], has_stages=given.stages and engine == REAL_TIME
                        ),
                    )
                    for engine in given.engine
                ]
                title = f"{task} task, {rate:,.0f} events/s"
                found = bench.compare(title, sides, base=given.engine[-1])
                if rate == WANTED[task] and REAL_TIME in given.engine:
                    bench.say(reached(found, rate))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
