"""A function that fails names where what it was given came from."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from support.spark.toy_frames import ToyFrames
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.errors import extract
from cutwater.ordering import order_bytes
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.generator.source import Generated
from cutwater.spark.connectors.postgres.source import PostgresRows
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job, load_job
from cutwater.spark.microbatch.dataframes import _fixed_orders
from cutwater.spark.microbatch.origin import origin_of


@dataclass(frozen=True)
class Item:
    name: str
    size: int


def share(item: Item) -> float:
    return 12 / item.size


def key_of(item: Item) -> float:
    return 12 / item.size


@cw.task(initial=0.0)
def shares(total: float, item: Item) -> tuple[float, list[float]]:
    return total + 12 / item.size, [total]


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [item]


def before_an_exchange(items):
    return items.map(share)


def as_a_key(items):
    return items.key_by(key_of).apply(count)


def in_a_task(items):
    return items.key_by("name").apply(shares)


def among_other_steps(items):
    return items.key_by("name").filter(bool).apply(shares).map(str)


def in_a_later_task(items):
    return items.key_by("name").apply(count).key_by("size").apply(shares)


def where_state_expires(items):
    return items.key_by("name").apply(shares, expire_after=100)


def behind_a_task(items):
    return items.key_by("name").apply(count).map(share)


def behind_a_task_that_expires(items):
    return items.key_by("name").apply(count, expire_after=100).filter(bool).map(share)


def behind_two_tasks(items):
    return items.key_by("name").apply(count).key_by("size").apply(count, name="again").map(share)


@cw.vectorised(initial=0)
def sizes(totals: int, items: Item, keys: cw.Keys) -> tuple[int, int]:
    if (items.size == 0).any():
        raise ZeroDivisionError("a size is 0")
    return totals + keys.sum(items.size), items.size


def in_a_vectorised_task(items):
    return items.key_by("name").apply(sizes)


SHAPES = [
    behind_a_task,
    in_a_vectorised_task,
    behind_a_task_that_expires,
    behind_two_tasks,
    before_an_exchange,
    as_a_key,
    in_a_task,
    among_other_steps,
    in_a_later_task,
    where_state_expires,
]


def flow_of(shape):
    flow = cw.Flow("shares")
    flow.sink("out", shape(flow.source("items", Item)))
    return flow


def failure(job):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError) as failed:
        ToySpark(job, patch, seed=1).run_to_the_end([])
    (problem,) = extract(str(failed.value)).problems
    assert problem.code == "step-failed"
    assert "ZeroDivisionError" in problem.message
    return problem.message


@pytest.mark.parametrize("shape", SHAPES)
def test_file_and_line_are_named(tmp_path, shape):
    job = make_job(flow_of(shape), tmp_path)
    for file in "abc":
        sizes = [1, 2, 0 if file == "b" else 3, 4]
        lines = [json.dumps({"name": file, "size": size}) for size in sizes]
        (tmp_path / "in" / "items" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    assert failure(job).endswith(f"; it came from {tmp_path / 'in' / 'items' / 'b.jsonl'}:3")


@dataclass(frozen=True)
class Rows:
    def __call__(self, number):
        return Item("abc"[number % 3], number - 5)


@pytest.mark.parametrize("shape", [before_an_exchange, in_a_task])
def test_rows_of_other_sources_are_named_by_their_place(tmp_path, shape):
    connectors = {"items": Generated(Rows(), 9)}
    assert failure(make_job(flow_of(shape), tmp_path, sources=connectors)).endswith(
        "; it came from row 5"
    )


def test_the_place_of_a_row_of_postgresql_is_read_from_its_order():
    source = PostgresRows(table="items", dsn="", key="id", transaction="xid")
    for position in [(7, -3), (7, 2**40), (8, "00000000-0000-0000-0000-00000000002a")]:
        (order,) = source.sort_keys([position])
        chunk = Chunk(0, list(position), list(position))
        assert source.position_of(chunk, order + b"more") == position


def test_a_function_that_fails_once_is_still_reported(tmp_path):
    """Tried again it does not fail, so its origin is not known; the failure is."""
    (tmp_path / "flag").touch()
    flag = str(tmp_path / "flag")

    def fails_once(item: Item) -> int:
        import pathlib

        if pathlib.Path(flag).exists() and item.size == 0:
            count = len(pathlib.Path(flag).read_text()) + 1
            pathlib.Path(flag).write_text("x" * count)
            if count <= 2:
                raise ValueError("once")
        return item.size

    flow = cw.Flow("once")
    flow.sink("out", flow.source("items", Item).map(fails_once))
    job = make_job(flow, tmp_path)
    (tmp_path / "in" / "items" / "a.jsonl").write_text('{"name": "a", "size": 0}\n')
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError) as failed:
        ToySpark(job, patch, seed=1).run_to_the_end([])
    (problem,) = extract(str(failed.value)).problems
    assert "raised ValueError: once" in problem.message
    assert "it came from" not in problem.message


@dataclass(frozen=True)
class Timed:
    name: str
    at: int


def note(seen: int, time: int, item: Timed) -> tuple[int, list[cw.Notify]]:
    return seen + 1, [cw.Notify(time)]


def fails_on_completion(seen: int, time: int) -> tuple[int, list[int]]:
    return seen, [seen // (time - 3)]


def failure_of_times(job, *times):
    for number, at in enumerate(times):
        for name in job.sources:
            file = Path(job.sources[name].path) / f"{number}.jsonl"
            file.write_text(json.dumps({"name": "ada", "at": at}) + "\n")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError) as failed:
        ToySpark(job, patch, seed=1).run_to_the_end([], close=True)
    (problem,) = extract(str(failed.value)).problems
    return problem.message


def on_completion(*sources):
    flow = cw.Flow("completed")
    streams = [
        flow.source(name, Timed, time="at", watermark=cw.bounded_delay(1)) for name in sources
    ]
    both = streams[0].union(*streams[1:]) if streams[1:] else streams[0]
    flow.sink("out", both.key_by("name").on_complete(note, fails_on_completion, initial=0))
    return flow


def test_a_function_that_a_watermark_calls_names_the_key_the_time_and_the_sources(tmp_path):
    job = make_job(on_completion("items", "others"), tmp_path, max_bytes_per_epoch=1)
    assert failure_of_times(job, 3, 9).endswith(
        "; it was given 4, 3; the key is 'ada'; it was called since time 7 is complete: source "
        "'items' has reached 7, source 'others' has reached 7"
    )


def test_a_function_that_the_end_calls_names_the_key(tmp_path):
    job = make_job(on_completion("items"), tmp_path)
    assert failure_of_times(job, 3).endswith(
        "; it was given 1, 3; the key is 'ada'; it was called since the input has ended"
    )


@pytest.mark.parametrize("shape", [before_an_exchange, as_a_key])
def test_rows_of_a_dataframe_are_named_by_their_order(monkeypatch, shape):
    rows = [{"name": "a", "size": size, "at": at} for at, size in enumerate([1, 2, 0])]
    schema = pa.schema([("name", pa.string()), ("size", pa.int64()), ("at", pa.int64())])
    batch = pa.RecordBatch.from_pylist(rows, schema)
    toy = ToyFrames(flow_of(shape), ["at"], monkeypatch)
    with pytest.raises(RuntimeError) as failed:
        toy.epoch({"items": [[batch]]})
    (problem,) = extract(str(failed.value)).problems
    assert problem.message.endswith("; it came from the row of source 'items' with at 2")


def test_a_row_behind_an_exchange_is_named_by_the_whole_numbers_of_its_order():
    job = Job(flow_of(in_a_task), {"items": OfNumbers(None, ["partition", "at"])}, {}, "", 0, 1, "")
    order = _fixed_orders(
        order_bytes((0,)), [pa.array([3], pa.int32()), pa.array([-9], pa.int64())]
    )
    origin = origin_of(load_job(dump_job(job)), order[0] + b"what it caused")
    assert origin == "the row of source 'items' with partition 3, at -9"


class OfNumbers(Frame):
    """A DataFrame whose order is whole numbers."""

    whole_order = ("partition", "at")
