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

from cutwater.spark.config import RunConfig, RunSettings, load_config
from cutwater.spark.postgres import postgres_rows, postgres_table
from cutwater.spark.progress import Progress, SourceProgress
from cutwater.spark.promises import Promise, guarantees
from cutwater.spark.reading_state import StepState, read_state
from cutwater.spark.rescaling import Rescaled, rescale
from cutwater.spark.runner import RunResult, run
from cutwater.spark.sinks import Call as call
from cutwater.spark.sinks import Delta as delta_table
from cutwater.spark.sinks import Folder as folder
from cutwater.spark.sinks.kafka_topic import KafkaTopic as kafka_topic
from cutwater.spark.sources.csv_files import Csv as csv
from cutwater.spark.sources.frame import Frame as frame
from cutwater.spark.sources.generated import Generated as generate
from cutwater.spark.sources.json_lines import JsonLines as json_lines
from cutwater.spark.sources.kafka_messages import KafkaMessages as kafka_messages
from cutwater.spark.sources.parquet_files import Parquet as parquet
from cutwater.spark.summary import CheckpointSummary, SourceSummary, describe
from cutwater.spark.support import SUPPORT
from cutwater.spark.transform import transform
from cutwater.spark.verifying import Verified, verify

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
