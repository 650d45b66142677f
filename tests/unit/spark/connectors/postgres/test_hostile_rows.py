"""Hostile rows of a table: each is carried as it is, or a dead letter; no neighbour is lost."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.spark import folder, postgres_rows
from cutwater.spark.connectors.base.side_outputs import bad_records_sink


@dataclass(frozen=True)
class Item:
    id: int
    text: str
    number: int
    weight: float
    parts: Any = None


@cw.task(initial=None)
def same(state: Item | None, item: Item) -> tuple[Item | None, list[Item]]:
    return item, [item]


ROWS = {
    1: ("'x'", "5", "1.5", "NULL"),
    2: ("repeat('x', 10000000)", "5", "1.5", "NULL"),
    3: ("'x'", "170141183460469231731687303715884105728", "1.5", "NULL"),
    4: ("'x'", "5", "'NaN'", "NULL"),
    5: ("'x'", "5", "'-Infinity'", "NULL"),
    6: ("'x'", "5.5", "1.5", "NULL"),
    7: ("'x'", "'NaN'", "1.5", "NULL"),
    8: ("NULL", "5", "1.5", "NULL"),
    9: ("'x'", "5", "1.5", "(repeat('[', 900) || repeat(']', 900))::jsonb"),
    10: ("'x'", "NULL", "1.5", "'[1e400]'"),
    11: ("E'\\x01 \\u2028 \U0001f70d'", "-9223372036854775808", "5e-324", "'{\"a\": null}'"),
}
BAD = {3, 6, 7, 8, 10}


def test_hostile_rows_are_carried_or_kept_in_a_side_output(postgres, tmp_path):
    postgres.execute(
        "CREATE TABLE hostile (id bigint PRIMARY KEY, text text, number numeric, weight float8,"
        " parts jsonb, xid xid8 NOT NULL DEFAULT pg_current_xact_id())"
    )
    for number, values in ROWS.items():
        postgres.execute(f"INSERT INTO hostile VALUES ({number}, {', '.join(values)})")
    flow = cw.Flow("hostile")
    flow.sink("out", flow.source("items", Item).key_by("text").apply(same))
    source = postgres_rows(
        table="hostile", dsn=postgres.dsn, key="id", transaction="xid", max_rows_per_epoch=4
    )
    job = make_job(flow, tmp_path, sources={"items": source}, skip_bad_records=True)
    side_output = {bad_records_sink("items"): folder(str(tmp_path / "bad"))}
    job = replace(job, sinks={**job.sinks, **side_output})
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, seed=1).run_to_the_end(["staged", "published"])
    carried = {line["id"]: line for line in lines_in(tmp_path / "out" / "out")}
    bad = {line["key"]: line for line in lines_in(tmp_path / "bad")}
    assert set(bad) == BAD
    assert set(carried) == set(ROWS) - BAD
    assert len(carried[2]["text"]) == 10_000_000
    assert carried[11]["text"] == "\x01 \u2028 \U0001f70d"
    assert carried[11]["number"] == -(2**63)
    assert all(line["table"] == "public.hostile" and line["error"] for line in bad.values())


def lines_in(place):
    paths = sorted(place.glob("epoch=*/*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
