"""A sink that drops its rows: what is measured is all that comes before it.

Workers import this module by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cutwater.errors import Problem
from cutwater.spark.connectors.base.sink import (
    AT_LEAST_ONCE,
    BucketRows,
    Claim,
    Guarantee,
    Receipt,
    Release,
    SinkConnector,
)

__all__ = ["Dropping"]


@dataclass(frozen=True)
class Dropping(SinkConnector):
    """Takes records as columns and keeps nothing."""

    accepts: Literal["records"] = field(default="records", init=False)
    release: Release = field(default="commit", init=False)

    @property
    def location(self) -> str:
        return "nowhere"

    def guarantee(self) -> Guarantee:
        return Guarantee(AT_LEAST_ONCE, "drops its rows")

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        return []

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        return None

    def generation(self, name: str) -> int:
        return 0

    def claim(self, claim: Claim) -> None:
        pass

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Receipt:
        return Receipt(claim.sink)

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        pass

    def row_count(self, claim: Claim) -> int:
        return 0
