"""How many partitions a state lies in: what is chosen, and what is asked of the session."""

import pytest

from cutwater.spark.state.partitions import (
    SETTING,
    check_partitions,
    shuffling_to,
    suitable_partitions,
)


class Session:
    """As much of a session as is looked at."""

    def __init__(self, cores, shuffles=None):
        self.conf = self.sparkContext = self
        self.defaultParallelism = cores
        self.settings = {} if shuffles is None else {SETTING: shuffles}

    def get(self, name, default):
        return self.settings.get(name, default)

    def set(self, name, value):
        self.settings[name] = value

    def unset(self, name):
        del self.settings[name]


@pytest.mark.parametrize(
    ("cores", "shuffles", "chosen"),
    [
        (2, None, 2),
        (2, "200", 2),
        (1, "200", 1),
        (6, "200", 4),
        (64, "200", 16),
        (0, "200", 1),
        (8, "1", 1),
        (2, "16", 16),
        (4, "3", 4),
        (4, "0", 4),
    ],
)
def test_the_sessions_number_if_it_divides_the_buckets_else_its_cores(cores, shuffles, chosen):
    assert suitable_partitions(Session(cores, shuffles), 16) == chosen


@pytest.mark.parametrize("number", [1, 2, 4, 8, 16])
def test_a_divisor_of_the_buckets_is_let_through(number):
    assert check_partitions(number, 16) == []


@pytest.mark.parametrize("number", [0, -2, 3, 32, 2.0, "2"])
def test_another_number_is_refused_with_those_that_can_be_had(number):
    (problem,) = check_partitions(number, 16)
    assert problem.code == "partitions-do-not-divide"
    assert f"is {number!r};" in problem.message
    assert "1, 2, 4, 8, 16" in problem.hint


@pytest.mark.parametrize("before", [None, "200"])
def test_the_session_is_as_it_was_after(before):
    session = Session(2, before)
    with shuffling_to(session, 8):
        assert session.settings == {SETTING: "8"}
    assert session.settings == ({} if before is None else {SETTING: before})
