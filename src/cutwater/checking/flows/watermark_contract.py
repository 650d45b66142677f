"""Whether watermarks keep their promise behind every step of a flow, in runs drawn at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from cutwater.checking.flows.scenario import Given
from cutwater.events import Data, Watermark, monotone, uncompleted
from cutwater.semantics.barrier_model import BarrierModel
from cutwater.semantics.barriers import Configuration
from cutwater.semantics.barriers import Event as Content
from cutwater.semantics.flow_tasks import Sent

__all__ = ["broken_promises", "unproductive"]


def broken_promises(given: Sequence[Given], seed: int) -> tuple[int, list[str]]:
    """How many streams were followed, and which of them break a promise of P4, in words.

    Monotone: nothing comes at a time that was complete. Productive: what all inputs of a task
    have completed, its output completes too.
    """
    drawn = random.Random(seed)
    followed = 0
    broken: list[str] = []
    for one in given:
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
            word = message.content.word.thaw()
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
    """Data that no watermark of the output completes, though every input completed its time."""
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
    except TypeError:  # times of another kind, behind a join
        return False
