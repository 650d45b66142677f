"""Vectorised tasks, right ones and wrong ones, each in its own way; in a module to be imported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cutwater as cw


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float


@dataclass(frozen=True)
class Total:
    count: int
    sum: float


@dataclass(frozen=True)
class Mean:
    sensor: str
    mean: float


NOTHING = Total(0, 0.0)

RIGHT = []
"""Tasks to which a batch means the same as its events one by one."""
WRONG = []
"""Tasks to which it does not."""


def right(task):
    RIGHT.append(task)
    return task


def wrong(task):
    WRONG.append(task)
    return task


def flow_of(task, *, is_keyed=True, expire_after=None):
    """A flow with nothing but a task on readings, by sensor."""
    flow = cw.Flow("readings")
    readings = flow.source("readings", Reading)
    keyed = readings.key_by("sensor") if is_keyed else readings
    flow.sink("out", keyed.apply(task, expire_after=expire_after))
    return flow


@right
@cw.vectorised(initial=NOTHING)
def running_mean(state: Total, event: Reading, keys: cw.Keys) -> tuple[Total, Mean]:
    count = keys.running_count(start=state.count)
    total = keys.running_sum(event.value, start=state.sum)
    return Total(keys.last(count), keys.last(total)), Mean(event.sensor, total / count)


@cw.task(initial=NOTHING)
def running_mean_of_each(state: Total, event: Reading) -> tuple[Total, list[Mean]]:
    """`running_mean`, one by one."""
    count, total = state.count + 1, state.sum + event.value
    return Total(count, total), [Mean(event.sensor, total / count)]


@right
@cw.vectorised(initial=0.0)
def steps_up(highest: float, event: Reading, keys: cw.Keys) -> tuple[float, cw.Emit[Reading]]:
    """Readings higher than all before them."""
    before = keys.previous(keys.running_max(event.value, start=highest), start=highest)
    return keys.max(event.value, start=highest), cw.Emit(event.value > before, event)


@right
@cw.vectorised(initial=0)
def twice(count: int, event: Reading, keys: cw.Keys) -> tuple[int, cw.Emit[str]]:
    rows = np.repeat(np.arange(len(keys)), 2)
    return count + keys.count(), cw.Emit(rows, event.sensor[rows])


@right
@cw.vectorised(initial=0.0)
def smoothed(level: float, event: Reading, keys: cw.Keys) -> tuple[float, float]:
    level, seen = level.copy(), np.empty(len(keys))
    for now in keys.rounds():
        of = keys.of[now]
        level[of] = seen[now] = 0.9 * level[of] + 0.1 * event.value[now]
    return level, seen


@right
@cw.vectorised(initial=0)
def in_threes(
    count: int, event: Reading, keys: cw.Keys
) -> tuple[int, cw.Emit[Reading], np.ndarray]:
    """Every third reading of a sensor; then all of it is forgotten."""
    counts = keys.running_count(start=count) % 3
    after = keys.last(counts)
    return after, cw.Emit(np.flatnonzero(counts == 0), _at(event, counts == 0)), after == 0


def _at(event: Reading, mask: np.ndarray) -> Reading:
    return Reading(event.sensor[mask], event.value[mask])


@right
@cw.vectorised(initial=0.0)
def only_keeps(total: float, event: Reading, keys: cw.Keys) -> tuple[float, None]:
    return keys.sum(event.value, start=total), None


@right
@cw.vectorised(initial=0)
def knows_its_keys(number: int, event: Reading, keys: cw.Keys) -> tuple[int, int]:
    """By what its stream is keyed by: the events of a key have one sensor."""
    _, of = np.unique(event.sensor, return_inverse=True)
    position = np.empty(len(of), int)
    for sensor in range(of.max() + 1):
        position[of == sensor] = np.arange((of == sensor).sum())
    return number + keys.count(), number[keys.of] + position


@right
@cw.vectorised(initial="")
def keeps_its_name(name: str, event: Reading, keys: cw.Keys) -> tuple[str, str]:
    """The first of a batch is as good as the last, as long as a key is a sensor."""
    return keys.first(event.sensor), event.sensor


@wrong
@cw.vectorised(initial=0.0)
def forgets_the_state(total: float, event: Reading, keys: cw.Keys) -> tuple[float, float]:
    return keys.sum(event.value), keys.running_sum(event.value)


@wrong
@cw.vectorised(initial=0.0)
def starts_anew(total: float, event: Reading, keys: cw.Keys) -> tuple[float, float]:
    return keys.sum(event.value, start=total), keys.running_sum(event.value)


@wrong
@cw.vectorised(initial=0.0)
def adds_up_all_keys(total: float, event: Reading, keys: cw.Keys) -> tuple[float, float]:
    sums = np.cumsum(event.value) + total[keys.of]
    return keys.last(sums), sums


@wrong
@cw.vectorised(initial=NOTHING)
def keeps_the_first(state: Total, event: Reading, keys: cw.Keys) -> tuple[Total, None]:
    count = keys.running_count(start=state.count)
    return Total(keys.first(count), keys.sum(event.value, start=state.sum)), None


@wrong
@cw.vectorised(initial=0)
def counts_batches(count: int, event: Reading, keys: cw.Keys) -> tuple[int, None]:
    return count + 1, None


@wrong
@cw.vectorised(initial=0)
def tells_the_size(count: int, event: Reading, keys: cw.Keys) -> tuple[int, int]:
    return count, np.full(len(keys), len(keys))


@wrong
@cw.vectorised(initial=0)
def counts_other_keys(count: int, event: Reading, keys: cw.Keys) -> tuple[int, int]:
    return count, np.full(len(keys), keys.size)


@wrong
@cw.vectorised(initial=0.0)
def subtracts_the_mean(level: float, event: Reading, keys: cw.Keys) -> tuple[float, float]:
    return level, event.value - event.value.mean()


@wrong
@cw.vectorised(initial=0)
def tells_the_place(count: int, event: Reading, keys: cw.Keys) -> tuple[int, int]:
    return count, np.arange(len(keys)) + count[keys.of]


@wrong
@cw.vectorised(initial="")
def looks_at_its_neighbour(last: str, event: Reading, keys: cw.Keys) -> tuple[str, bool]:
    """The event before it may be of another key."""
    before = np.append(last[keys.of[:1]], event.sensor[:-1])
    return keys.last(event.sensor), before == event.sensor


@wrong
@cw.vectorised(initial=0)
def emits_the_last(count: int, event: Reading, keys: cw.Keys) -> tuple[int, cw.Emit[int]]:
    last = keys.last(np.arange(len(keys)))
    after = count + keys.count()
    return after, cw.Emit(np.sort(last), after[np.argsort(last)])


@wrong
@cw.vectorised(initial=0)
def forgets_at_the_end(count: int, event: Reading, keys: cw.Keys) -> tuple[int, int, np.ndarray]:
    """What comes behind the event that ends a state is counted with it."""
    counts = keys.running_count(start=count)
    return keys.last(counts), counts, keys.last(counts) >= 2


@wrong
@cw.vectorised(initial=0)
def takes_one_at_a_time(count: int, event: Reading, keys: cw.Keys) -> tuple[int, None]:
    if len(keys) > 1:
        raise KeyError("more than one")
    return count + 1, None


@wrong
@cw.vectorised(initial=0)
def changes_the_states_of_many(count: int, event: Reading, keys: cw.Keys) -> tuple[int, None]:
    if len(keys) > 1:
        count += keys.count()
        return count, None
    return count + 1, None


@wrong
@cw.vectorised(initial=0)
def adds_to_the_states_of_many(count: int, event: Reading, keys: cw.Keys) -> tuple[int, None]:
    if len(keys) == 1:
        return count + 1, None
    np.add.at(count, keys.of, 1)
    return count, None


@wrong
@cw.vectorised(initial=0)
def returns_too_few(count: int, event: Reading, keys: cw.Keys) -> tuple[int, int]:
    return count + keys.count(), np.unique(keys.of)


@cw.vectorised(initial=0)
def changes_its_state(count: int, event: Reading, keys: cw.Keys) -> tuple[int, None]:
    count += keys.count()
    return count, None


@cw.vectorised(initial=0)
def adds_to_its_state(count: int, event: Reading, keys: cw.Keys) -> tuple[int, None]:
    """In a way that numpy does not refuse."""
    np.add.at(count, keys.of, 1)
    return count, None


@cw.vectorised(initial=0.0)
def adds_in_pairs(total: float, event: Reading, keys: cw.Keys) -> tuple[float, None]:
    """The sum of the batch first: with other floats in between the sum is another."""
    return total + keys.sum(event.value), None
