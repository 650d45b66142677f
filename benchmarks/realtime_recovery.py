"""Recovery in real time: from a kill to the first new output, with few and with many keys in state.

    python benchmarks/realtime_recovery.py [--keys 1000000]

Each repetition starts a run, and kills first one operator, which the run survives, and then
everything, after which it is started again. Each time a record of a known key comes in, and the
time from the kill until its row can be read is measured. See README.md in this folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from counting import Counted, scalar_flow
from feeding import FIRST, PARTITIONS, import_by_name, new_files, read_lines, write_readings
from harness import Bench, Side

from cutwater.spark import call, run
from cutwater.spark.realtime.opening import newest_opening
from cutwater.testing.connectors.processes import kill_all

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from support.faults.realtime_tasks import operator_of

FEW = 10_000
FILE = 100_000
"""Keys in a file of the load."""
PATIENCE_SECONDS = 1800


@dataclass(frozen=True)
class NewRows:
    """Writes the rows behind the load to files, which appear whole."""

    folder: str
    loaded: int

    def __call__(self, tick: int, bucket: int, rows: list[Counted]) -> None:
        new = [asdict(row) for row in rows if row.position >= FIRST + self.loaded]
        if new:
            hidden = Path(self.folder) / f".{tick}-{bucket}"
            hidden.write_text("".join(json.dumps(row) + "\n" for row in new))
            hidden.rename(Path(self.folder) / f"{tick}-{bucket}")


def child(folder: Path, keys: int, until: str) -> None:
    """The run, in a process of its own."""
    run(
        scalar_flow(),
        sources={"readings": folder / "in"},
        sinks={"counts": call(NewRows(str(folder / "out"), keys))},
        checkpoint=folder / "checkpoint",
        mode="realtime",
        partitions=PARTITIONS,
        until=until,
    )


@dataclass
class Killed:
    """A checkpoint with so many keys, whose run is killed."""

    folder: Path
    keys: int
    records: int = 0

    def load(self) -> None:
        """Give every key a state, in a snapshot."""
        (self.folder / "out").mkdir(parents=True)
        for first in range(0, self.keys, FILE):
            path = self.folder / "in" / f"load-{first:09}.json"
            write_readings(path, first, range(first, min(first + FILE, self.keys)))
        if self._start("caught-up").wait(PATIENCE_SECONDS) != 0:
            sys.exit("the load failed")

    def once(self) -> dict[str, float]:
        """Kill one operator, then everything."""
        process = self._start("stopped")
        try:
            self._put_and_wait(process)
            one = self._recovered(process)
            kill_all(process)
            began = time.monotonic()
            process = self._start("stopped")
            self._put_and_wait(process)
            everything = time.monotonic() - began
        finally:
            kill_all(process)
        return {"s after one operator": one, "s after everything": everything}

    def _recovered(self, process: subprocess.Popen[str]) -> float:
        before = self._generation()
        self._kill_operator()
        began = time.monotonic()
        while self._generation() == before:  # the other partition may still release rows
            time.sleep(0.01)
        self._put_and_wait(process)
        return time.monotonic() - began

    def _generation(self) -> int:
        opening = newest_opening(self.folder / "checkpoint")
        return opening.generation if opening else 0

    def _kill_operator(self) -> None:
        pid = operator_of(self.folder / "checkpoint")
        assert pid is not None, "no operator runs"
        os.kill(pid, signal.SIGKILL)

    def _put_and_wait(self, process: subprocess.Popen[str]) -> None:
        """A record comes in; returns once its row is there, and is right."""
        seen: set[str] = set()
        list(new_files(self.folder / "out", seen))
        path = self.folder / "in" / f"more-{self.records:09}.json"
        write_readings(path, self.keys + self.records, [0])
        self.records += 1
        found: list[Path] = []
        while not found:
            if process.poll() is not None:
                sys.exit(f"the run ended: {process.communicate()[1]}")
            time.sleep(0.002)
            found = list(new_files(self.folder / "out", seen))
        counts = [row["count"] for row in read_lines(found)]
        if counts != [self.records + 1]:
            sys.exit(f"the run computes something else: {counts}, not {self.records + 1}")

    def _start(self, until: str) -> subprocess.Popen[str]:
        given = [__file__, "--child", str(self.folder), str(self.keys), until]
        return subprocess.Popen(
            [sys.executable, *given],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def main() -> int:
    """Load both sides, then kill them in turns."""
    import_by_name()
    if sys.argv[1:2] == ["--child"]:
        folder, keys, until = sys.argv[2:]
        child(Path(folder), int(keys), until)
        return 0
    bench = Bench("realtime_recovery", __doc__ or "", quick_repetitions=2)
    bench.parser.add_argument("--keys", type=int, help="20,000 if quick, else 1,000,000")
    given = bench.arguments()
    many = given.keys or (2 * FEW if bench.is_quick else 1_000_000)
    with tempfile.TemporaryDirectory(prefix="cutwater-benchmark-") as scratch:
        sides = [Killed(Path(scratch) / f"{keys}", keys) for keys in (FEW, many)]
        for side in sides:
            bench.tell(f"loading {side.keys:,} keys")
            side.load()
        named = [Side(f"{side.keys:,} keys", side.once) for side in sides]
        bench.compare("from a kill to the first new output", named, base=named[0].name)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
