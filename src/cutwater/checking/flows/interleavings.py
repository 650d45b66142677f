"""Which sinks of a flow depend on the order of which inputs, with pairs of runs as witnesses.

A run takes the sources' events one by one in a given order and propagates each all the way. Two
neighbours in that order are swapped, of two sources or of one; if a sink then shows other values in
some epoch, it depends on their order. Only the content of a sink in an epoch is compared, not its
order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cutwater.checking.flows.scenario import Scenario
from cutwater.errors import CutwaterError, many
from cutwater.events import Data
from cutwater.flow.fusing import Plan, plan
from cutwater.jsonable import plain, shown
from cutwater.semantics.barrier_model import Barriers, TakeBarrier, TakeEvent
from cutwater.semantics.barriers import Configuration, EventContent
from cutwater.semantics.flow_tasks import End, FlowTasks, Payload, Sent
from cutwater.semantics.frozen import hashable_form
from cutwater.semantics.snapshots import OnLoss, refuse

__all__ = [
    "Dependence",
    "Epochs",
    "Interleaving",
    "RunOutput",
    "dependences",
    "dependences_of",
    "run_in",
]

Epochs = Mapping[str, Sequence[Sequence[Payload]]]
Interleaving = list[list[tuple[str, Payload]]]
"""For each epoch the payloads of all sources, in the order in which they are processed."""
RunOutput = dict[str, list[Counter[Any]]]


@dataclass(frozen=True)
class Dependence:
    """A sink and two inputs whose order it shows."""

    sink: str
    sources: tuple[str, str]
    """The same name twice if it is the order within one source."""
    epoch: int
    first: str
    second: str
    """The two events, which are processed in this order and swapped."""
    shown: tuple[tuple[str, ...], tuple[str, ...]]
    """What the sink holds in the epoch in one order only: in this one, and in the swapped one."""

    @property
    def inputs(self) -> str:
        """Which order it is, as a phrase that follows "the order"."""
        one, two = self.sources
        return f"within '{one}'" if one == two else f"of '{one}' and '{two}'"

    def __str__(self) -> str:
        subject = f"sink '{self.sink}'" if self.sink else "whether a step fails"
        lines = [
            f"{subject} depends on the order {self.inputs}, for instance in epoch {self.epoch}"
        ]
        for pair, values in zip(
            ((self.first, self.second), (self.second, self.first)), self.shown, strict=True
        ):
            lines.append(f"  {pair[0]}  then  {pair[1]}:  {', '.join(values) or 'nothing more'}")
        return "\n".join(lines)


def run_in(tasks: FlowTasks, order: Interleaving) -> RunOutput:
    """What each sink holds in each epoch if the sources are processed in an order."""
    by_source = {
        segment.name: [
            [payload for name, payload in epoch if name == segment.name] for epoch in order
        ]
        for segment in tasks.plan.segments
        if segment.source is not None
    }
    here = tasks.initial(by_source)
    protocol = Barriers()
    for epoch in order:
        for name, _ in epoch:
            here = _push(protocol, here, name)
        here = _drain(protocol, here, with_barriers=True)
    return {sink: _held(here, streams, len(order)) for sink, streams in tasks.sinks.items()}


def _push(protocol: Barriers, c: Configuration, source: str) -> Configuration:
    """Every reader takes the next payload of a source; its effects then reach all other tasks."""
    for number in range(len(c.graph.tasks)):
        for move in protocol.moves(c, number):
            if isinstance(move, TakeEvent) and move.message.stream == source:
                c = protocol.step(c, move)
                break
    return _drain(protocol, c, with_barriers=False)


def _drain(protocol: Barriers, c: Configuration, *, with_barriers: bool) -> Configuration:
    inner = c.graph.produced
    while True:
        for number in range(len(c.graph.tasks)):
            move = next(
                (
                    move
                    for move in protocol.moves(c, number)
                    if (isinstance(move, TakeBarrier) and with_barriers)
                    or (isinstance(move, TakeEvent) and move.message.stream in inner)
                ),
                None,
            )
            if move is not None:
                c = protocol.step(c, move)
                break
        else:
            return c


def _held(c: Configuration, streams: Sequence[str], epochs: int) -> list[Counter[Any]]:
    held: list[Counter[Any]] = [Counter() for _ in range(epochs)]
    for message in c.messages:
        if message.stream in streams and isinstance(message.content, EventContent):
            payload = message.content.payload.thaw()
            if isinstance(payload, Sent) and isinstance(payload.row.event, Data):
                value = payload.row.event.value
                held[message.epoch - 1][hashable_form(value), shown(plain(value))] += 1
    return held


def dependences(
    plan: Plan,
    read: Callable[[FlowTasks], Epochs],
    *,
    seed: int = 0,
    tries: int = 60,
    on_loss: OnLoss = refuse,
) -> tuple[list[Dependence], int]:
    """One dependence for each sink and pair of inputs for which one was found.

    Also returns the number of pairs of runs that were compared.
    """
    tasks = FlowTasks(plan, on_loss=on_loss)
    epochs = read(tasks)
    drawn = random.Random(seed)
    found: dict[tuple[str, tuple[str, str]], Dependence] = {}
    compared = 0
    orders = [_one_after_the_other(epochs), _drawn(epochs, drawn), _drawn(epochs, drawn)]
    for order in orders:
        base = _tried(tasks, order)
        if isinstance(base, str):  # fails in an order that the input itself does not have
            continue
        for number, index in _swaps(order, drawn, tries // len(orders)):
            one, two = order[number][index : index + 2]
            sources = (min(one[0], two[0]), max(one[0], two[0]))
            if all((sink, sources) in found for sink in tasks.sinks):
                continue
            other = [list(epoch) for epoch in order]
            other[number][index : index + 2] = [two, one]
            compared += 1
            swapped = _tried(tasks, other)
            if isinstance(swapped, str):
                found.setdefault(("", sources), _failing(sources, number, one[1], two[1], swapped))
                continue
            for sink, epoch, values in _differences(base, swapped):
                found.setdefault(
                    (sink, sources),
                    Dependence(
                        sink, sources, epoch, _formatted(one[1]), _formatted(two[1]), values
                    ),
                )
    return list(found.values()), compared


def dependences_of(
    scenarios: Sequence[Scenario], seed: int, notify: Callable[[str], None]
) -> tuple[list[Dependence], int]:
    """The dependences found on any of these inputs, and the number of pairs of runs compared."""
    found: dict[tuple[str, tuple[str, str]], Dependence] = {}
    compared = 0
    for number, one in enumerate(scenarios, 1):
        notify(f"swapping inputs: {number} of {many(len(scenarios), 'input')}")
        part = one if one.is_small else one.cut(3, 8)
        dependent, count = dependences(
            plan(one.flow), part.payloads, seed=seed, on_loss=one.on_loss
        )
        compared += count
        for dependence in dependent:
            found.setdefault((dependence.sink, dependence.sources), dependence)
    return list(found.values()), compared


def _tried(tasks: FlowTasks, order: Interleaving) -> RunOutput | str:
    """What the sinks hold, or the message of a step's failure."""
    try:
        return run_in(tasks, order)
    except CutwaterError as error:
        return str(error.problems[0].message)


def _failing(
    sources: tuple[str, str], number: int, one: Payload, two: Payload, failure: str
) -> Dependence:
    return Dependence("", sources, number + 1, _formatted(one), _formatted(two), ((), (failure,)))


def _one_after_the_other(epochs: Epochs) -> Interleaving:
    count = max((len(payloads) for payloads in epochs.values()), default=0)
    return [
        [(name, payload) for name in sorted(epochs) for payload in epochs[name][i]]
        for i in range(count)
    ]


def _drawn(epochs: Epochs, drawn: random.Random) -> Interleaving:
    """A random interleaving of the sources, each in its own order; ends of input come last."""
    order = []
    for epoch in _one_after_the_other(epochs):
        names = [name for name, payload in epoch if isinstance(payload, Sent)]
        drawn.shuffle(names)
        rest = {name: iter([w for n, w in epoch if n == name]) for name in names}
        order.append(
            [(name, next(rest[name])) for name in names]
            + [(name, payload) for name, payload in epoch if isinstance(payload, End)]
        )
    return order


def _swaps(order: Interleaving, drawn: random.Random, tries: int) -> Iterator[tuple[int, int]]:
    positions = [
        (number, index)
        for number, epoch in enumerate(order)
        for index in range(len(epoch) - 1)
        if _is_data(epoch[index][1]) and _is_data(epoch[index + 1][1])
    ]
    yield from drawn.sample(positions, min(len(positions), tries))


def _is_data(payload: Payload) -> bool:
    """Is it data? Watermarks are not swapped: data must not move behind one that completes it."""
    return isinstance(payload, Sent) and isinstance(payload.row.event, Data)


def _differences(
    base: RunOutput, other: RunOutput
) -> Iterator[tuple[str, int, tuple[tuple[str, ...], tuple[str, ...]]]]:
    for sink, epochs in base.items():
        for number, held in enumerate(epochs):
            if held != other[sink][number]:
                mine, theirs = held - other[sink][number], other[sink][number] - held
                yield sink, number + 1, (_texts(mine), _texts(theirs))
                break


def _texts(held: Counter[Any]) -> tuple[str, ...]:
    return tuple(sorted(text for (_, text), count in held.items() for _ in range(count)))


def _formatted(payload: Payload) -> str:
    assert isinstance(payload, Sent)
    assert isinstance(payload.row.event, Data)
    return shown(plain(payload.row.event.value))
