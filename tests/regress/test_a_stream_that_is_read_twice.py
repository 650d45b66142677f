"""Two copies of an event had one place in the order, and so had what they caused."""

from support.flows.counting_items import Item, count

import cutwater as cw
from cutwater.flow.fusing import plan
from cutwater.semantics.simulator import _Run


def doubled() -> cw.Flow:
    flow = cw.Flow("doubled")
    items = flow.source("items", Item)
    flow.sink("counts", items.merge(items).apply(count))
    keyed = items.key_by("name")
    flow.sink("keyed", keyed.merge(keyed, name="again").apply(count, name="counted"))
    return flow


def test_what_copies_of_an_event_cause_has_an_order_of_its_own():
    running = _Run(plan(doubled()))
    result = running.run({"items": [Item("a"), Item("b")]}, None)
    assert (result["counts"], result["keyed"]) == ([1, 2, 3, 4], [1, 2, 1, 2])
    for rows in (rows for epochs in running.seen.values() for rows in epochs):
        assert len({row.order for row in rows}) == len(rows)


def test_the_order_is_the_same_without_fusing():
    inputs = {"items": [Item("a"), Item("b")]}
    fused, apart = (cw.simulate(doubled(), inputs, fuse=fuse) for fuse in (True, False))
    assert fused.events == apart.events
