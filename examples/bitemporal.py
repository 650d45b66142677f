"""What did we believe at version T about time t? Two clocks, and a question to both.

Invoices happen on days. Exchange rates are corrected from time to time: each correction has a
version. The turnover up to a day is a belief: it depends on the version of the rates. An answer
about day t by version T is given once, when no more invoices up to t and no more rates up to T can
come, and it stays true.

    cutwater run examples/bitemporal.py:turnover --source invoices=invoices --source rates=rates \\
        --sink beliefs=out --checkpoint checkpoint
"""

from __future__ import annotations

from dataclasses import dataclass

import cutwater as cw


@dataclass(frozen=True)
class Invoice:
    """An amount in some currency."""

    currency: str
    day: int
    amount: int


@dataclass(frozen=True)
class Rate:
    """What one of a currency is worth, as a version of the rates has it."""

    currency: str
    version: int
    worth: int


@dataclass(frozen=True)
class Valued:
    """An invoice, as a version of the rates values it."""

    currency: str
    worth: int


@dataclass(frozen=True)
class Cell:
    """What the invoices of a day are worth in a version."""

    day: int
    version: int
    worth: int


@dataclass(frozen=True)
class Beliefs:
    """What is known of a currency, day by day and version by version."""

    currency: str = ""
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Believed:
    """The turnover up to a day, by the newest rates up to a version."""

    currency: str
    day: int
    version: int
    turnover: int


def valued(invoice: Invoice, rate: Rate) -> Valued:
    """An invoice in the light of a rate."""
    return Valued(invoice.currency, invoice.amount * rate.worth)


def received(
    beliefs: Beliefs, time: cw.Product, value: Valued
) -> tuple[Beliefs, list[Believed | cw.Notify]]:
    """Keep what an invoice is worth, and ask to be told when its day and version are complete."""
    others = [cell for cell in beliefs.cells if (cell.day, cell.version) != at(time)]
    before = sum(cell.worth for cell in beliefs.cells if (cell.day, cell.version) == at(time))
    cells = (*others, Cell(*at(time), before + value.worth))
    return Beliefs(value.currency, cells), [cw.Notify(time)]


def answered(beliefs: Beliefs, time: cw.Product) -> tuple[Beliefs, list[Believed | cw.Notify]]:
    """The turnover up to a day, by the rates of a version."""
    day, version = at(time)
    seen = [cell for cell in beliefs.cells if cell.day <= day and cell.version <= version]
    newest = max(cell.version for cell in seen)
    turnover = sum(cell.worth for cell in seen if cell.version == newest)
    return beliefs, [Believed(beliefs.currency, day, version, turnover)]


def at(time: cw.Product) -> tuple[int, int]:
    """Day and version."""
    return time.first, time.second


turnover = cw.Flow("turnover")
invoices = turnover.source("invoices", Invoice, time="day", watermark=cw.bounded_delay(2))
rates = turnover.source("rates", Rate, time="version", watermark=cw.bounded_delay(0))
worth = invoices.key_by("currency", name="by currency").join_clocks(
    rates.key_by("currency", name="rates by currency"), valued, unbounded=True
)
beliefs = worth.on_complete(received, answered, initial=Beliefs(), name="beliefs")
turnover.sink("beliefs", beliefs)

inputs = {
    "invoices": [Invoice("EUR", 1, 10), Invoice("EUR", 2, 5), cw.BARRIER, Invoice("EUR", 9, 1)],
    "rates": [Rate("EUR", 1, 2), cw.BARRIER, Rate("EUR", 2, 3), Rate("EUR", 9, 3)],
}
