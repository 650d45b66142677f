"""The kinds of sources that we read ourselves, by the name that a checkpoint has for each."""

from __future__ import annotations

from cutwater.spark.connectors.base.source import Feed
from cutwater.spark.connectors.files.csv_source import Csv
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.parquet_source import Parquet
from cutwater.spark.connectors.generator.source import Generated
from cutwater.spark.connectors.kafka.source import KafkaMessages
from cutwater.spark.connectors.postgres.source import PostgresRows

__all__ = ["KINDS"]

KINDS: dict[str, type[Feed]] = {
    feed.kind: feed for feed in (Csv, Generated, JsonLines, KafkaMessages, Parquet, PostgresRows)
}
