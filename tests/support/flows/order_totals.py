"""A flow from a table to tables: what each customer has ordered so far."""

from dataclasses import dataclass

import cutwater as cw
from cutwater.observers.postgres import PostgresObserver


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


@cw.task(initial=0)
def add_up(total: int, order: Order) -> tuple[int, list[Running]]:
    total += order.amount
    return total, [Running(order.customer, order.id, total)]


def totals() -> cw.Flow:
    flow = cw.Flow("totals")
    running = flow.source("orders", Order).key_by("customer").apply(add_up)
    flow.sink("history", running)
    flow.sink("newest", running)
    return flow


def make_orders(postgres, table: str) -> None:
    postgres.execute(
        f"CREATE TABLE {table} (id bigint PRIMARY KEY, customer text NOT NULL,"
        " amount bigint NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id())"
    )


def place_orders(postgres, table: str, first: int, last: int) -> None:
    postgres.execute(
        f"INSERT INTO {table} (id, customer, amount)"
        f" SELECT n, 'c' || n % 7, n FROM generate_series({first}, {last}) AS n"
    )


def expected(last: int) -> dict[str, list[tuple[int, int]]]:
    """Of each customer what the history says, in order."""
    history: dict[str, list[tuple[int, int]]] = {}
    for n in range(1, last + 1):
        known = history.setdefault(f"c{n % 7}", [])
        known.append((n, (known[-1][1] if known else 0) + n))
    return history


def history_in(postgres, table: str) -> dict[str, list[tuple[int, int]]]:
    """Of each customer what the table says, in the order in which it was added."""
    history: dict[str, list[tuple[int, int]]] = {}
    for row in PostgresObserver(postgres.dsn, table).rows():
        history.setdefault(row["customer"], []).append((row["id"], row["total"]))
    return history
