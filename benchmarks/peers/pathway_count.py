"""Pathway: a count by key with its built-in reducer, from CSV.

    .venv-pathway/bin/python pathway_count.py FOLDER [--threads 2]

Pathway reads all files as they are (``mode="static"``), groups by key and counts in Rust; no Python
runs for an event. The counts go to its null sink. Timed is the second of two runs in one process,
from `pw.run()` to its return: the first one, on two files and with a callback that verifies the
counts, warms up. That excludes the start of the process and the imports; a run has no
moment at which a tenth of the rows are out, since a static input is one batch.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from steady import arguments


def main() -> None:
    """Verify, then measure."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    os.environ["PATHWAY_THREADS"] = str(given.threads)
    import pathway as pw

    class Reading(pw.Schema):
        position: int
        key: str
        value: int

    def counts(path: Path) -> Any:
        readings = pw.io.csv.read(str(path), schema=Reading, mode="static")
        return readings.groupby(pw.this.key).reduce(pw.this.key, count=pw.reducers.count())

    def run() -> float:
        start = time.monotonic()
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        took = time.monotonic() - start
        pw.internals.parse_graph.G.clear()
        return took

    found: dict[str, int] = {}

    def note(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            found[row["key"]] = row["count"]

    pw.io.subscribe(counts(given.folder / "csv" / "part-000[01].csv"), note)
    run()
    is_right = len(found) == given.keys and set(found.values()) == {2}

    pw.io.null.write(counts(given.folder / "csv"))
    seconds = run()
    rows = given.rounds * given.keys
    print(
        json.dumps(
            {
                "rows": rows,
                "seconds": round(seconds, 3),
                "rows_per_s": round(rows / seconds),
                "verified": is_right,
                "how": f"{given.threads} threads, static input",
            }
        )
    )


if __name__ == "__main__":
    main()
