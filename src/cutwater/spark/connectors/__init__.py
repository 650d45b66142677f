"""Source and sink connectors: one package per external system, all laid out alike.

`base` is the contract of a source and of a sink, public so that other packages can implement it;
`registry` knows all connectors by name. Each imports `base`, `exchange` and `storage`: no engine,
and no other connector. Begin with `base`.
"""

from cutwater.spark.connectors.base.sink import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    BucketRows,
    Claim,
    Guarantee,
    Receipt,
    Release,
    SinkConnector,
    already_claimed,
    fenced,
)
from cutwater.spark.connectors.base.source import (
    BadRecord,
    Chunk,
    Planner,
    RawBatch,
    RecordReader,
    Replay,
    SourceConnector,
)

__all__ = [
    "AT_LEAST_ONCE",
    "EXACTLY_ONCE",
    "BadRecord",
    "BucketRows",
    "Chunk",
    "Claim",
    "Guarantee",
    "Planner",
    "RawBatch",
    "Receipt",
    "RecordReader",
    "Release",
    "Replay",
    "SinkConnector",
    "SourceConnector",
    "already_claimed",
    "fenced",
]
