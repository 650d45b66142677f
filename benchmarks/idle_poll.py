"""What does a poll cost that finds nothing new, and how large does the log of a source become?

    python benchmarks/idle_poll.py [--files 100000] [--epochs 100000]

The poll is that of a folder of JSON lines in which every file was read: with the rolling look held
still, with it as it goes at ten polls a second, and as it would be if each poll listed the folder.
The time is that of the processor, for one poll. The log is that of a topic with 4 partitions; its
entries are written as in a run, but not synced. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.connectors.base.source import Chunk, Planner
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.watching import files_in
from cutwater.spark.connectors.kafka.source import KafkaMessages

POLLS = 200
PARTITIONS = 4


class Clock:
    """A wall clock that goes when it is told to."""

    def __init__(self) -> None:
        self.time = time.time() + 60

    def __call__(self) -> float:
        return self.time


def milliseconds(poll: Callable[[], object], polls: int = POLLS) -> str:
    """The processor's time for one poll: median and largest."""
    times = []
    for _ in range(polls):
        began = time.process_time()
        poll()
        times.append((time.process_time() - began) * 1000)
    return f"{statistics.median(times):8.3f} ms (largest {max(times):.3f})"


def measure_polls(root: Path, count: int) -> None:
    """Idle polls of a folder with so many files."""
    folder, clock = root / "in", Clock()
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:09}").write_text("1\n")
    log = ChunkLog(JsonLines(str(folder)), int, root / "log", None, clock)
    while log.extend() != log.extend():
        pass

    def a_tenth_of_a_second_later() -> int:
        clock.time += 0.1
        return log.extend()

    known = set(files_in(str(folder)))
    print(f"idle poll of a folder with {count:,} files that were read")
    print("  that lists it   ", milliseconds(lambda: set(files_in(str(folder))) - known, 10))
    print("  rolling look off", milliseconds(log.extend))
    print("  rolling look on ", milliseconds(a_tenth_of_a_second_later))


class Steady(Planner):
    """A thousand messages of each partition in every epoch."""

    def __init__(self) -> None:
        self._next = 0

    def advance(self, chunk: Chunk) -> None:
        self._next = max(self._next, chunk.end)

    def freeze(self) -> None:
        pass

    def has_input(self) -> bool:
        return True

    def poll(self) -> list[Chunk]:
        about = {"topic": "orders", "topic_id": "f" * 22}
        start, end = self._next, self._next + 1000
        return [Chunk(number, start, end, about) for number in range(PARTITIONS)]


@dataclass(frozen=True)
class SteadyMessages(KafkaMessages):
    """A topic that needs no broker."""

    def planner(self, tp: Any, now: Callable[[], float]) -> Planner:
        return Steady()


def measure_log(root: Path, epochs: int) -> None:
    """The size of the log of a topic after so many epochs, and of what it would be whole."""
    os.fsync = lambda _file: None  # type: ignore[assignment]
    source, folder = SteadyMessages(topic="orders", servers="127.0.0.1:1"), root / "topic"
    log, largest, whole = ChunkLog(source, dict, folder), 0, 0
    for epoch in range(1, epochs + 1):
        log.extend()
        whole += (folder / "0" / f"{epoch}.json").stat().st_size
        if epoch % 500 == 0:
            largest = max(largest, size_of(folder))
    print(f"the log of a topic with {PARTITIONS} partitions after {epochs:,} epochs")
    print(f"  all entries     {whole / 1e6:8.3f} MB")
    print(f"  what is kept    {size_of(folder) / 1e6:8.3f} MB (largest {largest / 1e6:.3f})")


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=100_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        measure_polls(Path(place), asked.files)
        measure_log(Path(place), asked.epochs)


if __name__ == "__main__":
    main()
