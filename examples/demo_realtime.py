"""The last act of `make demo`: the same promise in real time, while one of its processes is killed.

Readings are generated, and their running mean (live.py) is in a file some milliseconds later. The
process that made the newest row is killed by SIGKILL; the run starts its query again by itself.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from live import PLACE, TABLE, Mean, connect, create, flow, reading
from rich.console import Console
from rich.table import Table

import cutwater as cw

ROWS, ROWS_PER_SECOND = 2_000, 100
PATIENCE_S = 300
FILE = Path(__file__).with_name("live.py")
CONFIG = """
[run]
checkpoint = "checkpoint"
mode = "realtime"
until = "stopped"

[sources.readings]
kind = "generate"
record_of = "live:reading"
total = {rows}
rows_per_second = {rate}

[sinks.means]
kind = "call"
function = "live:show"
"""


@dataclass
class Live:
    """The run, as somebody sees it who only reads the file."""

    folder: Path
    killed_at: float = 0.0
    """When a process was killed; 0: not yet."""
    rows_then: int = 0
    """How many rows there were."""

    @property
    def path(self) -> Path:
        """The file with the table."""
        return self.folder / "means.db"

    @property
    def log(self) -> Path:
        """What the run says of itself, once a second."""
        return self.folder / "log.jsonl"

    def start(self) -> subprocess.Popen[str]:
        """Start the flow; its live view goes to the terminal."""
        config = self.folder / "run.toml"
        config.write_text(CONFIG.format(rows=ROWS, rate=ROWS_PER_SECOND))
        command = [sys.executable, "-c", "from cutwater.cli import main; main()", "run"]
        command += [f"{FILE}:flow", "--config", str(config), "--json", "--log", str(self.log)]
        environment = {**os.environ, PLACE: str(self.path)}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdout=pipe, text=True, start_new_session=True, env=environment
        )

    def count(self) -> int:
        """How many rows there are."""
        with connect(str(self.path)) as table:
            return int(table.execute(f"SELECT count(*) FROM {TABLE}").fetchone()[0])

    def newest_process(self) -> int:
        """The process that made the newest row."""
        with connect(str(self.path)) as table:
            found = table.execute(f"SELECT pid FROM {TABLE} ORDER BY rowid DESC LIMIT 1")
            return int(found.fetchone()[0])

    def rows(self) -> list[Mean]:
        """All rows, in the order in which they became visible."""
        with connect(str(self.path)) as table:
            found = table.execute(f"SELECT sensor, count, number, mean FROM {TABLE} ORDER BY rowid")
            return [Mean(*row) for row in found]

    def recovery_s(self) -> float:
        """From the kill to the first row of a process that was not there before."""
        with connect(str(self.path)) as table:
            seen = list(table.execute(f"SELECT at, pid FROM {TABLE} ORDER BY rowid"))
        before = {pid for at, pid in seen if at < self.killed_at}
        return next(at for at, pid in seen if pid not in before) - self.killed_at

    def latency_ms(self) -> float:
        """From the cut of a tick to its rows in the file: the median of what the run reported."""
        said = map(json.loads, self.log.read_text().splitlines())
        return statistics.median(each["duration_ms"] for each in said if each["event"] == "epoch")


def drive(live: Live, kill_after: int) -> int:
    """Run until all rows are there, with a kill on the way; the exit code."""
    process = live.start()
    deadline = time.monotonic() + PATIENCE_S
    try:
        while process.poll() is None and live.count() < ROWS and time.monotonic() < deadline:
            if not live.killed_at and live.count() >= kill_after:
                live.rows_then, live.killed_at = live.count(), time.time()
                os.kill(live.newest_process(), signal.SIGKILL)
            time.sleep(0.02)
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode


def by_sensor(rows: list[Mean]) -> dict[str, list[Mean]]:
    """What each sensor's reader sees, in order."""
    seen: dict[str, list[Mean]] = {}
    for row in rows:
        seen.setdefault(row.sensor, []).append(row)
    return seen


def report(live: Live, console: Console) -> bool:
    """Compare with the simulator, which knows no failures, and say so."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("run", "latency (median)", "killed after row", "went on after", "rows"):
        table.add_column(title, justify="left" if title == "run" else "right")
    rows = live.rows()
    latency, pause = f"{live.latency_ms():.0f} ms", f"{live.recovery_s():.1f} s"
    table.add_row("in real time", latency, f"{live.rows_then:,}", pause, f"{len(rows):,}")
    console.print(table)
    wanted = cw.simulate(flow, {"readings": [reading(n) for n in range(ROWS)]})
    expected, seen = by_sensor(wanted["means"]), by_sensor(rows)
    differing = [s for s in {**expected, **seen} if expected.get(s) != seen.get(s)]
    if differing:
        console.print(f"[red]The rows differ for {len(differing)} sensors: {differing[:5]}")
        return False
    console.print(
        f"It shows exactly what the simulator shows: {len(expected):,} sensors, {len(rows):,} "
        "rows, nothing lost, doubled or reordered.",
        style="green",
        highlight=False,
    )
    return True


def act(folder: Path, seed: int, console: Console) -> bool:
    """Run, kill, compare: is it as it must be?"""
    live = Live(folder)
    folder.mkdir()
    create(str(live.path))
    console.print(
        f"\nIn real time: {ROWS:,} readings, {ROWS_PER_SECOND} a second, each with its tick",
        highlight=False,
    )
    code = drive(live, random.Random(seed).randrange(ROWS // 4, ROWS // 2))
    if code != 0 or not live.killed_at:
        console.print(f"[red]The run ended with {code}, after {live.count():,} rows")
        return False
    return report(live, console)
