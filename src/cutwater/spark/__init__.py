"""Runs a flow on Spark Structured Streaming; the only package that imports pyspark.

Begin with `runner`, the entry point, then `recovery`, what every start does. `microbatch` and
`realtime` are the engines; `connectors` are the sources and sinks they read and write.

======================================  ====================================================
the papers                              here
======================================  ====================================================
epoch and its barrier (P1)               one micro-batch, replayed from the `offset_log`
snapshot archive (P1)                   state store versions (RocksDB), the commit log
out(c): what an observer sees (P1)      the epochs that sinks have published
task instance with its state (P1)       a bucket of keys: one state store group (`state`)
total order (P2)                        the order of each event, carried in its row (`exchange`)
ledger, fence (P2)                      generation and manifest of each sink (`connectors`)
======================================  ====================================================
"""

import typing as _typing

from cutwater._lazy import lazily as _lazily
from cutwater.extras import not_installed as _not_installed

if _typing.TYPE_CHECKING:
    from cutwater.spark.checkpoint.inspect import CheckpointSummary, SourceSummary, TickSummary
    from cutwater.spark.checkpoint.rescale import Rescaled, rescale
    from cutwater.spark.checkpoint.state_reader import StepState
    from cutwater.spark.checkpoint.verify import Verified
    from cutwater.spark.config import RunConfig, load_config
    from cutwater.spark.connectors.callback.sink import Callback as call
    from cutwater.spark.connectors.dataframe.source import Frame as frame
    from cutwater.spark.connectors.delta.sink import Delta as delta_table
    from cutwater.spark.connectors.files.csv_source import Csv as csv
    from cutwater.spark.connectors.files.json_source import JsonLines as json_lines
    from cutwater.spark.connectors.files.parquet_source import Parquet as parquet
    from cutwater.spark.connectors.files.sink import Folder as folder
    from cutwater.spark.connectors.generator.source import Generated as generate
    from cutwater.spark.connectors.kafka.sink import KafkaTopic as kafka_topic
    from cutwater.spark.connectors.kafka.source import KafkaMessages as kafka_messages
    from cutwater.spark.connectors.postgres import postgres_rows, postgres_table
    from cutwater.spark.end_to_end import SinkGuarantee, guarantees
    from cutwater.spark.inspection import describe, read_frontiers, read_state, verify
    from cutwater.spark.options import RunOptions
    from cutwater.spark.runner import RunResult, run
    from cutwater.spark.support import SUPPORT
    from cutwater.spark.telemetry.frontiers import Frontiers, Position, StepFrontier
    from cutwater.spark.telemetry.iterating import IteratingInput
    from cutwater.spark.telemetry.progress import (
        FrontierProgress,
        RunProgress,
        SnapshotProgress,
        SourceProgress,
    )
    from cutwater.spark.transformer import transform

__getattr__ = _lazily(
    __name__,
    {
        "CheckpointSummary": "checkpoint.inspect:CheckpointSummary",
        "FrontierProgress": "telemetry.progress:FrontierProgress",
        "Frontiers": "telemetry.frontiers:Frontiers",
        "IteratingInput": "telemetry.iterating:IteratingInput",
        "Position": "telemetry.frontiers:Position",
        "RunProgress": "telemetry.progress:RunProgress",
        "SinkGuarantee": "end_to_end:SinkGuarantee",
        "Rescaled": "checkpoint.rescale:Rescaled",
        "RunConfig": "config:RunConfig",
        "RunOptions": "options:RunOptions",
        "RunResult": "runner:RunResult",
        "SUPPORT": "support:SUPPORT",
        "SnapshotProgress": "telemetry.progress:SnapshotProgress",
        "SourceProgress": "telemetry.progress:SourceProgress",
        "SourceSummary": "checkpoint.inspect:SourceSummary",
        "StepFrontier": "telemetry.frontiers:StepFrontier",
        "StepState": "checkpoint.state_reader:StepState",
        "TickSummary": "checkpoint.inspect:TickSummary",
        "Verified": "checkpoint.verify:Verified",
        "call": "connectors.callback.sink:Callback",
        "csv": "connectors.files.csv_source:Csv",
        "delta_table": "connectors.delta.sink:Delta",
        "describe": "inspection:describe",
        "folder": "connectors.files.sink:Folder",
        "frame": "connectors.dataframe.source:Frame",
        "generate": "connectors.generator.source:Generated",
        "guarantees": "end_to_end:guarantees",
        "json_lines": "connectors.files.json_source:JsonLines",
        "kafka_messages": "connectors.kafka.source:KafkaMessages",
        "kafka_topic": "connectors.kafka.sink:KafkaTopic",
        "load_config": "config:load_config",
        "parquet": "connectors.files.parquet_source:Parquet",
        "postgres_rows": "connectors.postgres:postgres_rows",
        "postgres_table": "connectors.postgres:postgres_table",
        "read_frontiers": "inspection:read_frontiers",
        "read_state": "inspection:read_state",
        "rescale": "checkpoint.rescale:rescale",
        "run": "runner:run",
        "transform": "transformer:transform",
        "verify": "inspection:verify",
    },
    _not_installed,
)


__all__ = [
    "SUPPORT",
    "CheckpointSummary",
    "FrontierProgress",
    "Frontiers",
    "IteratingInput",
    "Position",
    "Rescaled",
    "RunConfig",
    "RunOptions",
    "RunProgress",
    "RunResult",
    "SinkGuarantee",
    "SnapshotProgress",
    "SourceProgress",
    "SourceSummary",
    "StepFrontier",
    "StepState",
    "TickSummary",
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
    "read_frontiers",
    "read_state",
    "rescale",
    "run",
    "transform",
    "verify",
]
