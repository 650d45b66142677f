"""Every column type that Spark has is read, or refused with a sentence and a way out."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

import cutwater as cw
from cutwater.ordering import canonical
from cutwater.spark.connectors.dataframe.checks import frame_column_problems
from cutwater.spark.job.spec import Job
from cutwater.spark.job.transport import dump_job, load_job
from cutwater.spark.microbatch.dataframes import _sortable


@dataclass(frozen=True)
class Pair:
    name: str
    at: dt.datetime


READ = [
    (t.BooleanType(), bool),
    (t.ByteType(), int),
    (t.ShortType(), int),
    (t.IntegerType(), int),
    (t.LongType(), int),
    (t.LongType(), float),
    (t.FloatType(), float),
    (t.DoubleType(), float),
    (t.DecimalType(10, 2), Decimal),
    (t.DecimalType(38, 0), Decimal),
    (t.StringType(), str),
    (t.StringType("UTF8_LCASE"), str),
    (t.BinaryType(), bytes),
    (t.DateType(), dt.date),
    (t.TimeType(), dt.time),
    (t.TimestampType(), dt.datetime),
    (t.TimestampNTZType(), dt.datetime),
    (t.TimestampNTZType(), Annotated[dt.datetime, msgspec.Meta(tz=False)]),
    (t.DayTimeIntervalType(), dt.timedelta),
    (t.ArrayType(t.TimestampType()), list[dt.datetime]),
    (t.ArrayType(t.StringType()), frozenset[str]),
    (t.MapType(t.StringType(), t.TimestampType()), dict[str, dt.datetime]),
    (t.StructType().add("name", "string").add("at", "timestamp"), Pair),
    (t.StructType().add("name", "string").add("at", "timestamp"), Pair | None),
]
REFUSED = [
    (t.VariantType(), "to_json(column)"),
    (t.GeometryType(4326), "st_asbinary(column)"),
    (t.GeographyType(4326), "st_asbinary(column)"),
    (t.YearMonthIntervalType(), "number of months"),
    (t.CalendarIntervalType(), "day-time interval"),
    (t.NullType(), "cast(column as string)"),
    (t.ArrayType(t.VariantType()), "to_json(column)"),
    (t.MapType(t.StringType(), t.CalendarIntervalType()), "day-time interval"),
    (t.StructType().add("inside", t.NullType()), "cast(column as string)"),
]


def problems(tp: t.DataType, declared: Any, order=()) -> list[str]:
    flow = cw.Flow("flow")
    flow.source("rows", declared)
    schema = t.StructType().add("value", tp).add("nobody_reads", t.VariantType())
    return [str(problem) for problem in frame_column_problems(flow.steps[0], schema, order)]


@pytest.mark.parametrize(("tp", "declared"), READ, ids=str)
def test_a_column_of_the_type_is_read(tp, declared):
    schema = t.StructType().add("value", tp).add("nobody_reads", t.VariantType())
    record = msgspec.defstruct("Record", [("value", declared)])
    flow = cw.Flow("flow")
    flow.source("rows", record)
    assert list(frame_column_problems(flow.steps[0], schema, ())) == []


@pytest.mark.parametrize(("tp", "hint"), REFUSED, ids=str)
@pytest.mark.parametrize("declared", [str, bytes, dict[str, str], Any])
def test_a_column_without_a_value_in_python_is_refused_with_a_way_round(tp, hint, declared):
    (message,) = problems(tp, declared)
    assert f"is {tp.simpleString()}; the record declares it as" in message
    assert hint.replace("column", "value") in message


def test_spark_has_no_other_type():
    """A type that a new version brings is entered in one of the two lists."""
    abstract = {t.AtomicType, t.NumericType, t.IntegralType, t.FractionalType, t.DatetimeType}
    abstract |= {t.DataType, t.StructField, t.UserDefinedType, t.AnsiIntervalType}
    abstract |= {getattr(t, name) for name in ("AnyTimeType", "SpatialType") if hasattr(t, name)}
    abstract |= {t.CharType, t.VarcharType}  # of tables; a DataFrame has strings
    every = {c for c in vars(t).values() if isinstance(c, type) and issubclass(c, t.DataType)}
    assert every - abstract == {type(tp) for tp, _ in [*READ, *REFUSED]}


def test_the_hint_says_which_annotation_takes_the_column():
    (message,) = problems(t.TimestampType(), int)
    assert message.endswith("correct the annotation: timestamp is datetime.datetime")


def test_two_columns_of_one_name_are_refused():
    flow = cw.Flow("flow")
    flow.source("rows", str)
    schema = t.StructType().add("value", "string").add("value", "string")
    (message,) = frame_column_problems(flow.steps[0], schema, ())
    assert str(message).startswith("[ambiguous-column]")


@pytest.mark.parametrize(
    "tp", [t.ArrayType(t.LongType()), t.MapType(t.StringType(), t.LongType()), t.VariantType()]
)
def test_a_column_without_an_order_is_no_order(tp):
    flow = cw.Flow("flow")
    flow.source("rows", str)
    schema = t.StructType().add("value", "string").add("place", tp)
    (message,) = frame_column_problems(flow.steps[0], schema, ["place"])
    assert str(message).startswith("[column-without-order] column 'place' is the position of a row")


SORTED = {
    "decimal": (pa.decimal128(38, 18), st.decimals(-1000, 1000, places=18)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "float": (pa.float32(), st.floats(allow_nan=False, width=32)),
    "time": (pa.time64("ns"), st.times()),
    "interval": (pa.duration("us"), st.timedeltas(dt.timedelta(-9), dt.timedelta(9))),
    "date": (pa.date32(), st.dates()),
    "bytes": (pa.binary(), st.binary(max_size=3)),
}


@pytest.mark.parametrize("kind", sorted(SORTED))
@given(st.data())
def test_rows_stand_in_the_order_of_the_column(kind, data):
    tp, values = SORTED[kind]
    column = pa.array(data.draw(st.lists(values, min_size=2)), tp)
    places = [canonical(value) for value in _sortable(column)]
    found = column.to_pylist()
    for one, other in zip(range(len(found) - 1), range(1, len(found)), strict=True):
        assert (found[one] < found[other]) == (places[one] < places[other])


@dataclass(frozen=True)
class Limited:
    size: Annotated[int, msgspec.Meta(ge=0, le=9, description="of a box")]
    at: Annotated[dt.datetime, msgspec.Meta(tz=False)]


def test_what_an_annotation_asks_for_travels():
    flow = cw.Flow("limited")
    flow.sink("out", flow.source("boxes", Limited))
    there = load_job(dump_job(Job(flow, {}, {}, "", 0, 1, "")))
    assert there.topology.source_step("boxes").type.__annotations__ == {
        "size": Annotated[int, msgspec.Meta(ge=0, le=9, description="of a box")],
        "at": Annotated[dt.datetime, msgspec.Meta(tz=False)],
    }
