"""Generated sources: rows by their number, at a rate, the same after a replay."""

import json
from dataclasses import dataclass

import msgspec
import pytest

import cutwater as cw
from cutwater.flow.steps import Source
from cutwater.spark import frame
from cutwater.spark.connectors.generator.source import Generated


@dataclass(frozen=True)
class Item:
    number: int
    name: str = "x"


def item(number: int) -> Item:
    return Item(number, "abc"[number % 3])


def items(copied):
    return [msgspec.json.decode(line, type=Item) for line in copied.lines]


def test_each_row_is_made_of_its_number(copy):
    copied = copy(Generated(item, total=7, max_rows_per_epoch=3), Item)
    assert [len(epoch) for epoch in copied.epochs] == [3, 3, 1]
    assert items(copied) == [item(number) for number in range(7)]


def test_a_dict_of_fields_will_do(copy):
    assert items(copy(Generated(lambda n: {"number": n}, total=2), Item)) == [Item(0), Item(1)]


def test_tasks_share_the_work_and_change_nothing(copy):
    copied = copy(Generated(item, total=5000), Item, parallelism=3)
    assert items(copied) == [item(number) for number in range(5000)]


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def spans(chunks):
    return [(chunk.start, chunk.end) for chunk in chunks]


def test_rows_come_at_their_rate_and_what_was_due_in_a_pause_comes_after_it():
    clock = Clock()
    source = Generated(item, total=100, rows_per_second=10)
    planner = source.planner(Item, clock)
    (first,) = planner.poll()
    assert spans([first]) == [(0, 1)]
    planner.advance(first)
    assert not planner.has_input()
    assert planner.poll() == []
    clock.now += 2
    assert spans(planner.poll()) == [(1, 21)]
    later = source.planner(Item, clock)  # another start goes by when the first began
    later.advance(first)
    clock.now += 1
    assert spans(later.poll()) == [(1, 31)]
    clock.now += 1000
    assert spans(later.poll()) == [(1, 100)]


def test_a_run_that_catches_up_does_not_wait_for_a_total():
    clock = Clock()
    planner = Generated(item, total=100, rows_per_second=10).planner(Item, clock)
    planner.freeze()
    assert spans(planner.poll()) == [(0, 100)]
    endless = Generated(item, rows_per_second=10).planner(Item, clock)
    clock.now += 1
    endless.freeze()
    clock.now += 1
    assert spans(endless.poll()) == [(0, 11)]


def test_a_row_that_is_no_record_is_a_bad_one(copy):
    def mixed(number: int) -> object:
        return [Item(0), Item("1"), object(), None, Item(4)][number]  # type: ignore[arg-type]

    message = copy.refused(Generated(mixed, total=5), Item)
    assert message.startswith(
        "[bad-record] row 1 is not a record of source 'items': Expected `int`"
    )
    copied = copy(Generated(mixed, total=5), Item, skip_bad_records=True)
    assert items(copied) == [Item(0), Item(4)]
    assert [json.loads(line)["row"] for line in copied.bad] == [1, 2, 3]


def test_a_function_that_fails_is_a_sentence(copy):
    def broken(number: int) -> Item:
        return Item(1 // (number - 2))

    message = copy.refused(Generated(broken, total=5), Item)
    assert "[generator-failed] broken(2), which makes rows of a source, failed: " in message
    assert "ZeroDivisionError" in message


def test_settings_that_cannot_work_are_refused_before():
    flow = cw.Flow("made up")
    flow.source("items", Item)
    (step,) = (step for step in flow.steps if isinstance(step, Source))
    for source, codes in (
        (Generated(item, total=1), []),
        (Generated(item, rows_per_second=0.5), []),
        (Generated(item), ["endless-generator"]),
        (Generated(item, total=0), ["no-progress"]),
        (Generated(item, 1, -1.0, 0), ["no-progress", "no-progress"]),
    ):
        assert [problem.code for problem in source.problems("items", step)] == codes


def test_it_can_be_replayed_if_its_function_can():
    replay = Generated(item, total=1).replay()
    assert replay.is_replayable
    assert replay.provided == "the function returns the same for a number each time"


@pytest.mark.parametrize("order", [(), ("partition", "offset")])
def test_a_dataframe_can_be_replayed_by_its_order(order):
    replay = frame(None, order).replay()
    assert replay.is_replayable == bool(order)
    assert ("'partition', 'offset'" in replay.provided) == bool(order)
