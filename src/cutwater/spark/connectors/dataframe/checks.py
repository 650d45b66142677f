"""Why a DataFrame cannot be the source of a flow."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.arrow import misfit
from cutwater.vectors import Layout

__all__ = ["frame_problems"]


def frame_problems(step: s.Source, frame: Frame) -> Iterator[Problem]:
    """Why a DataFrame cannot be the source of a flow."""
    name = step.name
    if not isinstance(frame.data, DataFrame) or not frame.data.isStreaming:
        yield Problem(
            "not-a-stream",
            f"source '{name}' is bound to {type(frame.data).__name__}, which is no streaming "
            "DataFrame",
            "make it with spark.readStream",
        )
        return
    arrow = to_arrow_schema(frame.data.schema)
    layout = Layout.of(step.type)
    wanted = [field or "value" for field in layout.columns]
    missing = [column for column in [*wanted, *frame.order] if column not in arrow.names]
    if missing:
        yield Problem(
            "missing-column",
            f"source '{name}' needs the column '{missing[0]}'; the DataFrame has: "
            f"{', '.join(arrow.names)}",
            "rename the columns of the DataFrame: select, withColumnRenamed",
        )
        return
    for field, tp in layout.declared.items():
        found = arrow.field(field or "value").type
        if misfit(found, tp):
            type_name = frame.data.schema[field or "value"].dataType.simpleString()
            yield Problem(
                "column-of-another-type",
                f"column '{field or 'value'}' of source '{name}' is {type_name}; the record "
                f"declares it as {getattr(tp, '__name__', tp)}",
                "cast the column, or correct the annotation",
            )
