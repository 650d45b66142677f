"""The rows of several buckets as one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.exchange.columns import Records, joined_values

__all__ = ["in_order"]


def in_order(buckets: Sequence[BucketRows]) -> Sequence[Any]:
    """The values of all buckets, sorted by order; `Records` if every bucket holds `Records`."""
    values = joined_values([bucket.values for bucket in buckets])
    if len(buckets) == 1:
        return values
    orders = [order for bucket in buckets for order in bucket.orders]
    indices = sorted(range(len(orders)), key=orders.__getitem__)
    return values.take(indices) if isinstance(values, Records) else [values[i] for i in indices]
