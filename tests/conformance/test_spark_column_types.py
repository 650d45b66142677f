"""A DataFrame may have columns of every type that Spark has: read, or refused with a sentence."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass
from decimal import Decimal

import pytest

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.spark.state.partitions import shuffling_to

pytestmark = pytest.mark.spark

MOMENT = dt.datetime(2024, 3, 31, 1, 30, 0, 123456)


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    at: dt.datetime
    price: Decimal


@dataclass(frozen=True)
class Everything:
    id: int
    byte: int
    short: int
    whole: int
    real: float
    double: float
    flag: bool
    text: str
    fixed: str
    colour: Colour
    identity: uuid.UUID
    data: bytes
    price: Decimal
    exact: Decimal
    day: dt.date
    moment: dt.datetime
    local: dt.datetime
    hour: dt.time
    delay: dt.timedelta
    items: list[int]
    moments: list[dt.datetime]
    sizes: dict[str, dt.datetime]
    inner: Inner
    inners: list[Inner]
    maybe: dt.datetime | None
    maybe_local: dt.datetime | None


COLUMNS = {
    "id": ("value", None),
    "byte": ("cast(value % 100 as tinyint)", None),
    "short": ("cast(7 as smallint)", 7),
    "whole": ("cast(-7 as int)", -7),
    "real": ("cast(0.5 as float)", 0.5),
    "double": ("cast(0.1 as double)", 0.1),
    "flag": ("true", True),
    "text": ("'a\\u00e9'", "aé"),
    "fixed": ("cast('abc' as varchar(3))", "abc"),
    "colour": ("'red'", "red"),
    "identity": ("'00000000-0000-0000-0000-000000000007'", str(uuid.UUID(int=7))),
    "data": ("X'00FF'", b"\x00\xff"),
    "price": ("cast(12.50 as decimal(10, 2))", Decimal("12.5")),
    "exact": ("cast(1 as decimal(38, 0))", Decimal(1)),
    "day": ("date'2024-02-29'", dt.date(2024, 2, 29)),
    "moment": (f"timestamp'{MOMENT} UTC'", MOMENT.replace(tzinfo=dt.UTC)),
    "local": (f"timestamp_ntz'{MOMENT}'", MOMENT.replace(tzinfo=dt.UTC)),
    "hour": ("time'12:34:56.789'", dt.time(12, 34, 56, 789000)),
    "delay": ("interval '1 02:03:04.5' day to second", dt.timedelta(1, 7384, 500000)),
    "items": ("array(1, 2)", [1, 2]),
    "moments": (f"array(timestamp'{MOMENT} UTC')", [MOMENT.replace(tzinfo=dt.UTC)]),
    "sizes": (f"map('a', timestamp'{MOMENT} UTC')", {"a": MOMENT.replace(tzinfo=dt.UTC)}),
    "inner": (
        f"named_struct('at', timestamp'{MOMENT} UTC', 'price', 1.5)",
        {"at": MOMENT.replace(tzinfo=dt.UTC), "price": Decimal("1.5")},
    ),
    "inners": (
        f"array(named_struct('at', timestamp'{MOMENT} UTC', 'price', 1.5))",
        [{"at": MOMENT.replace(tzinfo=dt.UTC), "price": Decimal("1.5")}],
    ),
    "maybe": ("cast(null as timestamp)", None),
    "maybe_local": ("cast(null as timestamp_ntz)", None),
}


@pytest.fixture(autouse=True)
def two_partitions(spark):
    with shuffling_to(spark, 2):
        yield


@pytest.fixture
def settings(spark):
    """A time zone on which no result may depend, and columns of times of day."""
    wanted = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.timeType.enabled": "true",
    }
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def ticks(spark):
    """Rows of Spark's own source that counts."""
    options = {"rowsPerBatch": 4, "numPartitions": 2, "startTimestamp": 0}
    return spark.readStream.format("rate-micro-batch").options(**options).load()


def as_arrow(rows):
    """Rows as dicts, with moments that know their zone."""
    return rows.toArrow().to_pylist(maps_as_pydicts="strict")


def first_epochs(root, flow, sources, epochs=2):
    """The rows of some epochs of a query that would never end."""
    found = {}
    shown = cutwater_spark.transform(flow, sources, checkpoint=root / "checkpoint")
    writer = shown.writeStream.foreachBatch(
        lambda rows, epoch: found.update(
            {epoch: rows.toArrow().to_pylist(maps_as_pydicts="strict")}
        )
    )
    query = writer.option("checkpointLocation", str(root / "checkpoint")).start()
    try:
        while query.isActive and len(found) < epochs:
            query.awaitTermination(1)
        if query.exception():
            raise query.exception()
    finally:
        query.stop()
    return [row for epoch in sorted(found)[:epochs] for row in found[epoch]]


@cw.task(initial=None)
def last(before: Everything | None, now: Everything) -> tuple[Everything | None, list[Everything]]:
    """What came before: it was kept as a state."""
    return now, [before] if before else []


def test_every_type_goes_through_state_and_comes_back_as_it_was(spark, tmp_path, settings):
    flow = cw.Flow("everything")
    flow.sink("out", flow.source("rows", Everything).key_by("byte").apply(last))
    every = ticks(spark).selectExpr(*(f"{sql} as {name}" for name, (sql, _) in COLUMNS.items()))
    every = every.withColumn("byte", every.id.cast("tinyint") * 0)
    rows = first_epochs(tmp_path, flow, {"rows": cutwater_spark.frame(every, order=["id"])})
    assert [row["id"] for row in rows] == list(range(7))
    for name, (_, wanted) in COLUMNS.items():
        if wanted is not None:
            assert rows[0][name] == wanted, name


@dataclass(frozen=True)
class Tick:
    timestamp: dt.datetime
    value: int


def test_the_rate_source_is_read_with_its_timestamps_as_times(spark, tmp_path, settings):
    flow = cw.Flow("ticks")
    ticking = flow.source(
        "ticks", Tick, time="timestamp", watermark=cw.bounded_delay(dt.timedelta()), late="drop"
    )
    flow.sink(
        "out",
        ticking.key_by("value")
        .window(cw.tumbling(dt.timedelta(seconds=1)))
        .aggregate(n=cw.agg.count()),
    )
    rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    rows = first_epochs(tmp_path, flow, {"ticks": cutwater_spark.frame(rate, order=["value"])}, 3)
    assert rows
    assert all(row["n"] == 1 and row["window_end"].tzinfo for row in rows)


@dataclass(frozen=True)
class Header:
    key: str
    value: bytes | None


@dataclass(frozen=True)
class Message:
    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp: dt.datetime
    timestampType: int
    headers: list[Header] | None


KAFKA = [
    "if(value % 2 = 0, null, cast(cast(value as string) as binary)) as key",
    "cast('{}' as binary) as value",
    "'orders' as topic",
    "cast(value % 2 as int) as partition",
    "value as offset",
    "timestamp",
    "0 as timestampType",
    "if(value = 1, null, array(named_struct('key', 'id', 'value', X'78'))) as headers",
]
"""The columns of Spark's Kafka source, in its types."""


@cw.task(initial=None)
def same(_seen: Message | None, message: Message) -> tuple[Message | None, list[Message]]:
    return message, [message]


def test_messages_of_sparks_kafka_source_are_records(spark, tmp_path):
    flow = cw.Flow("messages")
    messages = flow.source(
        "messages",
        Message,
        time="timestamp",
        watermark=cw.bounded_delay(dt.timedelta(1)),
        late="drop",
    )
    flow.sink("out", messages.key_by("partition").apply(same))
    kafka = ticks(spark).selectExpr(*KAFKA)
    order = ["partition", "offset"]
    rows = first_epochs(tmp_path, flow, {"messages": cutwater_spark.frame(kafka, order=order)})
    rows.sort(key=lambda row: row["offset"])
    assert [row["offset"] for row in rows] == list(range(8))
    assert (rows[0]["key"], rows[0]["headers"]) == (None, [{"key": "id", "value": b"x"}])
    assert rows[1]["headers"] is None
    assert rows[7]["timestamp"] == dt.datetime.fromtimestamp(1, dt.UTC)
