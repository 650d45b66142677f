"""A streaming DataFrame as a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegralType

from cutwater.spark.connectors.base.source import Binding, Replay

__all__ = ["Frame"]


@dataclass(frozen=True)
class Frame(Binding):
    """A streaming DataFrame as a source.

    Parameters
    ----------
    data
        Its columns are the fields of the source's records, by name; other columns are ignored.
    order
        Columns that order all rows of the source; their values are unique and the same after a
        replay: partition and offset of Kafka, or a file's name and the row in it. Without them
        rows are processed as they arrive, and a replay may process them in another order.
    """

    data: DataFrame
    order: Sequence[str] = ()
    idle_after: None = field(default=None, init=False)

    kind: ClassVar[str] = "DataFrame"

    @property
    def whole_order(self) -> tuple[str, ...]:
        """The columns of the order if all of them are integers, else none."""
        schema = getattr(self.data, "schema", None)
        if schema is None:  # in another process
            known: tuple[str, ...] = vars(self).get("_whole", ())
            return known
        types = [schema[column].dataType for column in self.order]
        return tuple(self.order) if all(isinstance(t, IntegralType) for t in types) else ()

    def replay(self) -> Replay:
        """Replayable if it has an order."""
        if not self.order:
            return Replay(
                False,
                "it is a DataFrame without an order",
                "Spark reads the same rows when it reads them again",
                is_reordered=True,
                remedy="with order=[…]",
            )
        columns = ", ".join(f"'{column}'" for column in self.order)
        return Replay(
            True,
            "it is a DataFrame with an order",
            f"no two rows agree in {columns}, and they stay the same when Spark reads them again",
        )

    def __getstate__(self) -> dict[str, Any]:
        whole = self.whole_order
        return {"data": None, "order": tuple(self.order), "idle_after": None, "_whole": whole}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
