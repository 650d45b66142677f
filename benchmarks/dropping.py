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
    Claim,
    Guarantee,
    Lane,
    Receipt,
    Release,
    Sink,
)

__all__ = ["Dropping"]


@dataclass(frozen=True)
class Dropping(Sink):
    """Takes records as columns and keeps nothing."""

    takes: Literal["records"] = field(default="records", init=False)
    release: Release = field(default="commit", init=False)

    @property
    def place(self) -> str:
        return "nowhere"

    def guarantee(self) -> Guarantee:
        return Guarantee(AT_LEAST_ONCE, "drops its rows")

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        return []

    def generation(self, name: str) -> int:
        return 0

    def take(self, claim: Claim) -> None:
        pass

    def write(self, claim: Claim, epoch: int, record: Any, lanes: Sequence[Lane]) -> Receipt:
        return Receipt(claim.sink)

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        pass

    def rows(self, claim: Claim) -> int:
        return 0
