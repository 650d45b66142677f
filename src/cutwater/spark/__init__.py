"""A flow on Spark Structured Streaming; the only package that imports pyspark.

======================================  ====================================================
the papers                              here
======================================  ====================================================
epoch and its border (P1)               one micro-batch, replayed from the offset log
snapshot archive (P1)                   state store versions (RocksDB), the commit log
out(c): what an observer sees (P1)      the epochs that `folder` sinks have published
task instance with its state (P1)       a bucket of keys: one state store group (`buckets`)
total order (P2)                        the order of each event, carried in rows (`rows`)
ledger, fence (P2)                      generation and manifest of each sink (`folder`)
======================================  ====================================================
"""

import typing as _typing

from cutwater._lazy import lazily as _lazily

if _typing.TYPE_CHECKING:
    from cutwater.spark.config import RunConfig, RunSettings, load_config
    from cutwater.spark.postgres import postgres_rows, postgres_table
    from cutwater.spark.progress import Progress, SourceProgress
    from cutwater.spark.promises import Promise, guarantees
    from cutwater.spark.reading_state import StepState, read_state
    from cutwater.spark.rescaling import Rescaled, rescale
    from cutwater.spark.runner import RunResult, run
    from cutwater.spark.sinks.call import Call as call
    from cutwater.spark.sinks.delta import Delta as delta_table
    from cutwater.spark.sinks.folder import Folder as folder
    from cutwater.spark.sinks.kafka_topic import KafkaTopic as kafka_topic
    from cutwater.spark.sources.csv_files import Csv as csv
    from cutwater.spark.sources.frame import Frame as frame
    from cutwater.spark.sources.generated import Generated as generate
    from cutwater.spark.sources.json_lines import JsonLines as json_lines
    from cutwater.spark.sources.kafka_messages import KafkaMessages as kafka_messages
    from cutwater.spark.sources.parquet_files import Parquet as parquet
    from cutwater.spark.summary import CheckpointSummary, SourceSummary, describe
    from cutwater.spark.support import SUPPORT
    from cutwater.spark.transforming import transform
    from cutwater.spark.verifying import Verified, verify

__getattr__ = _lazily(
    __name__,
    {
        "CheckpointSummary": "summary:CheckpointSummary",
        "Progress": "progress:Progress",
        "Promise": "promises:Promise",
        "Rescaled": "rescaling:Rescaled",
        "RunConfig": "config:RunConfig",
        "RunResult": "runner:RunResult",
        "RunSettings": "config:RunSettings",
        "SUPPORT": "support:SUPPORT",
        "SourceProgress": "progress:SourceProgress",
        "SourceSummary": "summary:SourceSummary",
        "StepState": "reading_state:StepState",
        "Verified": "verifying:Verified",
        "call": "sinks.call:Call",
        "csv": "sources.csv_files:Csv",
        "delta_table": "sinks.delta:Delta",
        "describe": "summary:describe",
        "folder": "sinks.folder:Folder",
        "frame": "sources.frame:Frame",
        "generate": "sources.generated:Generated",
        "guarantees": "promises:guarantees",
        "json_lines": "sources.json_lines:JsonLines",
        "kafka_messages": "sources.kafka_messages:KafkaMessages",
        "kafka_topic": "sinks.kafka_topic:KafkaTopic",
        "load_config": "config:load_config",
        "parquet": "sources.parquet_files:Parquet",
        "postgres_rows": "postgres:postgres_rows",
        "postgres_table": "postgres:postgres_table",
        "read_state": "reading_state:read_state",
        "rescale": "rescaling:rescale",
        "run": "runner:run",
        "transform": "transforming:transform",
        "verify": "verifying:verify",
    },
)


__all__ = [
    "SUPPORT",
    "CheckpointSummary",
    "Progress",
    "Promise",
    "Rescaled",
    "RunConfig",
    "RunResult",
    "RunSettings",
    "SourceProgress",
    "SourceSummary",
    "StepState",
    "Verified",
    "call",
    "csv",
    "delta_table",
    "describe",
    "folder",
    "frame",
    "generate",
    "guarantees",
    "json_lines",
    "kafka_messages",
    "kafka_topic",
    "load_config",
    "parquet",
    "postgres_rows",
    "postgres_table",
    "read_state",
    "rescale",
    "run",
    "transform",
    "verify",
]
