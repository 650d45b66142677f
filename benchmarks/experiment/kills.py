"""Three kills of everything a side runs, as in the paper's Figure 9."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from documents import RATE
from measure import Failed, Process, place_of, wait_until_seen
from observer import Observer, latencies, wrong_words
from results import percentiles
from sides import Side
from support.connectors.postgres_server import PostgresServer

__all__ = ["KILLS", "killed"]

KILLS = 3
BEFORE_S = 10.0
"""That is shown before the first kill."""
PATIENCE_S = 120.0
SETTLED_S = 0.1
"""A transaction that ends later than this after a kill is one of the next start."""


def killed(
    side: Side, server: PostgresServer, log: Path, warm_up: float, apart: float
) -> dict[str, Any]:
    """The latency of each document over time; the next kill comes some time after the first row."""
    with place_of(server, log) as place, Observer(server.dsn, place.table) as observer:
        process = Process(side, place)
        try:
            wait_until_seen(process, observer)
            start = time.time() + warm_up
            process.check_until(start + BEFORE_S)
            kills = []
            for _ in range(KILLS):
                process.kill()
                kills.append(time.time())
                process = Process(side, place)
                _wait_for_rows(process, observer, kills[-1])
                process.check_until(time.time() + apart)
            end = time.time()
            began = float(place.began.read_text())
            shown = _shown(observer, began, start, end, process)
        finally:
            process.kill()
        wrong = wrong_words(server.dsn, place.table)
    if wrong:
        raise Failed(f"{wrong} words have a change that is missing or doubled")
    return {
        "side": side.name,
        "documents": shown,
        "kills": [
            _told(observer, at, until, start, shown)
            for at, until in zip(kills, [*kills[1:], end], strict=True)
        ],
    }


def _wait_for_rows(process: Process, observer: Observer, at: float) -> None:
    """Wait for a row after a time; what was committed by then is seen a little later."""
    while observer.newest <= at + SETTLED_S:
        process.check()
        if time.time() > at + PATIENCE_S:
            raise Failed(f"it showed nothing within {PATIENCE_S:g} s of a kill")
        time.sleep(0.02)


def _shown(
    observer: Observer, began: float, start: float, end: float, process: Process
) -> list[tuple[float, float]]:
    """When each document was due, in seconds, and its latency; waits for the last of them."""
    while True:
        process.check()
        found = [each for each in latencies(observer.rows, began, RATE, end) if each[0] >= start]
        if all(ms is not None for _, ms in found):
            return [(round(at - start, 3), ms) for at, ms in found if ms is not None]
        if time.time() > end + PATIENCE_S:
            raise Failed(f"not all documents were out {PATIENCE_S:g} s later")
        time.sleep(0.2)


def _told(
    observer: Observer, at: float, until: float, start: float, shown: Sequence[tuple[float, float]]
) -> dict[str, float]:
    """When a kill was, how long until the first row, and until the last late document was out."""
    rows = [time for times in observer.rows.values() for time in times if time > at + SETTLED_S]
    usual = late_from([ms for due, ms in shown if due < BEFORE_S])
    late = [due + ms / 1000 for due, ms in shown if at <= due + start < until and ms > usual]
    return {
        "at_s": round(at - start, 1),
        "first_row_s": round(min(rows) - at, 1),
        "caught_up_s": round(max(late, default=at - start) + start - at, 1),
    }


def late_from(before: Sequence[float]) -> float:
    """A latency above twice the 99th percentile without kills is one of a restart."""
    return 2 * percentiles(before)["p99"]
