"""One keyed computation in every way that is compared: a running count and sum by key.

Workers import this module by its name, so that nothing is pickled by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StringType, StructField, StructType

import cutwater as cw

__all__ = [
    "READINGS",
    "Count",
    "Counted",
    "KeyCount",
    "Reading",
    "Total",
    "built_in_count_flow",
    "built_in_flow",
    "native",
    "pandas_groups",
    "row_groups",
    "scalar_count_flow",
    "scalar_flow",
    "vectorised_count_flow",
    "vectorised_flow",
]


@dataclass(slots=True)
class Reading:
    """What comes in."""

    position: int
    key: str
    value: int


@dataclass(frozen=True)
class Total:
    """What is kept for each key."""

    count: int
    sum: int


@dataclass(frozen=True)
class Counted:
    """What comes out, for each reading."""

    position: int
    key: str
    count: int
    sum: int


READINGS = StructType(
    [
        StructField("position", LongType()),
        StructField("key", StringType()),
        StructField("value", LongType()),
    ]
)
COUNTED = StructType(
    [
        StructField("position", LongType()),
        StructField("key", StringType()),
        StructField("count", LongType()),
        StructField("sum", LongType()),
    ]
)
TOTAL = StructType([StructField("count", LongType()), StructField("sum", LongType())])


# --- as flows --------------------------------------------------------------------------------


@cw.task(initial=Total(0, 0))
def running(state: Total, event: Reading) -> tuple[Total, list[Counted]]:
    """One call for each event."""
    state = Total(state.count + 1, state.sum + event.value)
    return state, [Counted(event.position, event.key, state.count, state.sum)]


@cw.vectorised(initial=Total(0, 0))
def running_arrays(state: Total, event: Reading, keys: cw.Keys) -> tuple[Total, Counted]:
    """One call for a batch."""
    counts = keys.running_count(start=state.count)
    sums = keys.running_sum(event.value, start=state.sum)
    counted = Counted(event.position, event.key, counts, sums)  # type: ignore[arg-type]
    return Total(keys.last(counts), keys.last(sums)), counted  # type: ignore[arg-type]


def scalar_flow() -> cw.Flow:
    """With a task that is called for each event."""
    flow = cw.Flow("scalar")
    flow.sink("counts", flow.source("readings", Reading).key_by("key").apply(running))
    return flow


def vectorised_flow() -> cw.Flow:
    """With a task on arrays."""
    flow = cw.Flow("vectorised")
    flow.sink("counts", flow.source("readings", Reading).key_by("key").apply(running_arrays))
    return flow


def built_in_flow() -> cw.Flow:
    """With built-in aggregates, which emit once for each key that an epoch touched."""
    flow = cw.Flow("built_in")
    keyed = flow.source("readings", Reading).key_by("key")
    totals = keyed.aggregate(emit="epoch", count=cw.agg.count(), sum=cw.agg.sum("value"))
    flow.sink("counts", totals)
    return flow


# --- as flows that only count, as the peers do ---------------------------------------------------


@dataclass(slots=True)
class Count:
    """What is kept for each key."""

    count: int


@dataclass(slots=True)
class KeyCount:
    """What comes out, for each event."""

    key: str
    count: int


@cw.task(initial=Count(0))
def running_count(state: Count, event: Reading) -> tuple[Count, list[KeyCount]]:
    """One call for each event."""
    count = state.count + 1
    return Count(count), [KeyCount(event.key, count)]


@cw.vectorised(initial=Count(0))
def running_counts(state: Count, event: Reading, keys: cw.Keys) -> tuple[Count, KeyCount]:
    """One call for a batch."""
    counts = keys.running_count(start=state.count)
    counted = KeyCount(event.key, counts)  # type: ignore[arg-type]
    return Count(keys.last(counts)), counted  # type: ignore[arg-type]


def scalar_count_flow() -> cw.Flow:
    """A running count, with a task that is called for each event."""
    flow = cw.Flow("scalar_count")
    flow.sink("counts", flow.source("readings", Reading).key_by("key").apply(running_count))
    return flow


def vectorised_count_flow() -> cw.Flow:
    """A running count, with a task on arrays."""
    flow = cw.Flow("vectorised_count")
    flow.sink("counts", flow.source("readings", Reading).key_by("key").apply(running_counts))
    return flow


def built_in_count_flow() -> cw.Flow:
    """A built-in count, which emits once for each key that an epoch touched."""
    flow = cw.Flow("built_in_count")
    keyed = flow.source("readings", Reading).key_by("key")
    flow.sink("counts", keyed.aggregate(emit="epoch", count=cw.agg.count()))
    return flow


# --- as plain Spark queries ------------------------------------------------------------------


class PandasGroups(StatefulProcessor):
    """One group for each key, its rows as data frames; the arithmetic is pandas' own."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", TOTAL)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        count, total = self._total.get() or (0, 0)
        for frame in rows:
            size = len(frame)
            sums = total + frame["value"].cumsum()
            counts = np.arange(count + 1, count + size + 1)
            yield pd.DataFrame(
                {"position": frame["position"], "key": key[0], "count": counts, "sum": sums}
            )
            count, total = count + size, int(sums.iloc[-1])
        self._total.update((count, total))

    def close(self) -> None:
        pass


class RowGroups(StatefulProcessor):
    """One group for each key, its rows as `Row` objects."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", TOTAL)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        count, total = self._total.get() or (0, 0)
        for row in rows:
            count, total = count + 1, total + row.value
            yield Row(position=row.position, key=key[0], count=count, sum=total)
        self._total.update((count, total))

    def close(self) -> None:
        pass


def pandas_groups(readings: DataFrame) -> DataFrame:
    """`transformWithStateInPandas`, as its documentation shows it."""
    groups = readings.groupBy("key")
    return groups.transformWithStateInPandas(PandasGroups(), COUNTED, "append", "None")


def row_groups(readings: DataFrame) -> DataFrame:
    """`transformWithState`, as its documentation shows it."""
    return readings.groupBy("key").transformWithState(RowGroups(), COUNTED, "append", "None")


def native(readings: DataFrame) -> DataFrame:
    """Spark's own aggregation; in update mode it emits once for each key that an epoch touched."""
    return readings.groupBy("key").agg(F.count("*").alias("count"), F.sum("value").alias("sum"))
