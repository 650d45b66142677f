"""A function that fails in real time names where what it was given came from."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.spark.toy_realtime import ToyRealTime, toy_job

import cutwater as cw
from cutwater.errors import StepError


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0.0)
def shares(total: float, item: Item) -> tuple[float, list[float]]:
    return total + 12 / item.size, [total]


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [item]


@cw.vectorised(initial=0)
def sizes(totals: int, items: Item, keys: cw.Keys) -> tuple[int, int]:
    if (items.size == 0).any():
        raise ZeroDivisionError("a size is 0")
    return totals + keys.sum(items.size), items.size


def share(item: Item) -> float:
    return 12 / item.size


SHAPES = {
    "before an exchange": lambda items: items.map(share),
    "in a task": lambda items: items.key_by("name").apply(shares),
    "in a vectorised task": lambda items: items.key_by("name").apply(sizes),
    "behind a task": lambda items: items.key_by("name").apply(count).map(share),
    "in a later task": lambda items: items.key_by("name").apply(count).key_by("size").apply(shares),
}


def write(job, file, *sizes):
    lines = [json.dumps({"name": file, "size": size}) for size in sizes]
    path = Path(job.sources["items"].path) / f"{file}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("shape", SHAPES)
def test_file_and_line_are_named(tmp_path, shape):
    flow = cw.Flow("shares")
    flow.sink("out", SHAPES[shape](flow.source("items", Item)))
    toy = ToyRealTime(toy_job(flow, tmp_path), random.Random(1))
    write(toy.job, "a", 1, 2, 3)
    toy.run()
    wrong = write(toy.job, "b", 1, 2, 0, 4)
    for _ in range(2):  # the second run replays what the first one planned
        with pytest.raises(StepError) as failed:
            toy.run()
        (problem,) = failed.value.problems
        assert problem.code == "step-failed"
        assert problem.message.endswith(f"; it came from {wrong}:3")
