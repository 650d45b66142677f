"""Hostile records: each is carried as it is or is a dead letter; no neighbour is lost.

They go all the way: through an exchange, as the key of a state and as the state, to a sink.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.errors import CutwaterError, extract
from cutwater.spark import folder
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.connectors.base.source import SourceConnector


@dataclass(frozen=True)
class Item:
    id: int
    text: str = ""
    number: int = 0
    weight: float = 0.0


@cw.task(initial=None)
def same(state: Item | None, item: Item) -> tuple[Item | None, list[Item]]:
    return item, [item]


@dataclass(frozen=True)
class Outcome:
    out: dict[int, dict[str, Any]]
    """By their ids the records that came out, as JSON has them."""
    bad: list[dict[str, Any]]


def run(root: Path, source: SourceConnector, *, is_skipping: bool) -> Outcome:
    flow = cw.Flow("hostile")
    flow.sink("out", flow.source("items", Item).key_by("text").apply(same))
    job = make_job(flow, root, sources={"items": source}, skip_bad_records=is_skipping)
    side_outputs = {bad_records_sink("items"): folder(str(root / "bad"))} if is_skipping else {}
    job = replace(job, sinks={**job.sinks, **side_outputs})
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, seed=1).run_to_the_end([])
    out = lines_in(root / "out" / "out")
    assert len({line["id"] for line in out}) == len(out)
    return Outcome({line["id"]: line for line in out}, lines_in(root / "bad"))


def lines_in(place: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(place.glob("epoch=*/*.jsonl"))
        for line in path.read_bytes().splitlines()
    ]


def assert_carried_or_refused(
    root: Path,
    make: Callable[[Path], SourceConnector],
    hostile: dict[int, Item | None],
    neighbours: set[int],
) -> Outcome:
    """`hostile` says of each hostile record what it is, or None if it is nothing.

    Records that are carried are equal to what they were; all neighbours are.
    """
    (root / "skipping").mkdir()
    found = run(root / "skipping", make(root / "skipping"), is_skipping=True)
    assert neighbours <= found.out.keys()
    carried = found.out.keys() - neighbours
    assert len(carried) + len(found.bad) == len(hostile)
    for id_ in carried:
        item = hostile[id_]
        assert item is not None
        assert found.out[id_] == as_json(item)
    assert all(kept["error"] for kept in found.bad)
    if found.bad:
        (root / "failing").mkdir()
        with pytest.raises(RuntimeError) as failed:
            run(root / "failing", make(root / "failing"), is_skipping=False)
        error = extract(str(failed.value))
        assert isinstance(error, CutwaterError)
        assert error.problems[0].code == "bad-record"
    return found


def as_json(item: Item) -> dict[str, Any]:
    """What a sink of JSON lines shows; it has no NaN and no infinities."""
    weight = item.weight if math.isfinite(item.weight) else None
    return {"id": item.id, "text": item.text, "number": item.number, "weight": weight}


LONE = "\ud800"
HUGE = "x" * (10 << 20)
any_text = st.text(max_size=8) | st.text(
    st.sampled_from(["\x00", "\n", "\r", '"', "\\", ",", LONE, "\udfff", "\u2028", "\ufeff", "é"]),
    max_size=4,
)
any_number = st.integers() | st.sampled_from(
    [2**127, -(2**127), 2**64, 2**64 - 1, 2**63, -(2**63), -(2**63) - 1, 10**400]
)
hostile_items = st.lists(
    st.builds(Item, st.just(0), any_text, any_number, st.floats()), min_size=1, max_size=5
).map(lambda items: [replace(item, id=2 * n + 1) for n, item in enumerate(items)])


def among_neighbours(items: list[Any], made: Callable[[Item], Any]) -> tuple[list[Any], set[int]]:
    """Each with a good record before it and after it; these have even ids."""
    all_items = [made(Item(0, "good"))]
    for number, item in enumerate(items, 1):
        all_items += [item, made(Item(2 * number, "good", number, 0.5))]
    return all_items, {2 * number for number in range(len(items) + 1)}


# As JSON


def in_json(item: Item) -> bytes:
    return json.dumps(vars(item)).encode()


mutations = st.lists(
    st.tuples(st.floats(0, 1), st.binary(max_size=3).filter(lambda b: b"\n" not in b)), max_size=3
)


def mutated(data: bytes, changes: list[tuple[float, bytes]]) -> bytes:
    for place, new in changes:
        at = int(place * len(data))
        data = data[:at] + new + data[at + 1 :]
    return data


def read_json(lines: list[bytes], neighbours: set[int]) -> dict[int, Item | None] | None:
    """What Python makes of lines; None if a change made an id that is there already."""
    found: dict[int, Item | None] = {}
    for number, line in enumerate(lines):
        try:
            decoded = line.decode("utf-8", "surrogateescape")  # what nobody reads may be anything
            record = {"text": "", "number": 0, "weight": 0.0, **json.loads(decoded)}
            item = msgspec.convert({n: record[n] for n in Item.__annotations__}, Item)
        except (ValueError, TypeError, KeyError, RecursionError):
            item = None
        key = item.id if item else -1 - number
        if key in neighbours or key in found:
            return None
        found[key] = item
    return found
