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
from cutwater.spark.job.transport import dump_job, load_job


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [Item(item.name, seen + 1)]


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
from cutwater.spark.job.transport import dump_job, load_job
job = load_job(sys.stdin.buffer.read())
given = [segment.input_type for segment in job.plan.segments if segment.is_stateful]
assert [tp.value.__name__ for tp in given] == ["Point"], given
from cutwater.spark.microbatch.source_reader import EpochDataSource
import msgspec, cutwater as cw
shape = msgspec.json.decode(b'{"name": "a", "at": {"x": 2, "next": {"x": 1}}}',
                            type=job.flow.steps[0].type)
(point,) = cw.simulate(job.flow, {"shapes": [shape]})["out"]
codec = next(iter(job.codecs.event_codecs.values()))
from cutwater.spark.exchange.batch import EventBatch
batch = EventBatch([b"order"], [b"key"], [point])
assert codec.read(codec.writer(0)(batch)) == (0, batch)
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

    data = dump_job(make_job(user_module.flow, tmp_path))
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
    dump_job(make_job(flow, tmp_path))
    assert (dict(Item.__annotations__), dict(count.f.__annotations__)) == before


def test_a_job_comes_back_as_it_was(tmp_path):
    flow = cw.Flow("counts")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(count))
    job = make_job(flow, tmp_path, permute=3, parallelism=5, skip_bad_records=True)
    again = load_job(dump_job(job))
    assert again.sources == {"items": JsonLines(str(tmp_path / "in" / "items"), 64)}
    assert (again.sinks, again.permute, again.parallelism) == (job.sinks, 3, 5)
    assert again.skip_bad_records
    assert len(again.topology.levels) == len(job.topology.levels) == 1


def test_what_is_derived_from_a_job_does_not_travel_with_it(tmp_path):
    flow = cw.Flow("counts")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(count))
    job = make_job(flow, tmp_path)
    fresh = dump_job(job)
    assert job.loops is job.topology.loops
    assert job.addresses is job.topology.addresses is job.loops.addresses
    assert job.requirements is job.topology.requirements is job.codecs.requirements
    assert job.codecs.event_codecs
    assert dump_job(job) == fresh


def test_what_cannot_travel_is_a_sentence(tmp_path):
    lock = threading.Lock()

    def guarded(item: Any) -> Any:
        with lock:
            return item

    flow = cw.Flow("locks")
    flow.sink("out", flow.source("items", Item).map(guarded))
    with pytest.raises(RunError, match="flow-cannot-travel"):
        dump_job(make_job(flow, tmp_path))


class Struct(msgspec.Struct, frozen=True):
    """Sent by value it would arrive without its fields."""

    name: str


def test_a_struct_that_cannot_be_imported_there_is_refused(tmp_path):
    flow = cw.Flow("structs")
    flow.sink("out", flow.source("items", Struct))
    with pytest.raises(RunError, match="struct-cannot-travel"):
        dump_job(make_job(flow, tmp_path))


def test_the_test_runs_where_json_and_os_are_installed_modules():
    """`own_modules` must not send the standard library."""
    from cutwater.flow.user_modules import is_installed

    assert all(is_installed(module.__name__) for module in (json, os, pytest, cw, sys))
    assert not is_installed(__name__)


CONNECTOR = """
from cutwater.spark.connectors.files.json_source import JsonLines

class OwnSource(JsonLines):
    def weight(self, chunk):
        return 42
"""


def test_a_connector_of_the_users_own_travels_too(tmp_path, monkeypatch):
    """A class in the file beside the flow, of which no field holds anything of that file."""
    (tmp_path / "own_connector.py").write_text(CONNECTOR)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_connector", raising=False)
    import own_connector  # type: ignore[import-not-found]

    flow = cw.Flow("copy")
    flow.source("items", Item).sink("out")
    (tmp_path / "in").mkdir()
    source = own_connector.OwnSource(str(tmp_path / "in"))
    data = dump_job(make_job(flow, tmp_path, sources={"items": source}))
    worker = subprocess.run(
        [sys.executable, "-c", OTHER], input=data, capture_output=True, cwd=tmp_path / "in"
    )
    assert (worker.stdout.decode(), worker.stderr.decode()) == ("42\n", "")


OTHER = """
import sys
from cutwater.spark.job.transport import load_job
print(load_job(sys.stdin.buffer.read()).connector_of("items").weight(None))
"""
