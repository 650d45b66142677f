"""`make demo`: a stateful flow on Spark, killed in the middle, and nobody can tell.

Runs the incremental average (averages.py) over generated readings twice: once undisturbed, once
with all its processes killed by SIGKILL at a random moment and started again. Then it compares
what an outside reader of the two outputs sees. Last comes a run in real time (demo_realtime.py).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import demo_realtime
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

SENSORS, READINGS, RESETS = 1_000, 200_000, 2_000
BYTES_PER_EPOCH = 1_000_000
FLOW = Path(__file__).with_name("averages.py")


def generate(folder: Path, seed: int) -> int:
    """Write readings and resets as JSON lines; how many epochs they will take."""
    rng = random.Random(seed)
    for name in ("readings", "resets"):
        (folder / name).mkdir()
    with (folder / "readings" / "0001.jsonl").open("w") as file:
        for at in range(READINGS):
            sensor, value = f"sensor-{rng.randrange(SENSORS)}", round(rng.gauss(20, 5), 2)
            file.write(json.dumps({"sensor": sensor, "at": at, "value": value}) + "\n")
        size = file.tell()
    with (folder / "resets" / "0001.jsonl").open("w") as file:
        for at in sorted(rng.sample(range(READINGS), RESETS)):
            sensor = f"sensor-{rng.randrange(SENSORS)}"
            file.write(json.dumps({"sensor": sensor, "at": at}) + "\n")
    return size // BYTES_PER_EPOCH + 1


@dataclass
class Run:
    """One output, and the processes that make it."""

    name: str
    folder: Path
    starts: int = 0
    kills: list[int] = field(default_factory=list)
    """How many epochs were there at each kill."""

    def epochs(self) -> list[Path]:
        """What an outside reader sees, in order."""
        return sorted(self.folder.glob("out/epoch=*"), key=lambda p: int(p.name.split("=")[1]))

    def start(self, inputs: Path) -> subprocess.Popen[str]:
        """Start the flow from its checkpoint, in a process group of its own."""
        self.starts += 1
        command = [sys.executable, "-c", "from cutwater.cli import main; main()", "run"]
        command += [f"{FLOW}:flow", "--json", "--max-bytes-per-epoch", str(BYTES_PER_EPOCH)]
        command += ["--source", f"readings={inputs / 'readings'}"]
        command += ["--source", f"resets={inputs / 'resets'}"]
        command += ["--sink", f"means={self.folder / 'out'}"]
        command += ["--checkpoint", str(self.folder / "checkpoint")]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )

    def lines(self) -> Iterator[bytes]:
        """Every row, in the order of epochs and of rows in their files."""
        for epoch in self.epochs():
            for part in sorted(epoch.glob("*.jsonl")):
                yield from part.read_bytes().splitlines()

    def by_sensor(self) -> dict[str, list[bytes]]:
        """What each sensor's reader sees, in order."""
        seen: dict[str, list[bytes]] = {}
        for line in self.lines():
            seen.setdefault(json.loads(line)["sensor"], []).append(line)
        return seen


def drive(run: Run, inputs: Path, total: int, kill_after: int | None, console: Console) -> None:
    """Run to the end, with progress; kill everything once when enough epochs are there."""
    columns = (TextColumn("{task.description:<42}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(f"{run.name}: starting Spark", total=total)
        process = run.start(inputs)
        try:
            while process.poll() is None:
                done = len(run.epochs())
                if done:
                    text = f"{run.name}: {done} of {total} epochs"
                    progress.update(bar, completed=done, description=text)
                if kill_after is not None and done >= kill_after and not run.kills:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    run.kills.append(done)
                    text = f"{run.name}: killed at epoch {done}, restarting"
                    progress.update(bar, description=text)
                    process = run.start(inputs)
                time.sleep(0.05)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        progress.update(bar, completed=total, description=f"{run.name}: done")
    _, errors = process.communicate()
    if process.returncode != 0:
        console.print(errors, highlight=False, markup=False)
        sys.exit(process.returncode)


def report(undisturbed: Run, killed: Run, console: Console) -> bool:
    """Compare the two outputs and say so."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("run", "starts", "killed after epoch", "epochs", "rows"):
        table.add_column(title, justify="left" if title == "run" else "right")
    for run in (undisturbed, killed):
        rows = sum(1 for _ in run.lines())
        at = ", ".join(map(str, run.kills)) or "-"
        table.add_row(run.name, str(run.starts), at, str(len(run.epochs())), f"{rows:,}")
    console.print(table)
    expected, seen = undisturbed.by_sensor(), killed.by_sensor()
    differing = [s for s in {**expected, **seen} if expected.get(s) != seen.get(s)]
    if differing:
        console.print(f"[red]The outputs differ for {len(differing)} sensors: {differing[:5]}")
        return False
    console.print(
        f"The killed run shows exactly what the failure-free run shows: {len(expected):,} sensors, "
        f"{sum(map(len, expected.values())):,} rows, nothing lost, doubled or reordered.",
        style="green",
        highlight=False,
    )
    return True


def main() -> int:
    """Generate, run twice, compare."""
    console = Console()
    seed = int(os.environ.get("DEMO_SEED", "0")) or random.randrange(1, 1_000_000)
    with tempfile.TemporaryDirectory(prefix="cutwater-demo-") as scratch:
        folder = Path(scratch)
        total = generate(folder, seed)
        console.print(
            f"{READINGS:,} readings of {SENSORS:,} sensors and {RESETS:,} resets in {total} "
            f"epochs (seed {seed})",
            highlight=False,
        )
        undisturbed = Run("undisturbed", folder / "undisturbed")
        killed = Run("killed once", folder / "killed")
        drive(undisturbed, folder, total, None, console)
        kill_after = random.Random(seed).randrange(2, total - 1)
        drive(killed, folder, total, kill_after, console)
        is_good = report(undisturbed, killed, console)
        return 0 if demo_realtime.act(folder / "realtime", seed, console) and is_good else 1


if __name__ == "__main__":
    sys.exit(main())
