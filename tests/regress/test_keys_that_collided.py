"""A Decimal too large for a float was the key infinity; very small ones could not be a key."""

import dataclasses
import math
from decimal import Decimal

from cutwater.ordering import canonical


def test_a_large_decimal_is_not_infinite():
    assert len({canonical(k) for k in (Decimal("1e400"), Decimal("2e400"), math.inf)}) == 3


def test_a_small_decimal_is_a_key():
    assert canonical(Decimal("1e-5000")) != canonical(Decimal("2e-5000"))


def test_what_equality_ignores_is_not_part_of_a_key():
    @dataclasses.dataclass(frozen=True)
    class Key:
        name: str
        note: str = dataclasses.field(compare=False)

    assert canonical(Key("a", "x")) == canonical(Key("a", "y"))
