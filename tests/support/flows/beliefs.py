"""Random invoices and rates for the bitemporal example, and what was believed, from scratch."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import bitemporal
from bitemporal import Believed, Invoice, Rate

__all__ = ["Believed", "Invoice", "Rate", "believed", "bitemporal", "draw"]

CURRENCIES = ("EUR", "SEK", "THB")


def draw(seed: int, days: int = 9, versions: int = 5) -> tuple[list[Invoice], list[Rate]]:
    """Invoices that are up to two days late, and rates in the order of their versions."""
    rng = random.Random(seed)
    invoices = [
        Invoice(rng.choice(CURRENCIES), max(0, day - rng.randrange(3)), rng.randrange(1, 9))
        for day in range(days)
        for _ in range(2)
    ]
    rates = [
        Rate(currency, version, rng.randrange(1, 20))
        for version in range(versions)
        for currency in CURRENCIES
        if version == 0 or rng.random() < 0.6
    ]
    return invoices, rates


def believed(invoices: Sequence[Invoice], rates: Sequence[Rate]) -> set[Believed]:
    """For each day and version of a currency that occur: the turnover, from all that there is."""
    found = set()
    for day, currency in {(i.day, i.currency) for i in invoices}:
        for version in {r.version for r in rates if r.currency == currency}:
            newest = max(
                (r for r in rates if r.currency == currency and r.version <= version),
                key=lambda rate: rate.version,
            )
            amounts = [i.amount for i in invoices if i.currency == currency and i.day <= day]
            found.add(Believed(currency, day, version, newest.worth * sum(amounts)))
    return found
