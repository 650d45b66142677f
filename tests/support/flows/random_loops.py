"""Random bodies of loops: stateful steps in any order of exchanges, that do not commute."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import cutwater as cw


@dataclass(frozen=True)
class Hop:
    key: str
    at: int
    text: str
    left: int
    """So many rounds are before it, at most."""


@cw.task(initial="")
def joined(whole: str, hop: Hop) -> tuple[str, list[Hop]]:
    """Not commutative: all that came to a key, in order."""
    whole = (whole + hop.text)[-9:]
    return whole, [replace(hop, text=whole[-4:])]


@cw.task(initial=0)
def every_other(count: int, hop: Hop) -> tuple[int, list[Hop]]:
    return count + 1, [hop] * (1 + count % 2)


@cw.vectorised(initial=0)
def numbered(seen: int, event: Hop, keys: cw.Keys) -> tuple[int, Hop]:
    counts = keys.running_count(start=seen)
    return keys.last(counts), Hop(event.key, counts, event.text, event.left)


def moved(hop: Hop) -> Hop:
    return replace(hop, key="abcde"[len(hop.text) * 3 % 5])


def spread(hop: Hop) -> list[Hop]:
    return [hop, replace(hop, key=hop.text[:1])] if hop.left % 2 else [hop]


def fewer(hop: Hop) -> list[Hop]:
    return [replace(hop, left=hop.left - 1)] if hop.left else []


def counted(counts: Any) -> Hop:
    return Hop(counts.key, 0, str(counts.n), 0)


SEEDS = range(16)
STAGES: dict[str, Any] = {
    "joined": lambda s, n: s.key_by("key", name=f"key {n}").apply(joined, name=f"joined {n}"),
    "numbered": lambda s, n: s.key_by("key", name=f"key {n}").apply(numbered, name=f"numbered {n}"),
    "in one place": lambda s, n: s.apply(joined, name=f"in one place {n}"),
    "every other": lambda s, n: (
        s.map(moved, name=f"moved {n}")
        .key_by("key", name=f"key {n}")
        .apply(every_other, name=f"every other {n}")
    ),
    "spread": lambda s, n: s.flat_map(spread, name=f"spread {n}"),
    "merged": lambda s, n: s.merge(s.map(moved, name=f"moved {n}"), name=f"merged {n}"),
    "counts": lambda s, n: s.merge(
        s.key_by("key", name=f"key {n}")
        .aggregate(n=cw.agg.count(), emit="epoch", name=f"counts {n}")
        .map(counted, name=f"counted {n}"),
        name=f"with counts {n}",
    ),
    "inner": lambda s, n: s.key_by("key", name=f"key {n}").iterate(
        lambda inner: (
            inner.apply(joined, name=f"inside {n}").flat_map(fewer, name=f"inner fewer {n}"),
            inner,
        ),
        name=f"inner {n}",
    ),
}


def random_loop(seed: int, plan: Any = None) -> cw.Flow:
    """A flow with a random loop: a seed is one flow for ever, and even ones reset their states."""
    rng = random.Random(seed)
    stages = [list(STAGES)[seed // 2], *rng.choices(list(STAGES), k=rng.randrange(1, 4))]
    out_after, per_epoch = rng.randrange(len(stages)), seed % 2 == 0

    def body(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        streams = [stream.key_by("key", name="anew").map(moved, name="first")]
        for number, stage in enumerate(stages):
            streams.append(STAGES[stage](streams[-1], number))
        return streams[-1].flat_map(fewer), streams[out_after + 1]

    flow = cw.Flow("random loops")
    hops = flow.source("hops", Hop, time="at", watermark=cw.bounded_delay(1))
    left = hops.iterate(body, plan=plan, state_per_epoch=per_epoch, name="loop")
    flow.sink("out", left.apply(joined, name="all that left"))
    return flow
