"""Why a DataFrame cannot be the source of a flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from cutwater.annotations import typename
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.exchange.arrow import is_misfit
from cutwater.vectors import Layout

__all__ = ["frame_column_problems", "frame_problems"]


def frame_problems(step: s.Source, frame: Frame) -> Iterator[Problem]:
    """Why a DataFrame cannot be the source of a flow."""
    name = step.name
    if not isinstance(frame.data, DataFrame) or not frame.data.isStreaming:
        yield Problem(
            "not-a-stream",
            f"source '{name}' is bound to {type(frame.data).__name__}, which is not a streaming "
            "DataFrame",
            "make it with spark.readStream",
        )
        return
    yield from frame_column_problems(step, frame.data.schema, frame.order)


def frame_column_problems(
    step: s.Source, schema: StructType, order: Sequence[str]
) -> Iterator[Problem]:
    """Why the columns of a DataFrame do not make records; columns that are not read are ignored."""
    layout = Layout.of(step.type)
    declared = {field or "value": tp for field, tp in layout.declared.items()}
    needed = dict.fromkeys([*declared, *order])
    for column in needed:
        if schema.names.count(column) != 1:
            yield _not_one(step.name, column, schema.names)
            return
    for column, tp in declared.items():
        found = _arrow_type(schema[column].dataType)
        if found is None or is_misfit(found, tp):
            yield _of_another_type(step.name, column, schema[column].dataType, tp)
    for column in order:
        if not _has_order(schema[column].dataType):
            yield _without_order(step.name, column, schema[column].dataType)


def _arrow_type(tp: DataType) -> pa.DataType | None:
    """The Arrow type in which Spark hands a type to Python; None if Python has no value for it."""
    if _ways(tp):
        return None
    try:
        return to_arrow_type(tp, timezone="UTC")
    except PySparkException:
        return None


_WAYS_ROUND = {
    "VariantType": "to_json({column}) converts it to text, variant_get extracts a part",
    "GeometryType": "st_asbinary({column}) converts it to bytes",
    "GeographyType": "st_asbinary({column}) converts it to bytes",
    "YearMonthIntervalType": "cast({column} as int) is its number of months",
    "CalendarIntervalType": "select days, or a day-time interval, which becomes a timedelta",
    "NullType": "cast it to the intended type: cast({column} as string)",
}
"""Workarounds for columns whose type has no counterpart in Python, by type."""


def _ways(tp: DataType) -> str:
    """The workaround for the first part of a type without a counterpart in Python; empty: none."""
    inner = {
        ArrayType: lambda: [tp.elementType],  # type: ignore[attr-defined]
        MapType: lambda: [tp.keyType, tp.valueType],  # type: ignore[attr-defined]
        StructType: lambda: [field.dataType for field in tp],  # type: ignore[attr-defined]
    }.get(type(tp), list)()
    own = _WAYS_ROUND.get(type(tp).__name__, "")
    return own or next(filter(None, map(_ways, inner)), "")


def _has_order(tp: DataType) -> bool:
    return not _ways(tp) and isinstance(tp, AtomicType)


def _not_one(source: str, column: str, names: Sequence[str]) -> Problem:
    if column in names:
        return Problem(
            "ambiguous-column",
            f"source '{source}' needs the column '{column}', and the DataFrame has several",
            "rename or drop the others",
        )
    return Problem(
        "missing-column",
        f"source '{source}' needs the column '{column}'; the DataFrame has: {', '.join(names)}",
        "rename the columns of the DataFrame: select, withColumnRenamed",
    )


def _of_another_type(source: str, column: str, tp: DataType, declared: Any) -> Problem:
    hint = _ways(tp).format(column=column)
    return Problem(
        "column-of-another-type",
        f"column '{column}' of source '{source}' is {tp.simpleString()}; the record declares it as "
        f"{typename(declared)}",
        hint or f"cast the column, or correct the annotation{_annotation(tp)}",
    )


def _annotation(tp: DataType) -> str:
    """For a hint: the annotation that fits a simple column."""
    kinds: dict[type, str] = {
        BinaryType: "bytes",
        BooleanType: "bool",
        DateType: "datetime.date",
        DayTimeIntervalType: "datetime.timedelta",
        DecimalType: "decimal.Decimal",
        StringType: "str",
        TimestampNTZType: "datetime.datetime",
        TimestampType: "datetime.datetime",
        TimeType: "datetime.time",
    }
    numbers = "int" if isinstance(tp, IntegralType) else "float"
    found = kinds.get(type(tp)) or (numbers if isinstance(tp, NumericType) else "")
    return f": {tp.simpleString()} is {found}" if found else ""


def _without_order(source: str, column: str, tp: DataType) -> Problem:
    return Problem(
        "column-without-order",
        f"column '{column}' is the position of a row of source '{source}', and it is "
        f"{tp.simpleString()}, which has no order",
        "name columns of numbers, text, bytes or times in order",
    )
