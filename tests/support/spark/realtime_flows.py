"""Runs random flows side by side on the real-time engine, into files: one for each tick and bucket.

A process of its own: ``python -m support.spark.realtime_flows FOLDER SECONDS ENDING 3 4 5`` runs
the flows of these seeds, with Spark batches of so many seconds. The ending is ``stop``,
``caught-up`` or ``close``.
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
from support.flows.random_flows import Item, RandomSource, Recipe, packed, seeded

from cutwater.flow import Flow
from cutwater.flow.steps import Iterate, Sink, Source
from cutwater.spark import call, json_lines, run

SOURCES = (
    RandomSource("calm", "rule", 0, ()),
    RandomSource("late", "rule", 3, ()),
    RandomSource("numbered", "numbered", 0, ()),
    RandomSource("timeless", "field", 0, ()),
)


STOP = "stop"
"""A file with which a run is asked to stop."""


def recipe_of(seed: int) -> Recipe:
    """The flow of a seed; a loop runs on the other engine, so another one is taken."""
    while True:
        recipe = seeded(seed, SOURCES)
        if not any(isinstance(step, Iterate) for step in recipe.flow().steps):
            return recipe
        seed += 1000


def flow_of(seeds: list[int]) -> Flow:
    """The flows of some seeds, side by side."""
    return packed([recipe_of(seed) for seed in seeds])


def names_of(flow: Flow, kind: type) -> list[str]:
    """The names of the sources or the sinks."""
    return [step.name for step in flow.steps if isinstance(step, kind)]


def write_items(folder: Path, rng: random.Random, number: int, most: int = 7) -> None:
    """A file of a source; its name appears when it is whole."""
    items = [
        Item(rng.choice("abc"), 3 * number + rng.randint(0, 4), rng.randrange(5))
        for _ in range(rng.randint(0, most))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number:04}.jsonl"
    hidden.write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in items))
    hidden.rename(folder / f"{number:04}.jsonl")


@dataclass(frozen=True)
class Keep:
    """Keeps the rows of a tick and bucket in a file; a repeated call changes nothing."""

    folder: str

    def __call__(self, tick: int, bucket: int, rows: list[object]) -> None:
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        (folder / f"{tick}-{bucket}").write_bytes(lines)


def kept(folder: Path) -> dict[int, dict[int, list[bytes]]]:
    """The rows of each tick and bucket."""
    found: dict[int, dict[int, list[bytes]]] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        tick, _, bucket = path.name.partition("-")
        found.setdefault(int(tick), {})[int(bucket)] = path.read_bytes().splitlines()
    return found


def main(folder: str, batch_s: str, ending: str, *seeds: str) -> None:
    """Run until all is read, or until a stop is requested."""
    root, flow = Path(folder), flow_of([int(seed) for seed in seeds])
    run(
        flow,
        sources={n: json_lines(str(root / "in" / n), 200) for n in names_of(flow, Source)},
        sinks={n: call(Keep(str(root / "out" / n))) for n in names_of(flow, Sink)},
        checkpoint=root / "checkpoint",
        mode="realtime",
        partitions=2,
        batch_interval=float(batch_s),
        snapshot_interval=3600.0,
        until="stopped" if ending == "stop" else "caught-up",
        close=ending == "close",
        is_to_stop=(root / STOP).exists,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
