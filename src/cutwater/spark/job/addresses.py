"""The addresses of rows: the labels of buckets, and the numbers of sinks and late filters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cutwater.flow.fusing import Plan
from cutwater.ordering import NO_KEY, bucket_of
from cutwater.spark.exchange.bucket_hash import labels
from cutwater.spark.exchange.envelope import EVERYONE

__all__ = ["Addresses"]


@dataclass(frozen=True)
class Addresses:
    """Where rows are sent: a row has the label of a bucket and the number of a target.

    Segments have the smallest numbers, then come sinks; late filters count down from the largest.
    """

    plan: Plan
    sources: Collection[str]
    sinks: Collection[str]
    """The names of what is bound; no sinks if the records become a DataFrame."""
    buckets: int

    @cached_property
    def labels(self) -> Sequence[int]:
        """The group label of each bucket."""
        return labels(self.buckets)

    @cached_property
    def keyless_label(self) -> int:
        """The label of the bucket for events without a key."""
        return self.labels[bucket_of(NO_KEY, self.buckets)]

    @cached_property
    def source_ranks(self) -> dict[str, int]:
        """The rank of each source in the order: by name."""
        return {name: rank for rank, name in enumerate(sorted(self.sources))}

    def late_filter_of(self, source: str) -> int:
        """The number by which rows are addressed to the late filter of a source."""
        return EVERYONE - 1 - self.source_ranks[source]

    @cached_property
    def sink_names(self) -> list[str]:
        """Sinks in the order of their numbers."""
        return list(self.sinks) or [sink.name for sink, _ in self.plan.sinks]

    def target_of_sink(self, name: str) -> int:
        """The number by which rows are addressed to a sink."""
        return len(self.plan.segments) + self.sink_names.index(name)

    def sink_at(self, target: int) -> str:
        """The name of the sink with a number."""
        return self.sink_names[target - len(self.plan.segments)]

    def type_of_sink(self, target: int) -> Any:
        """The record type of a sink, by its number."""
        return self.record_of(self.sink_at(target))

    def record_of(self, sink: str) -> Any:
        """The record type of a sink; lines, if it is not one of the flow."""
        numbers = [number for step, number in self.plan.sinks if step.name == sink]
        return self.plan.segments[numbers[0]].output.value if numbers else bytes
