"""A soak: steady load into Delta and PostgreSQL, a kill every minute, and what grows meanwhile.

In the first half a run is killed with everything it started. In the second half one run stays, so
that it can be seen to grow, and loses a Python worker each minute.

``python tests/faults/soak.py --seconds 3600 --json soak.json``, or ``make soak``.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from support.connectors.postgres_server import PostgresServer, postgres_server
from support.faults.counting_victims import bound
from support.faults.pairs import Pair, make_pair
from support.faults.victims import with_tests

from cutwater.spark import generate
from cutwater.testing.connectors.counting import SOURCE, click, expected
from cutwater.testing.connectors.killed_run import start_job
from cutwater.testing.connectors.processes import (
    children,
    descendants,
    kill_all,
    numbered_files,
    result_of,
    wait_until,
)
from cutwater.testing.connectors.traps import Trapped

ROWS_PER_SECOND = 100
SECONDS_BETWEEN_KILLS = 60
SECONDS_BETWEEN_LOOKS = 1
HEAP = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch",
}
"""The JVM fills all of its heap in time, so it is given little and all of it at once: what grows
beside it is seen, and what is kept in it and grows ends the run."""
TOLERANCE = 1.25
"""What has grown by less than a quarter, from the first third to the last, is flat."""
RESTART = "seconds until the first epoch"
GROWS_BY_NATURE = ("rows in PostgreSQL", "epochs")


@dataclass
class Minute:
    """What was seen between two kills."""

    peaks: dict[str, int] = field(default_factory=dict)
    """The most memory that each kind of process took, and how long the start did."""
    counts: dict[str, int] = field(default_factory=dict)
    """Files and rows at the end."""

    def look(self, process: subprocess.Popen[str]) -> None:
        """Take a sample of the memory of all processes."""
        for kind, size in memory_of(process.pid).items():
            self.peaks[kind] = max(self.peaks.get(kind, 0), size)

    def figures(self) -> dict[str, int]:
        return {**self.peaks, **self.counts}


def memory_of(root: int) -> dict[str, int]:
    """Return the memory that a run takes in MiB: its driver, its JVM and its workers.

    What several processes share, as forked ones do, is counted once. What the JVM is about to
    start has for a moment the JVM's memory and program, and is no process of its own yet.
    """
    driver, jvm, workers = 0, 0, 0
    for pid in descendants(root):
        try:
            program = Path(f"/proc/{pid}/exe").readlink().name
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it is gone
            continue
        share = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
        size = int(share.split()[1]) // 1024
        if pid == root:
            driver = size
        elif program == "java":
            jvm = max(jvm, size)
        else:
            workers += size
    return {"MiB of the driver": driver, "MiB of the JVM": jvm, "MiB of the workers": workers}


@dataclass
class Soak:
    """One checkpoint and two sinks under load."""

    folder: Path
    server: PostgresServer
    seconds: int
    killed: list[Minute] = field(default_factory=list)
    """Minutes after which everything was killed."""
    stayed: list[Minute] = field(default_factory=list)
    """Minutes after which a worker of the run that stays was killed."""
    began: float = field(default_factory=time.monotonic)
    rng: random.Random = field(default_factory=lambda: random.Random(5))

    def __post_init__(self) -> None:
        self.pairs = {
            name: make_pair(f"{name}-{release}", self.folder / name, lambda _: self.server)
            for name, release in (("delta", "commit"), ("postgres", "early"))
        }
        self.pairs["delta"].binding.update(compact_every=20, keep_hours=0)

    @property
    def total(self) -> int:
        return self.seconds * ROWS_PER_SECOND

    def start(self, until: str) -> subprocess.Popen[str]:
        settings = {
            "sources": {SOURCE: generate(click, rows_per_second=ROWS_PER_SECOND, total=self.total)},
            "sinks": {name: Trapped(bound(pair.binding)) for name, pair in self.pairs.items()},
            "checkpoint": str(self.folder / "checkpoint"),
            "until": until,
            "master": "local[2,4]",
            "conf": {},
            "settings": HEAP,
            "flow": "support.faults.own_flow:flow_to",
        }
        return start_job(self.folder / "start", settings, with_tests())

    def soak(self) -> None:
        """Load and kill until the time is over."""
        while self.passed() < self.seconds / 2:
            process = self.start("stopped")
            try:
                self.killed.append(self.minute(process))
            finally:
                kill_all(process)
        process = self.start("stopped")
        try:
            while self.passed() < self.seconds:
                self.stayed.append(self.minute(process))
                del self.stayed[-1].peaks[RESTART]  # nothing was started
                kill_a_worker(process, self.rng)
        finally:
            kill_all(process)

    def passed(self) -> float:
        return time.monotonic() - self.began

    def minute(self, process: subprocess.Popen[str]) -> Minute:
        """Look at a run for a minute."""
        seen = Minute()
        started, epochs = time.monotonic(), self.epochs()
        while time.monotonic() < started + SECONDS_BETWEEN_KILLS:
            assert process.poll() is None, process.communicate()[1]
            seen.look(process)
            if self.epochs() > epochs and RESTART not in seen.peaks:
                seen.peaks[RESTART] = round(time.monotonic() - started)
            time.sleep(SECONDS_BETWEEN_LOOKS)
        assert RESTART in seen.peaks, "in this minute no epoch was finished"
        seen.counts = self.counts()
        print(f"{self.passed():5.0f} s", seen.figures(), flush=True)
        return seen

    def counts(self) -> dict[str, int]:
        """Files and rows as they are now."""
        table = self.folder / "delta" / "out"
        postgres: Any = self.pairs["postgres"].observer
        return {
            "files in the checkpoint": files_in(self.folder / "checkpoint"),
            "files in the folder of the table": files_in(table),
            "files in the log of the table": files_in(table / "_delta_log"),
            "files in the table": self.pairs["delta"].observer.files() if table.exists() else 0,
            "rows in PostgreSQL": postgres.count(),
            "rows in the ledger": len(postgres.epochs()),
            "epochs": self.epochs(),
        }

    def epochs(self) -> int:
        """How many epochs are finished."""
        return max(numbered_files(self.folder / "checkpoint" / "spark" / "commits"), default=-1) + 1

    def finish(self) -> None:
        """Run until all is read, and look at everything that both sinks show."""
        result_of(self.start("caught-up"))
        given = expected(self.total)
        for pair in self.pairs.values():
            check_whole(pair, given)


def check_whole(pair: Pair, given: dict[str, list[tuple[int, int]]]) -> None:
    pair.settle()
    seen = pair.seen()
    assert seen.keys() == given.keys(), pair.name
    for key, rows in given.items():
        assert seen[key] == rows, f"{pair.name} shows something else for {key}"


def files_in(folder: Path) -> int:
    """How many files there are, at any depth; some may go while they are counted."""
    done = subprocess.run(["find", str(folder), "-type", "f"], capture_output=True, text=True)
    return len(done.stdout.splitlines())


def kill_a_worker(process: subprocess.Popen[str], rng: random.Random) -> None:
    """SIGKILL to one of the processes in which tasks run."""

    def kill() -> bool:
        try:
            os.kill(rng.choice(workers_of(process.pid)), signal.SIGKILL)
        except (IndexError, ProcessLookupError):  # there is none now
            return False
        return True

    wait_until(process, kill)


def workers_of(root: int) -> list[int]:
    """The workers that run tasks: there is one process that forks them, and has their name."""
    known = children()
    named = [pid for pid in descendants(root) if name_of(pid) == "pyspark.worker"]
    return [pid for forking in named for pid in known.get(forking, [])]


def name_of(pid: int) -> str:
    """What a list of processes says; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def verdicts(minutes: list[Minute]) -> dict[str, dict[str, Any]]:
    """Compare the first third of minutes with the last one, for everything that was seen.

    Of memory the usual minute; of files, whose number rises until the next compaction, the most.
    """
    third = max(len(minutes) // 3, 1)
    found = {}
    for name in minutes[0].figures() if minutes else ():
        judge = max if name in minutes[0].counts else statistics.median
        first, last = (
            judge(minute.figures().get(name, 0) for minute in part)
            for part in (minutes[:third], minutes[-third:])
        )
        is_flat = last <= first * TOLERANCE
        verdict = "flat" if is_flat else "grows"
        found[name] = {"first third": first, "last third": last, "verdict": verdict}
    return found


def report(soak: Soak, path: Path | None) -> int:
    """Say what was found; 1 if something grows that should not."""
    halves = {"all killed": verdicts(soak.killed), "one run that stays": verdicts(soak.stayed)}
    growing = []
    for half, found in halves.items():
        print(half)
        for name, figures in found.items():
            is_by_nature = name in GROWS_BY_NATURE
            change = f"{figures['first third']:>9.0f} → {figures['last third']:>9.0f}"
            by_nature = " (by nature)" if is_by_nature else ""
            print(f"  {name:34} {change}  {figures['verdict']}{by_nature}")
            if figures["verdict"] == "grows" and not is_by_nature:
                growing.append(f"{name} ({half})")
    kills = len(soak.killed) + len(soak.stayed)
    print(f"{soak.total} rows in each sink, each once and in order; {kills} kills")
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        report = {
            "seconds": soak.seconds,
            "kills": kills,
            "rows": soak.total,
            "figures": halves,
            "killed": [asdict(minute) for minute in soak.killed],
            "stayed": [asdict(minute) for minute in soak.stayed],
        }
        path.write_text(json.dumps(report, indent=1) + "\n")
    print("verdict: " + (f"grows: {', '.join(growing)}" if growing else "flat"))
    return 1 if growing else 0


def main() -> int:
    """Soak, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="cutwater-soak-") as folder,
        postgres_server() as server,
    ):
        soak = Soak(Path(folder), server, chosen.seconds)
        soak.soak()
        soak.finish()
        return report(soak, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
