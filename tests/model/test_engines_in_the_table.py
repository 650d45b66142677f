"""Our own engines are rows of the table of guarantees, computed from models of their protocols."""

from support.models import broken_microbatches, broken_realtime
from support.models.protocols import explored, finding, model_of
from support.repo.package import ROOT

from cutwater.checking import check_model, sometimes
from cutwater.semantics.protocols.microbatch import Case, Microbatches
from cutwater.semantics.protocols.realtime import RealTime
from cutwater.semantics.protocols.realtime_world import RealTimeCase

PAGE = ROOT / "docs" / "guarantees.md"


def is_part_of_an_epoch(shown):
    """Has one partition of a sink more rows than another? Each has one of each epoch."""
    return any(len({len(partition) for partition in sink}) > 1 for sink in shown)


def waits_for(protocol, case):
    model, _ = model_of(protocol, case)
    found = check_model(model, [sometimes("a part", is_part_of_an_epoch, observed=True)])
    return "its turn" if "a part" in found.discoveries else "the end of its epoch"


def row(*cells):
    return "| " + " | ".join(cells).rstrip() + " |"


def guarantee_of(protocol, case):
    found = explored(protocol, case)
    return "exactly-once" if found.holds and found.is_exhaustive else "none"


def test_the_rows_of_the_micro_batch_engine():
    page = PAGE.read_text()
    for release in ("early", "commit"):
        case = Case(sinks=(release,))
        cells = (guarantee_of(Microbatches, case), waits_for(Microbatches, case))
        assert row("micro-batches", release, "all", *cells) in page


def test_the_row_of_the_real_time_engine():
    cells = (guarantee_of(RealTime, RealTimeCase()), "its turn")
    assert row("real time", "tick by tick", "all", *cells) in PAGE.read_text()


def test_as_many_broken_rules_are_rejected_as_the_page_says():
    page = PAGE.read_text()
    for engine, release, broken in (
        ("micro-batches", "either", broken_microbatches.BROKEN),
        ("real time", "tick by tick", broken_realtime.BROKEN),
    ):
        assert f"| {engine} | {release} | any one of {len(broken)} broken | none | |" in page
    assert finding(next(iter(broken_microbatches.BROKEN.values()))).path
