"""Bytewax: a running count by key with `stateful_map`, one Python call for each event.

    .venv-bytewax/bin/python bytewax_count.py FOLDER [--workers 2] [--processes]

Every file is a partition that gives batches of 1,000 rows, parsed by the ``csv`` module and
already keyed. The state is a dataclass. The sink adds up the counts of a batch and notes the time:
see `steady` for what is timed. There is no recovery store, so nothing is snapshotted.
"""

from __future__ import annotations

import contextlib
import csv
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import bytewax.operators as op
from bytewax._bytewax import cluster_main
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from steady import arguments, expected_sum, report

BATCH = 1_000


@dataclass(slots=True)
class Count:
    """What is kept for each key."""

    count: int = 0


def running(state: Count | None, _value: int) -> tuple[Count, int]:
    """Called once for every event."""
    state = state or Count()
    state.count += 1
    return state, state.count


class Part(StatefulSourcePartition[tuple[str, float], int]):
    """One file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open(newline="")
        self._rows = csv.reader(self._file)
        next(self._rows)

    def next_batch(self) -> Iterable[tuple[str, float]]:
        batch = [(key, int(value)) for _, key, value in islice(self._rows, BATCH)]
        if not batch:
            raise StopIteration
        return batch

    def snapshot(self) -> int:
        return 0

    def close(self) -> None:
        self._file.close()


class Files(FixedPartitionedSource[tuple[str, float], int]):
    """All files of a folder."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = {path.name: path for path in paths}

    def list_parts(self) -> list[str]:
        return list(self._paths)

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Part:
        return Part(self._paths[for_part])


class Ticks(DynamicSink[tuple[str, int]]):
    """Notes when batches come out, and what their counts add up to."""

    def __init__(self) -> None:
        self.ticks: list[tuple[float, int]] = []
        self.sums: list[int] = []

    def build(self, step_id: str, worker_index: int, worker_count: int) -> TickPart:
        return TickPart(self)


class TickPart(StatelessSinkPartition[tuple[str, int]]):
    """Of one worker."""

    def __init__(self, kept: Ticks) -> None:
        self._kept = kept

    def write_batch(self, items: list[tuple[str, int]]) -> None:
        self._kept.sums.append(sum(count for _, count in items))
        self._kept.ticks.append((time.monotonic(), len(items)))


def work(paths: list[Path], addresses: list[str], process: int, workers: int) -> Ticks:
    """Run one process of the cluster to the end."""
    flow = Dataflow("counts")
    ticks = Ticks()
    counted = op.stateful_map("running", op.input("readings", flow, Files(paths)), running)
    op.output("ticks", counted, ticks)
    cluster_main(flow, addresses, process, worker_count_per_proc=workers)
    return ticks


def free_addresses(count: int) -> list[str]:
    """Ports that nobody listens on, below those that the system gives to connections."""
    found: list[str] = []
    while len(found) < count:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(f"127.0.0.1:{port}")
    return found


def main() -> None:
    """Run all processes and print what was measured."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--processes", action="store_true", help="instead of threads")
    parser.add_argument("--addresses", nargs="*", default=[])
    parser.add_argument("--process", type=int)
    given = parser.parse_args()
    paths = sorted((given.folder / "csv").glob("*.csv"))[: given.rounds]
    if given.process is not None:
        ticks = work(paths, given.addresses, given.process, 1)
        print(json.dumps([ticks.ticks, sum(ticks.sums)]))
        return
    if given.processes:
        addresses = free_addresses(given.workers)
        started = [
            subprocess.Popen(
                [
                    *(sys.executable, __file__, str(given.folder)),
                    *("--rounds", str(given.rounds), "--process", str(number)),
                    *("--addresses", *addresses),
                ],
                stdout=subprocess.PIPE,
            )
            for number in range(given.workers)
        ]
        # Above the answer stands that a process could not reach the other one at once.
        answers = [json.loads(p.communicate()[0].splitlines()[-1]) for p in started]
        all_ticks = [tuple(tick) for ticks, _ in answers for tick in ticks]
        total = sum(total for _, total in answers)
    else:
        kept = work(paths, [], 0, given.workers)
        all_ticks, total = kept.ticks, sum(kept.sums)
    kind = "processes" if given.processes else "threads"
    report(
        all_ticks,
        is_right=total == expected_sum(given.rounds, given.keys),
        how=f"{given.workers} {kind}, no recovery store",
    )


if __name__ == "__main__":
    main()
