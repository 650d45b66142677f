"""The experiment of "Delivery, Consistency, and Determinism", section VI; see docs/experiment.md.

    python benchmarks/experiment/run.py [--repetitions 3] [--seconds 15] [--only NAME ...] [--kills]

Documents at 50 a second, from being due to their last change record being visible to another
session of PostgreSQL. Sides take turns; each repetition is a process of its own. What was measured
is kept for each side in a file of `--results`, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import flink_home  # noqa: E402
from documents import RATE  # noqa: E402
from figures import draw_intervals, draw_kills  # noqa: E402
from kills import killed  # noqa: E402
from measure import Failed, measured  # noqa: E402
from results import Measured, percentiles, sentences, table  # noqa: E402
from sides import FLINK, INTERVALS_MS, OURS, PYFLINK, SIDES, Side  # noqa: E402
from support.connectors.postgres_server import PostgresServer, postgres_server  # noqa: E402

KILLED = tuple(s for s in SIDES if s.engine in (OURS, FLINK) and s.interval_ms == 1000)


def arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--repetitions", type=int, default=3, metavar="N")
    add("--seconds", type=float, default=15.0, help="of documents that count, each repetition")
    add("--warm-up", type=float, default=15.0, help="seconds after the first row")
    add(
        "--apart",
        type=float,
        default=15.0,
        help="seconds from the first row after a start to the next kill",
    )
    add("--only", nargs="+", metavar="NAME", help="sides whose names begin with one of these")
    add("--kills", action="store_true", help="the three kills, and nothing else")
    add("--report", action="store_true", help="measure nothing: table and figures of what is there")
    add("--fresh", action="store_true", help="forget what was measured before")
    add("--results", type=Path, default=HERE.parent / "results" / "experiment", metavar="FOLDER")
    add("--docs", type=Path, metavar="FOLDER", help="write experiment.json and figures there, too")
    return parser.parse_args()


def chosen(sides: Sequence[Side], only: Sequence[str] | None) -> list[Side]:
    """Those that are asked for and can run here; the others are told of."""
    found = [s for s in sides if not only or s.name.startswith(tuple(only))]
    for reason in {why for side in found if (why := side.why_not())}:
        print(reason)
    return [side for side in found if not side.why_not()]


def load(file: Path) -> list[dict[str, Any]]:
    """The repetitions of a side so far."""
    return list(json.loads(file.read_text())) if file.exists() else []


def save(file: Path, kept: Any) -> None:
    """Write it whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    hidden = file.with_suffix(".tmp")
    hidden.write_text(json.dumps(kept))
    hidden.rename(file)


def tell(sentence: str) -> None:
    """Progress."""
    print(f"{time.strftime('%H:%M:%S')} {sentence}", file=sys.stderr, flush=True)


def repeat(given: argparse.Namespace, server: PostgresServer, sides: Sequence[Side]) -> None:
    """All sides in turns, in another order each time; skips what is there."""
    for repetition in range(given.repetitions):
        for side in random.Random(repetition).sample(list(sides), len(sides)):
            file = given.results / f"{side.file}.json"
            kept = load(file)
            if len(kept) > repetition:
                continue
            log = given.results / f"{side.file}.log"
            try:
                found = measured(side, server, log, given.warm_up, given.seconds)
                said = ", ".join(
                    f"{n} {v:g}" for n, v in percentiles(found["latencies_ms"]).items()
                )
            except Failed as failed:
                found = {"failed": str(failed), "load": [os.getloadavg()[0]] * 2, "at": time.time()}
                said = f"failed: {failed}"
            tell(f"{side.name}: {said} (load {found['load'][1]:.1f})")
            save(file, [*kept, found])


def kill(given: argparse.Namespace, server: PostgresServer, sides: Sequence[Side]) -> None:
    """The three kills of each side; skips what is there."""
    for side in sides:
        file = given.results / f"kills-{side.file}.json"
        if file.exists():
            continue
        log = given.results / f"kills-{side.file}.log"
        try:
            found = killed(side, server, log, given.warm_up, given.apart)
        except Failed as failed:
            tell(f"{side.name}: failed: {failed}")
            continue
        tell(f"{side.name}: {found['kills']}")
        save(file, found | {"load": os.getloadavg()[0]})


def collected(folder: Path) -> dict[str, Any]:
    """All results, with percentiles in place of latencies."""
    sides, killed_sides = [], []
    for side in SIDES:
        kept = load(folder / f"{side.file}.json")
        each = {name: getattr(side, name) for name in ("engine", "guarantee", "how", "interval_ms")}
        found = [percentiles(k["latencies_ms"]) if "latencies_ms" in k else None for k in kept]
        loads = [round(sum(k["load"]) / 2, 1) for k in kept]
        sides.append(each | {"repetitions": found, "load": loads})
    for side in KILLED:
        file = folder / f"kills-{side.file}.json"
        if file.exists():
            run = json.loads(file.read_text())
            killed_sides.append({name: run[name] for name in ("side", "kills", "load")})
    return {"rate": RATE, "cores": os.cpu_count(), "sides": sides, "kills": killed_sides}


def report(given: argparse.Namespace) -> None:
    """Print the table and what was to be shown; draw the figures."""
    found = collected(given.results)
    sides = [Measured.of_json(side) for side in found["sides"]]
    print(table(sides))
    for sentence in sentences(sides, OURS, [FLINK, PYFLINK]):
        print(sentence)
    places = [given.results, *([given.docs] if given.docs else [])]
    runs = [given.results / f"kills-{side.file}.json" for side in KILLED]
    killed_runs = [json.loads(file.read_text()) for file in runs if file.exists()]
    compared = [s for s in sides if s.engine in (OURS, FLINK, PYFLINK) and s.values("p50")]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        (place / "experiment.json").write_text(json.dumps(found, indent=1) + "\n")
        if compared:
            draw_intervals(compared, INTERVALS_MS, place / "experiment-latency.svg")
        if killed_runs:
            draw_kills(killed_runs, place / "experiment-kills.svg")


def main() -> int:
    """Measure what is missing, then report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # ends the side and the server
    given = arguments()
    if not given.report:
        sides = chosen(KILLED if given.kills else SIDES, given.only)
        if given.fresh:
            for side in sides:
                name = f"kills-{side.file}.json" if given.kills else f"{side.file}.json"
                (given.results / name).unlink(missing_ok=True)
        if flink_home.why_not() is None:
            flink_home.build()
        with postgres_server(settings={}) as server:
            (kill if given.kills else repeat)(given, server, sides)
    report(given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
