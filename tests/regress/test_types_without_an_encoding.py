"""A plain class passed for a record type until its first value was to be encoded."""

from dataclasses import dataclass

import pytest

from cutwater.codec import Codec
from cutwater.errors import FlowError


class Plain:
    pass


@dataclass
class Record:
    inside: list[Plain]


@dataclass
class Other:
    x: int


@pytest.mark.parametrize("tp", [Plain, Record])
def test_a_type_without_an_encoding_is_refused(tp):
    with pytest.raises(FlowError, match="type-without-encoding"):
        Codec(tp)


def test_a_list_among_the_members_of_a_union():
    @dataclass
    class Another:
        y: int

    codec = Codec(Other | Another | list[int])
    assert codec.decode(codec.encode([1, 2])) == [1, 2]
