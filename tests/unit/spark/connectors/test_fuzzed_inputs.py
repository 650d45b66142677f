"""No file of a source gives a traceback: its records are read, or one of them is a sentence."""

import io
import time
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.fuzz.mutations import mutations, tolerate
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import CutwaterError
from cutwater.spark import csv, folder, json_lines, parquet
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.operators.reading import Reading


@dataclass(frozen=True)
class Item:
    name: str
    size: int
    share: float = 0.5


ROWS = [{"name": f"n{i}", "size": i * 37, "share": i / 7} for i in range(12)]


def _parquet():
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), buffer)
    return buffer.getvalue()


KINDS = {
    "json": (json_lines, b"".join(b'{"name":"n","size":%d,"share":0.5}\n' % i for i in range(12))),
    "csv": (csv, b"name,size,share\n" + b"".join(b'"n,%d",%d,0.5\n' % (i, i) for i in range(12))),
    "parquet": (parquet, _parquet()),
}


@pytest.fixture
def job(tmp_path):
    flow = cw.Flow("items")
    flow.sink("out", flow.source("items", Item).key_by("name").aggregate(n=cw.agg.count()))
    side_outputs = {bad_records_sink("items"): folder(str(tmp_path / "bad"))}
    return make_job(flow, tmp_path, sinks=side_outputs)


def read(job, source):
    """Plan and read all of a folder as an epoch would; how many rows it made."""
    job = replace(job, sources={"items": source})
    reading = Reading(job, "items")
    found = 0
    for chunk in source.planner(Item, time.time).poll():
        found += sum(batch.num_rows for batch in reading.read(chunk))
    return found + sum(batch.num_rows for batch in reading.rest())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("skips", [False, True])
def test_a_file_that_went_wrong_is_a_sentence(job, tmp_path, kind, skips):
    make, data = KINDS[kind]
    place = tmp_path / "fuzzed"
    place.mkdir()
    source, job = make(str(place)), replace(job, skip_bad_records=skips)
    (place / "1").write_bytes(data)
    assert read(job, source) > 0
    for mutated in mutations(data, seed=5):
        (place / "1").write_bytes(mutated)
        tolerate(mutated, lambda: read(job, source), CutwaterError)
