"""Jobs: their levels, and how they travel to processes that cannot import the user's files."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import RunError
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.job.spec import load_job, speaking


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [Item(item.name, seen + 1)]


def levels(flow, tmp_path):
    return [[s.name for s in level] for level in make_job(flow, tmp_path).levels]


def test_a_flow_without_state_has_no_level(tmp_path):
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("items", Item).map(lambda item: item).key_by(lambda i: i.name))
    assert levels(flow, tmp_path) == []


def test_steps_of_one_depth_share_a_level(tmp_path):
    flow = cw.Flow("fork")
    items = flow.source("items", Item)
    first = items.key_by("name").apply(count, name="first")
    side = items.key_by("size").apply(count, name="side")
    both = first.merge(side, name="both").key_by("name", name="again")
    flow.sink("deep", both.apply(count, name="deep"))
    flow.sink("first", first)
    assert levels(flow, tmp_path) == [["by_name", "by_size"], ["again"]]


def test_steps_behind_one_key_are_one_level(tmp_path):
    flow = cw.Flow("chain")
    stream = flow.source("items", Item).key_by("name").apply(count).map(lambda i: i, name="m")
    flow.sink("out", stream.filter(bool).apply(count, name="again"))
    assert levels(flow, tmp_path) == [["by_name"]]


PROJECT = {
    "shapes.py": """
from __future__ import annotations
from dataclasses import dataclass
import enum

class Colour(enum.Enum):
    RED = "red"

@dataclass(frozen=True)
class Point:
    x: int
    next: Point | None = None

@dataclass(frozen=True)
class Shape:
    name: str
    at: Point
    colour: Colour = Colour.RED
""",
    "pairs.py": """
from __future__ import annotations
from typing import NamedTuple

class Pair(NamedTuple):
    left: int
    right: int = 5
""",
    "maths.py": """
import pairs
import shapes
FACTOR = 10

def scaled(x):
    return FACTOR * sum(pairs.Pair(x, 0))
""",
    "job.py": """
from __future__ import annotations
import cutwater as cw
import maths
from shapes import Point, Shape

def moved(shape: Shape) -> list[Point]:
    return [Point(maths.scaled(shape.at.x), shape.at)]

@cw.task(initial=0)
def furthest(state: int, point: Point) -> tuple[int, list[Point]]:
    far = max(state, point.x)
    return far, [type(point)(far, point.next)]

flow = cw.Flow("moves")
flow.sink("out", flow.source("shapes", Shape).flat_map(moved).key_by("x").apply(furthest))
""",
}

WORKER = """
import sys
from cutwater.spark.job.spec import load_job
job = load_job(sys.stdin.buffer.read())
given = [segment.given for segment in job.plan.segments if segment.is_stateful]
assert [tp.value.__name__ for tp in given] == ["Point"], given
from cutwater.spark.microbatch.source_reader import FeedSource
import msgspec, cutwater as cw
shape = msgspec.json.decode(b'{"name": "a", "at": {"x": 2, "next": {"x": 1}}}',
                            type=job.flow.steps[0].type)
(point,) = cw.simulate(job.flow, {"shapes": [shape]})["out"]
letters = next(iter(job.letters.values()))
from cutwater.spark.exchange.batch import Batch
batch = Batch([b"order"], [b"key"], [point])
assert letters.read(letters.writer(0)(batch)) == (0, batch)
assert not {"job", "maths", "pairs", "shapes"} & set(sys.modules)
try:
    print(msgspec.json.decode(b'{"name": "a"}', type=job.flow.steps[0].type))
except msgspec.ValidationError:
    pass  # a required field is still required
print(point)
"""


def test_modules_beside_the_flow_travel_with_it(tmp_path, monkeypatch):
    """With annotations that are text, helper modules, nested and recursive types, and enums."""
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("job", "maths", "pairs", "shapes"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import job as user_module  # type: ignore[import-not-found]

    data = make_job(user_module.flow, tmp_path).to_bytes()
    for name in ("job", "maths", "pairs", "shapes"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    far_away = tmp_path / "elsewhere"
    far_away.mkdir()
    worker = subprocess.run(
        [sys.executable, "-c", WORKER], input=data, capture_output=True, cwd=far_away
    )
    assert worker.stderr.decode() == ""
    assert worker.stdout.decode().startswith("Point(x=20, next=Point(x=2, next=Point(x=1,")


def test_sending_a_job_leaves_the_users_classes_as_they_were(tmp_path):
    before = (dict(Item.__annotations__), dict(count.f.__annotations__))
    flow = cw.Flow("counts")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(count))
    make_job(flow, tmp_path).to_bytes()
    assert (dict(Item.__annotations__), dict(count.f.__annotations__)) == before


def test_a_job_comes_back_as_it_was(tmp_path):
    flow = cw.Flow("counts")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(count))
    job = make_job(flow, tmp_path, permute=3, parallelism=5, skip_bad_records=True)
    again = load_job(job.to_bytes())
    assert again.sources == {"items": JsonLines(str(tmp_path / "in" / "items"), 64)}
    assert (again.sinks, again.permute, again.parallelism) == (job.sinks, 3, 5)
    assert again.skip_bad_records
    assert levels(again.flow, tmp_path) == levels(flow, tmp_path)


def test_what_cannot_travel_is_a_sentence(tmp_path):
    lock = threading.Lock()

    def guarded(item: Any) -> Any:
        with lock:
            return item

    flow = cw.Flow("locks")
    flow.sink("out", flow.source("items", Item).map(guarded))
    with pytest.raises(RunError, match="flow-cannot-travel"):
        make_job(flow, tmp_path).to_bytes()


class Struct(msgspec.Struct, frozen=True):
    """Sent by value it would arrive without its fields."""

    name: str


def test_a_struct_that_cannot_be_imported_there_is_refused(tmp_path):
    flow = cw.Flow("structs")
    flow.sink("out", flow.source("items", Struct))
    with pytest.raises(RunError, match="struct-cannot-travel"):
        make_job(flow, tmp_path).to_bytes()


def test_our_errors_are_quoted_and_others_are_not():
    with pytest.raises(RuntimeError, match="<<cutwater:"), speaking():
        raise RunError([])
    with pytest.raises(KeyError), speaking():
        raise KeyError


def test_the_test_runs_where_json_and_os_are_installed_modules():
    """`own_modules` must not send the standard library."""
    from cutwater.flow.user_modules import is_installed

    assert all(is_installed(module.__name__) for module in (json, os, pytest, cw, sys))
    assert not is_installed(__name__)
