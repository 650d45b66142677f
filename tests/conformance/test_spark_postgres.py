"""A whole flow on Spark between tables of PostgreSQL: rows in, rows out, over several runs."""

from dataclasses import dataclass

import pytest

import cutwater as cw
from cutwater.errors import RunError
from cutwater.observers.postgres import PostgresObserver
from cutwater.spark import postgres_rows, postgres_table, run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Order:
    id: int
    customer: str
    amount: int


@dataclass(frozen=True)
class Running:
    customer: str
    id: int
    total: int


def add_up(total: int, order: Order) -> tuple[int, Running]:
    total += order.amount
    return total, Running(order.customer, order.id, total)


def totals() -> cw.Flow:
    flow = cw.Flow("totals")
    running = flow.source("orders", Order).key_by("customer").apply(add_up, initial=0)
    flow.sink("history", running)
    flow.sink("newest", running)
    return flow


def place_orders(postgres, first: int, last: int) -> None:
    postgres.execute(
        "INSERT INTO orders (id, customer, amount)"
        f" SELECT n, 'c' || n % 7, n FROM generate_series({first}, {last}) AS n"
    )


def expected(last: int) -> dict[str, list[tuple[int, int]]]:
    """Of each customer what the history says, in order."""
    history: dict[str, list[tuple[int, int]]] = {}
    for n in range(1, last + 1):
        known = history.setdefault(f"c{n % 7}", [])
        known.append((n, (known[-1][1] if known else 0) + n))
    return history


def test_rows_go_from_table_to_tables(postgres, spark, tmp_path):
    postgres.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL,"
        " amount bigint NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id())"
    )

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
        place_orders(postgres, written + 1, last)
        result = once()
        written = last
        assert result.rows == {"history": last, "newest": last}
        history: dict[str, list[tuple[int, int]]] = {}
        for row in PostgresObserver(postgres.dsn, "history").rows():
            history.setdefault(row["customer"], []).append((row["id"], row["total"]))
        assert history == expected(last)
        newest = PostgresObserver(postgres.dsn, "newest").rows()
        assert {row["customer"]: (row["id"], row["total"]) for row in newest} == {
            customer: known[-1] for customer, known in expected(last).items()
        }
    with pytest.raises(RunError, match="another-checkpoint"):
        once("another")
    assert PostgresObserver(postgres.dsn, "history").count() == written
