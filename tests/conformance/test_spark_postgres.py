"""A whole flow on Spark between tables of PostgreSQL: rows in, rows out, over several runs."""

import pytest
from support.flows.order_totals import expected, history_in, make_orders, place_orders, totals

from cutwater.errors import RunError
from cutwater.observers.postgres import PostgresObserver
from cutwater.spark import postgres_rows, postgres_table, run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_rows_go_from_table_to_tables(postgres, spark, tmp_path):
    make_orders(postgres, "orders")

    def once(checkpoint: str = "checkpoint"):
        return run(
            totals(),
            spark,
            sources={
                "orders": postgres_rows(
                    table="orders",
                    dsn=postgres.dsn,
                    key="id",
                    transaction="xid",
                    max_rows_per_epoch=40,
                )
            },
            sinks={
                "history": postgres_table(
                    table="history", dsn=postgres.dsn, release="early", create=True
                ),
                "newest": postgres_table(
                    table="newest", dsn=postgres.dsn, mode="upsert", keys=["customer"], create=True
                ),
            },
            checkpoint=tmp_path / checkpoint,
        )

    written = 0
    for last in (100, 130):
        place_orders(postgres, "orders", written + 1, last)
        result = once()
        written = last
        assert result.rows == {"history": last, "newest": last}
        assert history_in(postgres, "history") == expected(last)
        newest = PostgresObserver(postgres.dsn, "newest").rows()
        assert {row["customer"]: (row["id"], row["total"]) for row in newest} == {
            customer: known[-1] for customer, known in expected(last).items()
        }
    with pytest.raises(RunError, match="another-checkpoint"):
        once("another")
    assert PostgresObserver(postgres.dsn, "history").count() == written
