"""The addresses of rows."""

from dataclasses import dataclass

import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.spark.exchange.envelope import EVERYONE
from cutwater.spark.job.addresses import Addresses


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@pytest.fixture
def addresses(tmp_path):
    flow = cw.Flow("copies")
    items = flow.source("items", Item)
    others = flow.source("a lot", Item)
    flow.sink("sizes", items.merge(others, name="both").map(size, name="size"))
    flow.sink("copy", items)
    return make_job(flow, tmp_path).addresses


def size(item: Item) -> int:
    return item.size


def test_a_sink_is_found_by_the_number_that_leads_to_it(addresses):
    targets = [addresses.target_of_sink(name) for name in ("sizes", "copy")]
    assert [addresses.sink_at(target) for target in targets] == ["sizes", "copy"]
    assert [addresses.type_of_sink(target) for target in targets] == [int, Item]


def test_no_segment_sink_or_late_filter_shares_a_number(addresses):
    segments = [segment.number for segment in addresses.plan.segments]
    sinks = [addresses.target_of_sink(name) for name in addresses.sink_names]
    filters = [addresses.late_filter_of(name) for name in addresses.sources]
    numbers = [*segments, *sinks, *filters, EVERYONE]
    assert len(set(numbers)) == len(numbers)


def test_what_is_no_sink_of_the_flow_takes_lines(addresses):
    assert addresses.record_of("bad records: items") is bytes


def test_sources_rank_by_name(addresses):
    assert addresses.source_ranks == {"a lot": 0, "items": 1}


def test_without_bound_sinks_those_of_the_flow_have_numbers(addresses):
    shown = Addresses(addresses.plan, addresses.sources, [], addresses.buckets)
    assert shown.sink_names == ["sizes", "copy"]
    assert shown.type_of_sink(shown.target_of_sink("copy")) is Item


def test_every_bucket_has_a_label_of_its_own(addresses):
    assert len(set(addresses.labels)) == addresses.buckets
    assert addresses.keyless_label in addresses.labels
