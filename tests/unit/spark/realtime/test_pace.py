"""How long ticks are: by how many of them no sink has released when the next one is cut."""

from collections import deque

import pytest

from cutwater.spark.realtime.protocol import AHEAD, LONGEST_TICK_S, TICK_S
from cutwater.spark.realtime.readers.pace import Pace


class Sink:
    """Works on ticks one after the other: some seconds for each, and some for each record."""

    def __init__(self, per_tick, per_record):
        self._per_tick, self._per_record = per_tick, per_record
        self._free_at = 0.0
        self._ends = deque()

    def send(self, now, records):
        self._free_at = max(now, self._free_at) + self._per_tick + records * self._per_record
        self._ends.append(self._free_at)

    def in_flight(self, now):
        while self._ends and self._ends[0] <= now:
            self._ends.popleft()
        return len(self._ends)


def run(sink, per_second, seconds=20.0):
    """A reader in front of a sink; the length of ticks at its end, what waits, and the ticks."""
    pace, now, read, ticks, most = Pace(), 0.0, 0, 0, 0
    while now < seconds:
        waiting = int(now * per_second) - read
        in_flight = sink.in_flight(now)
        most = max(most, in_flight)
        if waiting and in_flight < AHEAD and pace.is_due(now, has_number=True):
            pace.note_cut(now, in_flight)
            sink.send(now, waiting)
            read, ticks = read + waiting, ticks + 1
        now += TICK_S
    assert most <= AHEAD
    return pace.tick_s, int(seconds * per_second) - read, ticks


def test_a_sink_that_keeps_up_has_the_shortest_ticks():
    tick_s, waiting, ticks = run(Sink(0.002, 0.0), per_second=1000)
    assert tick_s == TICK_S
    assert waiting <= 20
    assert ticks > 1900


def test_what_a_tick_costs_is_spread_over_more_records():
    """At 10 ms each a sink that takes 40 ms for a tick would be four times too slow."""
    tick_s, waiting, ticks = run(Sink(0.040, 0.0), per_second=1000)
    assert tick_s > TICK_S
    assert ticks <= 20 / 0.040 + AHEAD
    assert waiting < 1000 * AHEAD * LONGEST_TICK_S


def test_ticks_are_short_again_when_the_load_is_gone():
    pace = Pace()
    for _ in range(50):
        pace.note_cut(0.0, AHEAD - 1)
    assert pace.tick_s == LONGEST_TICK_S
    for _ in range(50):
        pace.note_cut(0.0, 0)
    assert pace.tick_s == TICK_S


def test_a_long_tick_is_not_cut_before_its_time_and_a_short_one_is():
    pace = Pace()
    pace.note_cut(5.0, 0)
    assert pace.is_due(5.001, has_number=True)
    assert not pace.is_due(5.001, has_number=False)
    for _ in range(50):
        pace.note_cut(5.0, AHEAD - 1)
    assert not pace.is_due(5.0 + LONGEST_TICK_S / 2, has_number=True)
    assert pace.is_due(5.0 + LONGEST_TICK_S, has_number=False)


def test_a_clock_that_is_set_back_stops_nobody():
    pace = Pace()
    pace.note_cut(5000.0, 0)
    assert pace.is_due(10.0, has_number=False)


@pytest.mark.parametrize("took_s", [0.0, 0.003, 0.02])
def test_only_a_look_that_is_cheap_is_repeated_often(took_s):
    pace = Pace()
    assert pace.wait_s(100.0, took_s) == pytest.approx(max(0.0, TICK_S - took_s))
    pace.note_cut(100.0, 0)
    assert (pace.wait_s(100.5, took_s) < TICK_S / 2) == (took_s == 0.0 or took_s > TICK_S)
    assert pace.wait_s(105.0, took_s) == pytest.approx(max(0.0, TICK_S - took_s))
