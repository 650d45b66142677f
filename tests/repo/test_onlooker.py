"""The observer of fault tests sees what is lost, doubled and out of order."""

import pytest
from support.faults.onlooker import Expected, by_bucket, by_key

from cutwater.testing.connectors.counting import expected

KEYED = expected(400)
ROWS = sorted(
    (
        {"key": key, "number": number, "position": position}
        for key, rows in KEYED.items()
        for number, position in rows
    ),
    key=lambda row: row["position"],
)


@pytest.mark.parametrize("part_of", [by_bucket, by_key])
def test_a_prefix_of_every_part_is_accepted(part_of):
    """Parts may be ahead of each other."""
    parts = sorted({part_of(key) for key in KEYED}, key=str)
    shown = [row for row in ROWS if parts.index(part_of(row["key"])) % 2 or row["position"] < 200]
    seen = Expected(part_of)
    assert seen.check([]) == 0
    assert seen.check(shown) == len(shown)
    assert seen.check(ROWS) == len(ROWS)


@pytest.mark.parametrize("part_of", [by_bucket, by_key])
@pytest.mark.parametrize("at", [0, 100, 200])
def test_what_is_lost_doubled_or_wrong_is_refused(part_of, at):
    lost = [row for row in ROWS if row is not ROWS[at]]
    doubled = [*ROWS, ROWS[at]]
    wrong = [{**row, "number": 99} if row is ROWS[at] else row for row in ROWS]
    for rows in (lost, doubled, wrong):
        with pytest.raises(AssertionError, match="shows"):
            Expected(part_of).check(rows)


def test_two_keys_of_a_bucket_that_change_places_are_refused():
    key = ROWS[0]["key"]
    other = next(r for r in ROWS if by_bucket(r["key"]) == by_bucket(key) and r["key"] != key)
    rows = [row for row in ROWS if row is not other]
    with pytest.raises(AssertionError, match="part"):
        Expected(by_bucket).check([other, *rows])
    assert Expected(by_key).check([other, *rows]) == len(ROWS)
