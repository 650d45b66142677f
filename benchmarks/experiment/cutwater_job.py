"""Cutwater: `examples/inverted_index.py` on one of its engines; see `sides` for what is compared.

python cutwater_job.py SETTINGS
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]

from documents import EXAMPLES, document  # noqa: E402
from inverted_index import flow  # noqa: E402

from cutwater.spark import generate, postgres_table, run  # noqa: E402

NEVER_SECONDS = 86_400.0
PARTITIONS = 2


def sink_of(settings: dict[str, Any]) -> Any:
    """The table, as the side wants it."""
    if settings["guarantee"] == "none":
        from unguarded import UnguardedTable  # only here: importing it takes the guarantee away

        return UnguardedTable(table=settings["table"], dsn=settings["dsn"], release="early")
    release = settings.get("release", "early")
    return postgres_table(table=settings["table"], dsn=settings["dsn"], release=release)


def began(checkpoint: Path) -> float | None:
    """When document 0 was due, by the log of the source; None: it is not there yet."""
    for path in checkpoint.rglob("*"):
        if path.is_file() and {"plan", "sources"} & {*path.parts} and "scratch" not in path.parts:
            found = re.search(r'"began": ?([0-9.]+)', path.read_text(errors="replace"))
            if found:
                return float(found[1])
    return None


def report_began(checkpoint: Path, report: Path) -> None:
    """Write down when document 0 was due, once it is known."""
    while (at := began(checkpoint)) is None:
        time.sleep(0.2)
    hidden = report.with_suffix(".tmp")
    hidden.write_text(str(at))
    hidden.rename(report)


def main() -> None:
    """Run until the process is ended."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    paths = [str(HERE), str(HERE.parent), str(EXAMPLES), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    checkpoint, report = Path(settings["folder"]) / "checkpoint", Path(settings["began"])
    if not report.exists():
        threading.Thread(target=report_began, args=(checkpoint, report), daemon=True).start()
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    interval = settings["interval_ms"] / 1000 if settings["interval_ms"] else NEVER_SECONDS
    run(
        flow,
        sources={"documents": generate(document, rows_per_second=settings["rate"])},
        sinks={"changes": sink_of(settings)},
        checkpoint=checkpoint,
        until="stopped",
        mode=settings["mode"],
        partitions=PARTITIONS,
        snapshot_interval=interval,
        is_to_stop=is_over.is_set,
    )


if __name__ == "__main__":
    main()
