"""A DataFrame without an order may come again in another one.

Sinks that are free of order show the same rows for it, in this epoch and, as states are the same,
in all that follow.
"""

from collections import Counter
from dataclasses import asdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.flows.random_flows import BY_COLUMN, Item
from support.spark.toy_frames import ToyFrames

import cutwater as cw
from cutwater.flow.guarantees.order_free import orders_of

ITEMS = st.builds(Item, st.sampled_from("abc"), st.just(0), st.integers(0, 4), st.integers(0, 9))
SCHEMA = pa.schema([(n, pa.string() if n == "name" else pa.int64()) for n in Item.__annotations__])


@cw.task(initial=(0, 0), commutative=True)
def tally(state: tuple[int, int], item: Item) -> tuple[tuple[int, int], list[Item]]:
    """Adds up; after every third event it shows how many it has seen."""
    count, total = state[0] + 1, state[1] + item.size
    return (count, total), [Item(item.name, 0, count)] if count % 3 == 0 else []


@cw.vectorised(initial=0, commutative=True)
def counted(seen: int, event: Item, keys: cw.Keys) -> tuple[int, int]:
    counts = keys.running_count(start=seen)
    return keys.last(counts), counts


def doubled(item: Item) -> Item:
    return Item(item.name, item.at, 2 * item.size)


@pytest.fixture(scope="module")
def flow():
    made = cw.Flow("free")
    items = made.source("items", Item)
    keyed = items.key_by("name")
    made.sink("doubled", items.map(doubled))
    made.sink("tallies", keyed.apply(tally))
    made.sink("counts", keyed.apply(counted))
    made.sink("totals", keyed.aggregate(emit="epoch", name="totals", **BY_COLUMN))
    made.sink("totals_of_tallies", keyed.apply(tally, name="again").aggregate(n=cw.agg.count()))
    made.sink("running", keyed.aggregate(total=cw.agg.sum("size"), name="running"))
    return made


def shown(flow, epochs):
    """What each epoch gives to each sink, as bags."""
    with pytest.MonkeyPatch.context() as patch:
        toy = ToyFrames(flow, (), patch)
        return [
            {
                sink: Counter(map(repr, records))
                for sink, records in toy.records({"items": [_task(items)]}).items()
            }
            for items in epochs
        ]


def _task(items):
    rows = pa.Table.from_pylist([asdict(item) for item in items], SCHEMA)
    return rows.combine_chunks().to_batches() if items else []


@given(st.lists(st.lists(ITEMS, max_size=8), min_size=1, max_size=3), st.randoms())
def test_what_is_free_of_order_is_the_same_in_another_order(flow, epochs, drawn):
    free = [name for name, order in orders_of(flow).items() if order.is_free]
    assert free == ["doubled", "tallies", "counts", "totals", "totals_of_tallies"]
    others = [drawn.sample(epoch, len(epoch)) for epoch in epochs]
    for one, other in zip(shown(flow, epochs), shown(flow, others), strict=True):
        assert {name: one[name] for name in free} == {name: other[name] for name in free}


def test_what_is_not_may_differ(flow):
    items = [Item("a", 0, 1), Item("a", 0, 2)]
    (one,), (other,) = shown(flow, [items]), shown(flow, [items[::-1]])
    assert {name for name in one if one[name] != other[name]} == {"running"}
