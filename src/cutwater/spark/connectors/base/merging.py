"""The rows of several lanes as one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutwater.spark.connectors.base.sink import Lane
from cutwater.spark.exchange.columns import Records, joined_values

__all__ = ["in_order"]


def in_order(lanes: Sequence[Lane]) -> Sequence[Any]:
    """The values of all lanes, by their orders; `Records` if those of every lane are."""
    values = joined_values([lane.values for lane in lanes])
    if len(lanes) == 1:
        return values
    orders = [order for lane in lanes for order in lane.orders]
    places = sorted(range(len(orders)), key=orders.__getitem__)
    return values.take(places) if isinstance(values, Records) else [values[i] for i in places]
