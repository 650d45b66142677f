"""Notifications in flows: once, never early, never twice, in order; with crashes, and from the
start.
"""

from dataclasses import dataclass

import pytest

import cutwater as cw


@dataclass(frozen=True)
class Cell:
    at: cw.Product
    name: str


def received(seen: int, time: cw.Product, cell: Cell) -> tuple[int, list[str | cw.Notify]]:
    return seen + 1, [f"got {cell.name}", cw.Notify(time)]


def completed(seen: int, time: cw.Product) -> tuple[int, list[str | cw.Notify]]:
    later = cw.Product(time.first + 1, time.second)
    again = [cw.Notify(later)] if time.first < 2 else []
    return seen, [f"{seen} by {time.first},{time.second}", *again]


def telling(*requests):
    flow = cw.Flow("telling")
    cells = flow.source("cells", Cell, time="at")
    told = cells.on_complete(received, completed, initial=0, requests=requests, name="tell")
    flow.sink("told", told)
    return flow


def cell(first, second):
    return Cell(cw.Product(first, second), f"{first},{second}")


CELLS = [
    cell(1, 0),
    cell(0, 1),
    cw.Watermark(cw.Product(0, 1)),
    cw.BARRIER,
    cell(2, 0),
    cell(1, 2),
    cw.Watermark(cw.Product(1, 1)),
    cw.Watermark(cw.Product(2, 2)),
]
TOLD = [
    "got 1,0",
    "got 0,1",
    "2 by 0,0",  # from the start
    "2 by 0,1",
    "got 2,0",
    "got 1,2",
    "4 by 1,0",  # asked for by its event, and by the notification of 0,0: told once
    "4 by 1,1",
    "4 by 1,2",  # these are unrelated, as are 2,0 and 1,2: by their bytes
    "4 by 2,0",
    "4 by 2,1",
    "4 by 2,2",
]


def test_under_a_partial_order_each_time_is_notified_once_in_order_also_those_asked_at_the_start():
    assert cw.simulate(telling(cw.Product(0, 0)), {"cells": CELLS})["told"] == TOLD


@pytest.mark.parametrize("place", range(len(CELLS) + 1))
def test_a_crash_anywhere_changes_nothing(place):
    cells = [*CELLS[:place], cw.CRASH, *CELLS[place:]]
    assert cw.simulate(telling(cw.Product(0, 0)), {"cells": cells})["told"] == TOLD


def test_every_interleaving_with_crashes_is_explained():
    report = cw.check(telling(cw.Product(0, 0)), {"cells": CELLS[1:5]}, crashes=1, walks=1)
    assert report.holds
    found = {finding.check: finding for finding in report.findings}
    assert "explored all" in found["failure transparency, all runs"].extent


def test_what_is_asked_for_from_the_start_is_notified_without_any_event():
    flow = telling(cw.Product(0, 0))
    assert cw.simulate(flow, {"cells": [cw.Watermark(cw.Product(1, 0))]}).by_epoch("told") == [
        ["0 by 0,0", "0 by 1,0"],
        ["0 by 2,0"],
    ]


def test_what_is_asked_for_from_the_start_is_notified_at_the_end_of_an_empty_input():
    assert cw.simulate(telling(cw.Product(5, 5)), {"cells": []})["told"] == ["0 by 5,5"]
    assert cw.simulate(telling(), {"cells": []})["told"] == []
