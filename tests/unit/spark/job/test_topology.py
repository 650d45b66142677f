"""The levels of a job."""

from dataclasses import dataclass

from support.spark.toy_spark import make_job

import cutwater as cw


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [Item(item.name, seen + 1)]


def levels(flow, tmp_path):
    return [[s.name for s in level] for level in make_job(flow, tmp_path).topology.levels]


def test_a_flow_without_state_has_no_level(tmp_path):
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("items", Item).map(lambda item: item).key_by(lambda i: i.name))
    assert levels(flow, tmp_path) == []


def test_steps_of_one_depth_share_a_level(tmp_path):
    flow = cw.Flow("fork")
    items = flow.source("items", Item)
    first = items.key_by("name").apply(count, name="first")
    side = items.key_by("size").apply(count, name="side")
    both = first.merge(side, name="both").key_by("name", name="again")
    flow.sink("deep", both.apply(count, name="deep"))
    flow.sink("first", first)
    assert levels(flow, tmp_path) == [["by_name", "by_size"], ["again"]]


def test_steps_behind_one_key_are_one_level(tmp_path):
    flow = cw.Flow("chain")
    stream = flow.source("items", Item).key_by("name").apply(count).map(lambda i: i, name="m")
    flow.sink("out", stream.filter(bool).apply(count, name="again"))
    assert levels(flow, tmp_path) == [["by_name"]]
