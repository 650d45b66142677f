"""A flow from a table to tables, on our runtime without a JVM, killed anywhere."""

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.flows.order_totals import (
    Running,
    expected,
    history_in,
    make_orders,
    place_orders,
    totals,
)
from support.spark.toy_spark import POINTS, ToySpark, make_job

from cutwater.observers.postgres import PostgresObserver
from cutwater.spark import postgres_rows, postgres_table

ROWS = 60
NUMBERS = count()


@given(
    kills=st.lists(st.sampled_from(POINTS), max_size=8),
    release=st.sampled_from(["early", "commit"]),
    per_epoch=st.integers(5, 30),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_or_doubled(postgres, tmp_path_factory, kills, release, per_epoch, seed):
    number = next(NUMBERS)
    orders, history, newest = (f"toy_{what}_{number}" for what in ("orders", "history", "newest"))
    make_orders(postgres, orders)
    place_orders(postgres, orders, 1, ROWS)
    reading = {"key": "id", "transaction": "xid", "max_rows_per_epoch": per_epoch}
    writing = {"dsn": postgres.dsn, "release": release, "create": True}
    sinks = {
        "history": postgres_table(table=history, **writing),
        "newest": postgres_table(table=newest, mode="upsert", keys=["customer"], **writing),
    }
    for name, sink in sinks.items():
        sink.prepare(name, Running)
    job = replace(
        make_job(totals(), tmp_path_factory.mktemp("toy")),
        sources={"orders": postgres_rows(table=orders, dsn=postgres.dsn, **reading)},
        sinks=sinks,
    )
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, seed).run_to_the_end(kills)
    assert history_in(postgres, history) == expected(ROWS)
    rows = PostgresObserver(postgres.dsn, newest).rows()
    assert {row["customer"]: (row["id"], row["total"]) for row in rows} == {
        customer: known[-1] for customer, known in expected(ROWS).items()
    }
