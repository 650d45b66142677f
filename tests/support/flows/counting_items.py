"""A flow that counts items by name, for tests of one task alone."""

from dataclasses import dataclass

import cutwater as cw


@dataclass(frozen=True)
class Item:
    name: str


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def counting_items() -> cw.Flow:
    flow = cw.Flow("one")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(count))
    return flow
