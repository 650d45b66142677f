"""The kinds of sources that we read ourselves, by the name that a checkpoint has for each."""

from __future__ import annotations

from cutwater.spark.postgres.rows import PostgresRows
from cutwater.spark.sources.csv_files import Csv
from cutwater.spark.sources.feed import Feed
from cutwater.spark.sources.generated import Generated
from cutwater.spark.sources.json_lines import JsonLines
from cutwater.spark.sources.kafka_messages import KafkaMessages
from cutwater.spark.sources.parquet_files import Parquet

__all__ = ["KINDS"]

KINDS: dict[str, type[Feed]] = {
    feed.kind: feed for feed in (Csv, Generated, JsonLines, KafkaMessages, Parquet, PostgresRows)
}
