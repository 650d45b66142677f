"""How fast a peer is once it runs: from ticks, and in the same way for all of them.

A tick is ``(time.monotonic(), rows)``: so many rows came out since the tick before. The clock
starts at the tick with which a tenth of all rows are out, and stops at the last one; only the
rows after the start count. So what a process does before it is warm is nobody's loss.

Plain Python: it runs in the environments of the peers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

__all__ = ["WARM_UP", "arguments", "expected_sum", "report"]

WARM_UP = 0.1
"""The part of the rows that is not timed."""

Tick = tuple[float, int]


def arguments(about: str) -> argparse.ArgumentParser:
    """What every peer is told: where the input is, and how much."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what make_input.py wrote")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--keys", type=int, default=100_000)
    return parser


def expected_sum(rounds: int, keys: int) -> int:
    """The sum of all running counts: every key is counted up to the number of rounds."""
    return keys * rounds * (rounds + 1) // 2


def report(ticks: Iterable[Tick], *, is_right: bool, how: str) -> None:
    """Print what was measured, as JSON."""
    told = sorted(ticks)
    total = sum(rows for _, rows in told)
    rows_out, start = 0, None
    rows = 0
    for time, count in told:
        if start is not None:
            rows += count
        rows_out += count
        if start is None and rows_out >= WARM_UP * total:
            start = time
    seconds = told[-1][0] - (told[0][0] if start is None else start)
    found = {
        "rows": rows,
        "seconds": round(seconds, 3),
        "rows_per_s": round(rows / seconds) if seconds else None,
        "verified": is_right,
        "how": how,
    }
    print(json.dumps(found), flush=True)
