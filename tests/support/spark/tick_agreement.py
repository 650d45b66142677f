"""What a real-time run released against what the simulator says, with its ticks as epochs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from support.spark.agreement import is_subsequence

import cutwater as cw
from cutwater.flow import Flow
from cutwater.flow.steps import Source
from cutwater.spark.connectors.base.source import Chunk

Planned = Mapping[int, Mapping[str, Sequence[Chunk]]]
"""What each source reads in each tick."""
Released = Mapping[int, Mapping[int, Sequence[bytes]]]
"""The rows of each bucket in each tick, as JSON."""


def inputs_of(flow: Flow, planned: Planned) -> dict[str, list[Any]]:
    """What each source read, with a barrier after each tick that any of them planned."""
    inputs: dict[str, list[Any]] = {}
    for step in (step for step in flow.steps if isinstance(step, Source)):
        decode = msgspec.json.Decoder(step.type).decode
        items = inputs.setdefault(step.name, [])
        for tick in sorted(planned):
            for chunk in planned[tick].get(step.name, ()):
                text = Path(chunk.to_json()["path"]).read_bytes()[chunk.start : chunk.end]
                items += [decode(line) for line in text.split(b"\n") if line.strip()]
            items.append(cw.BARRIER)
    return inputs


def assert_ticks_agree(
    result: Any, planned: Iterable[int], released: Mapping[str, Released], *, is_closed: bool
) -> None:
    """In each tick each sink has the simulator's rows, and each bucket has them in its order."""
    ticks = sorted(planned)
    for sink in result.events:
        epochs = [[msgspec.json.encode(v) for v in epoch] for epoch in result.by_epoch(sink)]
        found = released[sink]
        if is_closed:
            last = max([*found, *ticks], default=0)
            ended = [tick for tick in found if tick not in ticks]
            assert len(ended) <= 1
            assert not ended or ended == [last]
            assert Counter(r for t in ended for rs in found[t].values() for r in rs) == Counter(
                epochs[-1]
            ), f"{sink}, end"
        for tick, rows in zip(ticks, epochs, strict=False):
            buckets = found.get(tick, {})
            assert Counter(r for rs in buckets.values() for r in rs) == Counter(rows), (sink, tick)
            for bucket in buckets.values():
                assert is_subsequence(bucket, rows), (sink, tick)
        if not is_closed:
            assert set(found) <= set(ticks)
