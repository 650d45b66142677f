"""What the operators of the library must do, as predicates for `check_operator`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from cutwater.events import Data, Event, Watermark, uncompleted
from cutwater.operators.union import is_producible
from cutwater.times import Left, Right

SIDES = [side(n) for n in range(3) for side in (Left, Right)]


@dataclass(frozen=True)
class Specification:
    soundness: Callable[[list[Event], Data], bool]
    completeness: Callable[[list[Event], list[Event]], bool]


def data(events):
    return [event for event in events if isinstance(event, Data)]


def pairs(events):
    return [(event.time, event.value) for event in data(events)]


def times(events):
    return {event.time for event in data(events)}


def both_sides_settled(inputs):
    """The side condition of (31): every watermark is producible."""
    marks = [event.time for event in inputs if isinstance(event, Watermark)]
    return not uncompleted(inputs) and all(is_producible(mark, marks) for mark in marks)


def is_whole_batch(inputs, output):
    held = {time for time, _ in output.value}
    whole = Counter(pair for pair in pairs(inputs) if pair[0] in held)
    return Counter(output.value) == whole and all(time <= output.time for time in held)


def is_in_one_batch(inputs, outputs):
    return Counter(pairs(inputs)) == Counter(pair for out in data(outputs) for pair in out.value)


def every_time_has_an_output(inputs, outputs):
    return times(inputs) == times(outputs)


def counts_up_to(inputs, output):
    return output.value == Counter(v for t, v in pairs(inputs) if t <= output.time)


def holds_all_below(inputs, output):
    held = Counter(pair for pair in output.value if pair[0] <= output.time)
    return held == Counter(pair for pair in pairs(inputs) if pair[0] <= output.time)


def has_its_own_time(inputs, output):
    return output.time in {time for time, _ in output.value}


def every_time_in_a_batch_has_an_output(inputs, outputs):
    return times(outputs) == {time for item in data(inputs) for time, _ in item.value}


def joined(inputs, time):
    lefts = [item.value for item in data(inputs) if item.time == Left(time)]
    rights = [item.value for item in data(inputs) if item.time == Right(time)]
    return [left + right for left in lefts for right in rights]


def is_joined_once(inputs, outputs):
    at = {item.time.time for item in data(inputs)}
    expected = Counter((time, value) for time in at for value in joined(inputs, time))
    return Counter(pairs(outputs)) == expected


def mapped_by(f):
    """The data of the input, each item replaced by a list of others, in order."""
    return Specification(
        lambda inputs, output: any(output in f(item) for item in data(inputs)),
        lambda inputs, outputs: data(outputs) == [out for i in data(inputs) for out in f(i)],
    )


BATCHES = Specification(is_whole_batch, is_in_one_batch)
COUNTS = Specification(counts_up_to, every_time_has_an_output)
EVERYTHING = Specification(holds_all_below, every_time_has_an_output)
ACCUMULATED = Specification(has_its_own_time, every_time_in_a_batch_has_an_output)
JOINED = Specification(lambda inputs, out: out.value in joined(inputs, out.time), is_joined_once)
UNCHANGED = mapped_by(lambda item: [item])
SHOUTED = mapped_by(lambda item: [Data(item.time, item.value.upper())])
SPREAD = mapped_by(lambda item: [Data(item.time, element) for element in item.value])
WITHOUT_SIDES = mapped_by(lambda item: [Data(item.time.time, item.value)])
