"""The Hasse diagrams of docs/time.md are drawn from the orders."""

import sys
from itertools import product

import pytest
from support.operators.orders import closure
from support.repo.package import ROOT

sys.path.insert(0, str(ROOT / "docs"))
from draw_times import PANELS, covers, drawing


def test_the_committed_drawing_is_what_the_code_draws():
    drawn = (ROOT / "docs" / "times.svg").read_text()
    assert drawn == drawing(), "python docs/draw_times.py writes it"


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_lines_lead_up_along_the_order_and_paths_of_them_are_all_of_it(panel):
    places = panel.places
    lines = covers(places)
    assert all(places[a].y > places[b].y for a, b in lines)
    reached = {(a, a) for a in places}
    while more := {(a, c) for a, b in reached for d, c in lines if b == d} - reached:
        reached |= more
    assert reached == {(a, b) for a, b in product(places, repeat=2) if a <= b}


def test_a_line_leaps_over_no_time():
    first, second, third, beside = closure(4, [(0, 1), (1, 2), (0, 3)])
    assert covers(dict.fromkeys([first, second, third, beside])) == [
        (first, second), (first, beside), (second, third)
    ]  # fmt: skip
