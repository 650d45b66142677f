"""Two sources with clocks of their own: products of times, in the simulator and the checker."""

import random

import pytest
from support.flows.beliefs import Invoice, Rate, believed, bitemporal, draw

import cutwater as cw


def cut(items, seed):
    """Barriers at random places."""
    rng = random.Random(seed)
    found = []
    for item in items:
        found += [item, cw.BARRIER] if rng.random() < 0.3 else [item]
    return found


def epochs_alike(invoices, rates):
    """The same number of epochs for both sources."""
    missing = invoices.count(cw.BARRIER) - rates.count(cw.BARRIER)
    return invoices + [cw.BARRIER] * max(0, -missing), rates + [cw.BARRIER] * max(0, missing)


@pytest.mark.parametrize("seed", range(12))
def test_beliefs_are_those_of_all_that_happened_however_epochs_are_cut(seed):
    invoices, rates = draw(seed)
    inputs = epochs_alike(cut(invoices, seed), cut(rates, seed + 50))
    given = dict(zip(("invoices", "rates"), inputs, strict=True))
    shown = cw.simulate(bitemporal.turnover, given)["beliefs"]
    assert len(shown) == len(set(shown))
    assert set(shown) == believed(invoices, rates)
    parallel = cw.simulate(bitemporal.turnover, given, instances=3, trace=True)["beliefs"]
    assert sorted(parallel, key=repr) == sorted(shown, key=repr)


def test_an_answer_waits_for_both_clocks_and_for_no_more():
    invoices = [Invoice("EUR", 1, 10), Invoice("EUR", 4, 100), cw.BARRIER, cw.BARRIER]
    rates = [Rate("EUR", 0, 2), cw.BARRIER, Rate("EUR", 1, 3), cw.BARRIER]
    run = cw.simulate(bitemporal.turnover, {"invoices": invoices, "rates": rates})
    first, second, end = (
        [(b.day, b.version, b.turnover) for b in epoch] for epoch in run.by_epoch("beliefs")
    )
    assert first == []  # version 0 may still have a rate
    assert second == [(1, 0, 20)]  # day 4 may still have an invoice, and version 1 a rate
    assert sorted(end) == [(1, 1, 30), (4, 0, 220), (4, 1, 330)]


def test_every_interleaving_with_a_crash_is_explained():
    inputs = {
        "invoices": [Invoice("EUR", 1, 5), cw.BARRIER, Invoice("EUR", 4, 7)],
        "rates": [Rate("EUR", 0, 2), cw.BARRIER, Rate("EUR", 1, 3)],
    }
    report = cw.check(bitemporal.turnover, inputs, crashes=1, walks=1)
    assert report.holds
