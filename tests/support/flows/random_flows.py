"""Random flows with inputs: directed acyclic graphs over every verb but ``iterate``.

A `Recipe` is data, so that a failing one can be read; `Recipe.flow()` makes the flow. Every step
takes values of any type and most emit `Item`, whose digest tells what went in and in which order;
so any two runs that differ anywhere differ at a sink.

``recipes(explicit=False, partial=False)`` has plain records with watermarks by rule only.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import cutwater as cw
from cutwater.flow import Flow, Stream
from cutwater.operators import accumulate, batch, compose, map_values, skip
from cutwater.times import Product


@dataclass(frozen=True)
class Item:
    """What most streams carry."""

    name: str
    at: int
    size: int
    digest: int = 0


@dataclass(frozen=True)
class State:
    """What tasks keep: how much they saw, and a digest of it in order."""

    count: int = 0
    digest: int = 0


def digest_of(*values: Any) -> int:
    """A number that tells values apart; the same in every process."""
    return zlib.crc32(repr(values).encode()) % 9973


def remade(value: Any, digest: int) -> Item:
    """An item that stands for what was seen, with a few names and sizes to key by."""
    return Item("abc"[digest % 3], getattr(value, "at", 0), digest % 5, digest)


def as_item(value: Any) -> Item:
    return remade(value, digest_of("map", value))


def spread(value: Any) -> list[Item]:
    return [remade(value, digest_of("spread", n, value)) for n in range(digest_of(value) % 3)]


def is_kept(value: Any) -> bool:
    return digest_of("kept", value) % 4 != 0


def residue(value: Any) -> int:
    return digest_of("residue", value) % 3


def number_of(value: Any) -> int:
    return digest_of(value) % 100


def pair_up(left: Any, right: Any) -> Item | None:
    digest = digest_of("pair", left, right)
    return remade(left, digest) if digest % 5 else None


def _seen(state: State, value: Any) -> State:
    return State(state.count + 1, digest_of(state, value))


@cw.task(initial=State())
def remember(state: State, value: Any) -> tuple[State, list[Item]]:
    """Emits what it saw so far, for each event."""
    state = _seen(state, value)
    return state, [remade(value, state.digest)]


@cw.task(initial=State())
def forget(state: State, value: Any) -> tuple[State | None, list[Item]]:
    """Deletes its state after some events."""
    state = _seen(state, value)
    return (None if state.digest % 3 == 0 else state), [remade(value, state.digest)]


def _digests(start: np.ndarray, event: Any, keys: cw.Keys) -> tuple[np.ndarray, np.ndarray]:
    """A digest after each event, which begins anew where it can be divided by 3; of each key."""
    digest, seen = start.copy(), np.zeros(len(keys), int)
    for now in keys.rounds():
        of = keys.of[now]
        seen[now] = (31 * digest[of] + event.digest[now] + event.size[now] + 1) % 9973
        digest[of] = np.where(seen[now] % 3, seen[now], 0)
    return seen, digest


def _items(event: Any, seen: np.ndarray) -> Any:
    return Item(event.name, event.at, seen % 5, seen)


@cw.vectorised(initial=State())
def recall(state: State, event: Item, keys: cw.Keys) -> tuple[State, Item]:
    """Emits a digest for each event, of many at once."""
    seen, digest = _digests(state.digest, event, keys)
    return State(state.count + keys.count(), digest), _items(event, seen)


@cw.vectorised(initial=0)
def lapse(start: int, event: Item, keys: cw.Keys) -> tuple[int, cw.Emit[Item], np.ndarray]:
    """Emits some digests, and deletes its state after some events."""
    seen, digest = _digests(start, event, keys)
    return digest, cw.Emit(seen % 2 == 1, _items(event, seen)), digest == 0


@cw.vectorised(initial=("", 0))
def repeat(state: tuple[str, int], event: Item, keys: cw.Keys) -> tuple[Any, cw.Emit[Item]]:
    """Emits none, one or two for each event; its states are objects."""
    seen, digest = _digests(np.array([number for _, number in state]), event, keys)
    rows = np.repeat(np.arange(len(keys)), seen % 3)
    names = keys.last(event.name).tolist()
    emitted = Item(event.name[rows], event.at[rows], seen[rows] % 5, seen[rows])
    return list(zip(names, digest.tolist(), strict=True)), cw.Emit(rows, emitted)


def receive(state: State, time: Any, value: Any) -> tuple[State | None, list[Item | cw.Notify]]:
    state = _seen(state, value)
    echo: list[Item | cw.Notify] = [remade(value, state.digest)] if state.digest % 2 else []
    asked = [cw.Notify(time)] if state.digest % 5 else []
    return (None if state.digest % 7 == 0 else state), [*echo, *asked]


def complete(state: State, time: Any) -> tuple[State | None, list[Item | cw.Notify]]:
    digest = digest_of(state, time)
    later = [cw.Notify(time + 1)] if isinstance(time, int) and digest % 3 == 0 else []
    kept = None if digest % 7 == 0 else State(state.count + 1, digest)
    return kept, [remade(None, digest), *later]


def at_time(time: Any, value: Any) -> Item:
    return remade(value, digest_of("at", time, value))


def twice(value: Any) -> list[Item]:
    return [remade(value, digest_of("twice", n, value)) for n in range(2)]


def run_of(values: list[Any]) -> list[Item]:
    return [remade(values[0], digest_of("run", *values))]


def _heard(state: State, event: Any) -> tuple[State, list[Any]]:
    """Emits none, one or two for each value, by all that it saw."""
    if isinstance(event, cw.Data):
        state = _seen(state, event.value)
        return state, [cw.Data(event.time, remade(event.value, state.digest))] * (state.digest % 3)
    return state, [event]


def _until_barrier(state: State) -> tuple[State, list[Any]]:
    return State(state.count, digest_of("barrier", state)), []


OWN = cw.Operator(State(), _heard)
WITH_BARRIERS = cw.Operator(State(), _heard, barrier=_until_barrier)
COMPOSED = compose(batch(), accumulate(), map_values(at_time))


def _operated(stream: Stream, _others: list[Stream], choice: int, name: str) -> Stream:
    if choice == 2:
        return stream.operator(skip(COMPOSED, 1), name=name)
    return stream.operator((OWN, WITH_BARRIERS)[choice], emits=Item, name=name)


def _flattened(stream: Stream, _others: list[Stream], _choice: int, name: str) -> Stream:
    return stream.map(twice, name=f"{name}_lists").flatten(name=name)


AGGREGATES = {
    "n": cw.agg.count(),
    "earliest": cw.agg.first(),
    "latest": cw.agg.last(),
    "every": cw.agg.collect(),
}
NUMERIC = {
    "total": cw.agg.sum(),
    "least": cw.agg.min(),
    "most": cw.agg.max(),
    "average": cw.agg.mean(),
}
BY_COLUMN = {
    "n": cw.agg.count(),
    "total": cw.agg.sum("digest"),
    "average": cw.agg.mean("digest"),
    "least": cw.agg.min("digest"),
    "most": cw.agg.max("size"),
}
IN_ORDER = {"earliest": cw.agg.first("digest"), "latest": cw.agg.last("size")}
"""By column, like `BY_COLUMN`, but with the order to be seen in the result."""


@dataclass(frozen=True)
class RandomSource:
    """A source: how it gets times, and its items."""

    name: str
    kind: str
    """``rule``: a field and a bounded delay; ``field``: a field only; ``numbered``: plain values;
    ``events``: values with times and watermarks."""
    delay: int
    items: tuple[Any, ...]

    def added_to(self, flow: Flow) -> Stream:
        time = "at" if self.kind in ("rule", "field") else None
        rule = cw.bounded_delay(self.delay) if self.kind == "rule" else None
        return flow.source(self.name, Item, time=time, watermark=rule)


@dataclass(frozen=True)
class RandomStep:
    """A step: what it does, and the numbers of the streams it reads."""

    verb: str
    reads: tuple[int, ...]
    choice: int = 0
    """Which variant of the verb."""


Build = Callable[[Stream, list[Stream], int, str], Stream]


def _keyed(stream: Stream, _others: list[Stream], choice: int, name: str) -> Stream:
    if choice == 0:
        return stream.key_by(residue, name=name)
    items = stream.map(as_item, name=f"{name}_items")
    return items.key_by(*(["name"], ["name", "size"])[choice - 1], name=name)


def _applied(stream: Stream, _others: list[Stream], choice: int, name: str) -> Stream:
    return stream.apply((remember, forget)[choice % 2], name=name)


def _vectorised(stream: Stream, _others: list[Stream], choice: int, name: str) -> Stream:
    items = stream.map(as_item, name=f"{name}_items")
    return items.apply((recall, lapse, repeat)[choice], name=name)


def _aggregated(stream: Stream, _others: list[Stream], choice: int, name: str) -> Stream:
    emit = ("event", "epoch")[choice % 2]
    if choice < 2:
        return stream.aggregate(name=name, emit=emit, unbounded=True, **AGGREGATES)
    if choice >= 4:
        items = stream.map(as_item, name=f"{name}_items")
        if choice < 6:
            return items.aggregate(name=name, emit=emit, **BY_COLUMN, **IN_ORDER)
        return items.key_by("name", name=f"{name}_key").aggregate(name=name, emit=emit, **BY_COLUMN)
    return stream.map(number_of, name=f"{name}_numbers").aggregate(name=name, emit=emit, **NUMERIC)


def _windowed(stream: Stream, _others: list[Stream], choice: int, name: str) -> Stream:
    windows = [cw.tumbling(3), cw.sliding(4, every=2), cw.session(2), cw.tumbling(2, offset=1)]
    return stream.window(windows[choice]).aggregate(name=name, **AGGREGATES)


def _counted(stream: Stream, _others: list[Stream], choice: int, name: str) -> Stream:
    sizes = stream.map(residue, name=f"{name}_values")
    return sizes.histogram(unbounded=True, paths=choice == 1, name=name)


def _joined(stream: Stream, others: list[Stream], _choice: int, name: str) -> Stream:
    left, right = (s.key_by(residue, name=f"{name}_{i}") for i, s in enumerate([stream, *others]))
    return left.join(right, pair_up, name=name)


def _accumulated(stream: Stream, _others: list[Stream], _choice: int, name: str) -> Stream:
    return stream.batch(name=f"{name}_batch").accumulate(unbounded=True, name=name)


def _united(stream: Stream, others: list[Stream], choice: int, name: str) -> Stream:
    both = [s.map(as_item, name=f"{name}_{i}") for i, s in enumerate([stream, *others])]
    return both[0].union(both[1], name=name)


# verb: (how it is built, how many streams it reads, how many variants it has)
VERBS: dict[str, tuple[Build, int, int]] = {
    "map": (lambda s, _, c, n: s.map(as_item, name=n), 1, 1),
    "flat_map": (lambda s, _, c, n: s.flat_map(spread, name=n), 1, 1),
    "filter": (lambda s, _, c, n: s.filter(is_kept, name=n), 1, 1),
    "map_values": (lambda s, _, c, n: s.map_values(at_time, name=n), 1, 1),
    "flatten": (_flattened, 1, 1),
    "skip": (lambda s, _, c, n: s.skip(1 + c, name=n), 1, 2),
    "bulk": (lambda s, _, c, n: s.bulk(run_of, 2 + c, name=n), 1, 2),
    "operator": (_operated, 1, 3),
    "key_by": (_keyed, 1, 3),
    "apply": (_applied, 1, 2),
    "vectorised": (_vectorised, 1, 3),
    "batch": (lambda s, _, c, n: s.batch(name=n), 1, 1),
    "accumulate": (_accumulated, 1, 1),
    "histogram": (_counted, 1, 2),
    "aggregate": (_aggregated, 1, 8),
    "on_complete": (
        lambda s, _, c, n: s.on_complete(receive, complete, initial=State(), name=n),
        1,
        1,
    ),
    "merge": (lambda s, o, c, n: s.merge(*o, name=n), 2, 1),
    "union": (_united, 2, 1),
    "join": (_joined, 2, 1),
}
# These need times that are numbers.
NUMBER_VERBS: dict[str, tuple[Build, int, int]] = {
    "window": (_windowed, 1, 4),
    "expire": (lambda s, _, c, n: s.apply(remember, name=n, expire_after=1 + c), 1, 3),
}
ALL_VERBS = VERBS | NUMBER_VERBS


@dataclass(frozen=True)
class Recipe:
    """A flow and its inputs, as data."""

    sources: tuple[RandomSource, ...]
    steps: tuple[RandomStep, ...]
    epoch_size: int | None = field(default=None)

    def flow(self) -> Flow:
        """The flow; every stream that nothing reads has a sink, and so has every third other."""
        flow = Flow("random")
        self.add_to(flow, [source.added_to(flow) for source in self.sources])
        return flow

    def add_to(self, flow: Flow, sources: Sequence[Stream], prefix: str = "") -> None:
        """Add the steps and sinks to a flow that has the sources."""
        streams = list(sources)
        for number, step in enumerate(self.steps):
            first, *others = (streams[n] for n in step.reads)
            name = f"{prefix}{step.verb}_{number}"
            streams.append(ALL_VERBS[step.verb][0](first, others, step.choice, name))
        read = {n for step in self.steps for n in step.reads}
        for number, stream in enumerate(streams):
            if number not in read or number % 3 == 0:
                flow.sink(f"{prefix}sink_{number}", stream)

    @property
    def inputs(self) -> dict[str, tuple[Any, ...]]:
        return {source.name: source.items for source in self.sources}


def packed(recipes: Sequence[Recipe]) -> Flow:
    """Many flows side by side in one, which share the sources that they have in common."""
    flow = Flow("packed")
    streams: dict[str, Stream] = {}
    for number, recipe in enumerate(recipes):
        for source in recipe.sources:
            if source.name not in streams:
                streams[source.name] = source.added_to(flow)
        given = [streams[source.name] for source in recipe.sources]
        recipe.add_to(flow, given, prefix=f"r{number}_")
    return flow


def seeded(seed: int, sources: Sequence[RandomSource]) -> Recipe:
    """The flow of a seed, over some of the sources."""
    rng = random.Random(seed)
    chosen = tuple(rng.sample(list(sources), rng.randint(1, min(3, len(sources)))))
    steps: list[RandomStep] = []
    for number in range(rng.randint(3, 8)):
        here = len(chosen) + number
        verb = rng.choice(sorted(ALL_VERBS))
        _, inputs, variants = ALL_VERBS[verb]
        reads = tuple(rng.choice([here - 1, here - 1, rng.randrange(here)]) for _ in range(inputs))
        steps.append(RandomStep(verb, reads, rng.randrange(variants)))
    return Recipe(chosen, tuple(steps))


NUMBERS = list(range(8))
GRID = [Product(a, b) for a in range(3) for b in range(3)]


def _records(times: Sequence[int]) -> st.SearchStrategy[Item]:
    return st.builds(
        Item, st.sampled_from("abc"), st.sampled_from(times), st.integers(0, 4), st.just(0)
    )


@st.composite
def _sources(draw: Any, name: str, kinds: Sequence[str], times: Sequence[Any]) -> RandomSource:
    kind = draw(st.sampled_from(kinds))
    records = _records(NUMBERS)
    items: list[st.SearchStrategy[Any]] = [records, records, st.just(cw.BARRIER)]
    if kind == "events":
        dated = st.builds(cw.Data, st.sampled_from(times), records)
        items = [dated, dated, st.just(cw.BARRIER)]
    if kind in ("events", "field"):
        items.append(st.builds(cw.Watermark, st.sampled_from(times)))
    found = draw(st.lists(st.one_of(items), max_size=8))
    return RandomSource(name, kind, draw(st.integers(0, 3)), tuple(found))


@st.composite
def recipes(
    draw: Any, *, explicit: bool = True, partial: bool = True, max_steps: int = 7
) -> Recipe:
    """Flows that validate, with one to three sources and inputs of several epochs.

    Parameters
    ----------
    explicit
        Whether there are watermarks among the inputs, too.
    partial
        Whether times may be partially ordered; this needs `explicit`.
    """
    is_partial = explicit and partial and draw(st.booleans())
    kinds = ["events"] if is_partial else ["rule", "numbered"]
    kinds = [*kinds, "events", "field"] if explicit and not is_partial else kinds
    times = GRID if is_partial else NUMBERS
    names = draw(st.permutations("xyz"))[: draw(st.integers(1, 3))]
    sources = tuple(draw(_sources(name, kinds, times)) for name in names)
    verbs = VERBS if is_partial else ALL_VERBS
    steps: list[RandomStep] = []
    for number in range(draw(st.integers(1, max_steps))):
        verb = draw(st.sampled_from(sorted(verbs)))
        _, reads, variants = verbs[verb]
        here = len(sources) + number
        # mostly the newest stream, so that there are chains, at times another, so that it forks
        newest = st.just(here - 1)
        chosen = tuple(
            draw(st.one_of(newest, newest, st.integers(0, here - 1))) for _ in range(reads)
        )
        steps.append(RandomStep(verb, chosen, draw(st.integers(0, variants - 1))))
    return Recipe(sources, tuple(steps), draw(st.sampled_from([None, 1, 2, 3])))
