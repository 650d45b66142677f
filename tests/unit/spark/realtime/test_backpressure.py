"""A sink that does not answer holds readers back: ticks planned ahead are bounded (rule 8)."""

import random

import pytest
from support.spark.toy_counting import expected_counts, flow, put, rows
from support.spark.toy_realtime import ToyRealTime, toy_job

from cutwater.spark.realtime.opening import newest_opening
from cutwater.spark.realtime.plan_log import read_plan
from cutwater.spark.realtime.positions import read_reader
from cutwater.spark.realtime.protocol import AHEAD


class Frozen(Exception):
    """Nothing goes on any more."""


class FrozenSink(ToyRealTime):
    """The tasks of the last level get nothing done after some rows."""

    rows_left = 0

    def _deliver(self, operators, place):
        level = place[0]
        is_last = level == max(level for level, _ in operators)
        if is_last and self.rows_left <= 0:
            self.waits += 1
            if self.waits > 300:
                raise Frozen
            return
        self.rows_left -= is_last
        super()._deliver(operators, place)

    waits = 0


def in_flight(toy):
    """For each source, the ticks that its reader has sent behind what is released."""
    opening = newest_opening(toy.place)
    released, found = opening.released(), []
    for number in opening.leaders():
        sent = read_reader(opening.reader_position(number)).planned
        ticks = read_plan(opening.plan_path(opening.source_of(number))).after(released)
        found.append(len([planned for planned in ticks if planned.tick <= sent]))
    return found


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("readers", [1, 2])
def test_a_sink_that_does_not_answer_holds_readers_back(tmp_path, levels, readers):
    toy = FrozenSink(toy_job(flow(levels, 2), tmp_path), random.Random(3), readers=readers)
    toy.place = tmp_path / "checkpoint"
    toy.rows_left = 40
    for number in range(12):  # some dozens of ticks, if nobody held them back
        put(toy.job, toy.random, number, 4)
    with pytest.raises(Frozen):
        toy.run()
    assert 0 < max(in_flight(toy)) <= AHEAD
    # A start reads no further ahead either; then the sink answers, and all comes out.
    toy.rows_left, toy.waits = 0, 0
    with pytest.raises(Frozen):
        toy.run()
    assert 0 < max(in_flight(toy)) <= AHEAD
    toy.rows_left = 10**9
    toy.run()
    assert len(rows(toy.job, "out")) == sum(expected_counts(toy.job).values())
