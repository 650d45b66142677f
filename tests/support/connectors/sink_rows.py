"""Rows for sinks, as tasks have them."""

from collections.abc import Sequence
from typing import Any

from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.exchange.columns import Records
from cutwater.vectors import Layout


def claim(generation: int = 1, query_id: str = "q", sink: str = "means", checkpoint: Any = None):
    return Claim("f", sink, query_id, generation, str(checkpoint or "/nowhere"))


def bucket(record: Any, values: Sequence[Any], label: int = 1, first: int = 0) -> BucketRows:
    """A bucket of records, whose orders count from `first`."""
    orders = [(first + n).to_bytes(8, "big") for n in range(len(values))]
    return BucketRows(label, orders, Records.of(Layout.of(record), list(values)))


def codes(problems) -> list[str]:
    return [problem.code for problem in problems]
