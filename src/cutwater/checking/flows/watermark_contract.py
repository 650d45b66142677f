"""Do watermarks keep their promise after every step of a flow, in random runs?"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from cutwater.checking.flows.scenario import Scenario
from cutwater.events import Data, Watermark, monotone, uncompleted
from cutwater.semantics.barrier_model import BarrierModel
from cutwater.semantics.barriers import Configuration
from cutwater.semantics.barriers import EventContent as Content
from cutwater.semantics.flow_tasks import Sent

__all__ = ["broken_watermarks", "unproductive"]


def broken_watermarks(scenarios: Sequence[Scenario], seed: int) -> tuple[int, list[str]]:
    """The number of streams that were checked, and a sentence for each that breaks a rule of P4.

    Monotone: no event follows at a completed time. Productive: an output completes the times that
    all inputs of its task have completed.
    """
    drawn = random.Random(seed)
    followed = 0
    broken: list[str] = []
    for one in scenarios:
        tasks = one.tasks(fuse=False)
        final = _end(one.model(0, tasks), drawn)
        streams = {name: _events(final, name) for name in final.graph.produced}
        for task in final.graph.tasks:
            followed += 1
            broken += _problems(task.name, streams[task.output])
            inputs = [streams.get(name) or _events(final, name) for name in task.inputs]
            broken += unproductive(task.name, inputs, streams[task.output])
    return followed, list(dict.fromkeys(broken))


def _end(model: BarrierModel, drawn: random.Random) -> Configuration:
    (point,) = model.initial_states()
    while actions := model.actions(point):
        point = model.step(point, drawn.choice(actions))
    return point.configuration


def _events(c: Configuration, stream: str) -> list[Data | Watermark]:
    events: list[Data | Watermark] = []
    for message in sorted(c.messages.on(stream), key=lambda message: message.n):
        if isinstance(message.content, Content):
            word = message.content.payload.thaw()
            if isinstance(word, Sent):
                events.append(word.row.event)
            else:
                events += [Watermark(time) for time in word.times]
    return events


def _problems(name: str, events: Sequence[Data | Watermark]) -> list[str]:
    verdict = monotone(events)
    return [] if verdict else [f"the output of '{name}' is not monotone: {verdict.reason}"]


def unproductive(
    name: str, inputs: Sequence[Sequence[Any]], output: Sequence[Data | Watermark]
) -> list[str]:
    """A sentence on data that no watermark of the output completes, though every input does."""
    complete = [[e.time for e in events if isinstance(e, Watermark)] for events in inputs]
    owed = [
        item
        for item in uncompleted(output)
        if all(any(_is_at_most(item.time, time) for time in times) for times in complete)
    ]
    return [f"'{name}' never completes {item!r}, though its inputs do" for item in owed[:1]]


def _is_at_most(time: Any, limit: Any) -> bool:
    try:
        return bool(time <= limit)
    except TypeError:  # times of different types, after a join
        return False
