"""The Delta sink: an epoch is one transaction of the table, together with its number.

::

    table/
      _delta_log/            versions, each atomic; readers see only files that these name
      cutwater-*.parquet     written by tasks, invisible until the log names them
      part-*.parquet         made of them by compaction

The ledger is part of the table. Its owner is a table property, so a claim changes the metadata,
which conflicts with every transaction that began before. The newest epoch and the number of rows
are application transactions, which are committed with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cutwater.endings import kind_of_errno
from cutwater.errors import Problem, RefusedError, many
from cutwater.spark.connectors.base.merging import in_order
from cutwater.spark.connectors.base.parquet_rows import (
    parquet_column_problems,
    schema_of_record,
    write_parquet,
)
from cutwater.spark.connectors.base.refusals import (
    ahead,
    other_checkpoint,
    other_format,
    other_sink,
    unwritable,
)
from cutwater.spark.connectors.base.sink import (
    EXACTLY_ONCE,
    BucketRows,
    Claim,
    Guarantee,
    Receipt,
    Release,
    SinkConnector,
)
from cutwater.spark.exchange.columns import Records
from cutwater.spark.storage.durable import make_folder, why_unwritable
from cutwater.spark.storage.local_paths import impossible, is_url

if TYPE_CHECKING:
    from cutwater.spark.connectors.delta.ledger import DeltaLog

__all__ = ["Delta", "StagedFile"]

_SECRET = re.compile(r"secret|password|token|key|credential|signature|sas", re.IGNORECASE)
_STORES = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss")
_OF_A_LOG = ("_delta_log", "_torn")
"""What is in the folder of a table whose creation was interrupted or torn by a power loss."""
_NOT_SECRET = re.compile(r"_file$|_env$", re.IGNORECASE)


@dataclass(frozen=True)
class StagedFile(Receipt):
    """A file that a task attempt wrote, and that no version of the table names yet."""

    name: str
    size: int
    rows: int
    last_order: str


@dataclass(frozen=True)
class Delta(SinkConnector):
    """A Delta table; it is created if it does not exist."""

    path: str
    """Its folder, or its URL in an object store (``s3://…``)."""
    compact_every: int = 50
    """Epochs after which small files are compacted and old ones are deleted; 0: never."""
    keep_hours: int = 24
    """Hours for which a file is kept that was removed, for readers of an older version."""
    storage_options: dict[str, str] = field(default_factory=dict)
    """How to reach an object store; secrets come from the environment."""
    accepts: Literal["records"] = field(default="records", init=False)
    release: Release = field(default="commit", init=False)

    def __post_init__(self) -> None:
        if self.is_local:
            object.__setattr__(self, "path", str(Path(self.path).absolute()))

    @property
    def is_local(self) -> bool:
        """Is the table in a folder of this machine?"""
        return not is_url(self.path)

    @property
    def location(self) -> str:
        """The table."""
        return str(Path(self.path).resolve()) if self.is_local else self.path.rstrip("/")

    def guarantee(self) -> Guarantee:
        """Exactly-once; in an object store, provided that it has conditional writes."""
        condition = "the store has conditional writes" if not self.is_local else ""
        return Guarantee(
            EXACTLY_ONCE, "commits the rows of an epoch and its number in one version", condition
        )

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """Why the settings cannot work, or records of the type cannot be rows of a table."""
        if find_spec("deltalake") is None:
            yield Problem(
                "missing-package",
                f"sink '{name}' is a Delta table, and the package deltalake is not installed",
                "install it: pip install 'cutwater[delta]'",
            )
        if not self.is_local and self.path.partition("://")[0] not in _STORES:
            yield _no_store(name, self.path)
        yield from impossible(f"the table of sink '{name}'", self.path)
        for setting, value in (
            ("compact_every", self.compact_every),
            ("keep_hours", self.keep_hours),
        ):
            if value < 0:
                yield Problem(
                    "negative-setting",
                    f"{setting} of sink '{name}' is {value}; it must be an integer, at least 0",
                    "0 for compact_every is never; 0 for keep_hours is until the next compaction",
                )
        for option in self.storage_options:
            if _SECRET.search(option) and not _NOT_SECRET.search(option):
                yield Problem(
                    "secret-in-a-setting",
                    f"storage_options of sink '{name}' has '{option}', which is a secret; "
                    "settings are logged and stored",
                    f"set it in the environment of driver and workers: {option.upper()}=…",
                )
        yield from parquet_column_problems(name, record)
        yield from _no_durations(name, record)

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """Why this checkpoint must not write to the table; changes nothing."""
        hindrance = why_unwritable(Path(self.path)) if self.is_local else None
        if hindrance:
            return [unwritable(name, Path(self.path), hindrance)]
        log = self._log(name)
        if not log.exists():
            return [_no_table(name, self.path)] if self._has_other_files() else []
        return _ledger_problems(log, name, query_id, next_epoch) + log.unsupported_features()

    def _has_other_files(self) -> bool:
        root = Path(self.path)
        if not self.is_local or not root.is_dir():
            return False
        return any(path.name not in _OF_A_LOG or not path.is_dir() for path in root.iterdir())

    def schema_problems(self, name: str, record: Any) -> list[Problem]:
        """The columns in which the table and the records differ."""
        log = self._log(name)
        return log.schema_problems(schema_of_record(name, record)) if log.exists() else []

    def prepare(self, name: str, record: Any) -> None:
        """Create the table if it does not exist."""
        if self.is_local:
            try:
                make_folder(Path(self.path))
            except OSError as error:
                why = error.strerror or str(error)
                raise kind_of_errno(error.errno)(unwritable(name, Path(self.path), why)) from None
        self._log(name).create(schema_of_record(name, record))

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """By the application transactions, without what a RESTORE of the table has undone."""
        log = self._log(name)
        ledger = log.ledger() if log.exists() else None
        if ledger is None or (ledger["query_id"], ledger["sink"]) != (query_id, name):
            return None
        return log.newest_kept(ledger["flow"], name, query_id)

    def generation(self, name: str) -> int:
        """The newest generation that claimed the table; 0 if none has."""
        log = self._log(name)
        ledger = log.ledger() if log.exists() else None
        return int(ledger["generation"]) if ledger else 0

    def claim(self, claim: Claim) -> None:
        """Write this generation to the table, which fences earlier ones; delete orphaned files."""
        log = self._log(claim.sink)
        log.claim(claim)
        log.sweep(claim, before_epoch=0)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Fence the other checkpoint; if not `keep`, `claim` then deletes all rows."""
        self._log(claim.sink).take_over(claim, keep=keep)

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> StagedFile:
        """Stage rows in a file that no version of the table names."""
        values = in_order(buckets)
        assert isinstance(values, Records)
        name, size = self._log(claim.sink).write_file(
            claim, epoch, lambda file: write_parquet(file, claim.sink, record, values)
        )
        last = max(bucket.last_order for bucket in buckets)
        return StagedFile(claim.sink, name, size, len(values), last.hex())

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Commit an epoch as one version; one that is committed already stays as it is."""
        staged = [receipt for receipt in receipts if isinstance(receipt, StagedFile)]
        self._log(claim.sink).commit(claim, epoch, sorted(staged, key=lambda s: s.last_order))

    def released(self, claim: Claim, epoch: int) -> str | None:
        """All of the epoch if its number is committed, which happens with its rows; else None."""
        log = self._log(claim.sink)
        newest = log.newest_epoch(claim.flow, claim.sink, claim.query_id) if log.exists() else -1
        return "all of it" if newest >= epoch else None

    def row_count(self, claim: Claim) -> int:
        """The number of rows that this checkpoint has committed, by the ledger."""
        return self._log(claim.sink).rows(claim.flow, claim.sink, claim.query_id)

    def _log(self, sink: str) -> DeltaLog:
        from cutwater.spark.connectors.delta.ledger import DeltaLog

        return DeltaLog(self, sink)


def _ledger_problems(
    log: DeltaLog, name: str, query_id: str | None, next_epoch: int
) -> list[Problem]:
    from cutwater.spark.connectors.delta.ledger import DELTA_LEDGER_FORMAT

    ledger, path = log.ledger(), log.path
    if ledger is None:
        return []
    found = ledger.get("format")
    if found != DELTA_LEDGER_FORMAT:
        return [other_format(name, f"the ledger of {path}", found, DELTA_LEDGER_FORMAT, "table")]
    owner = (ledger["flow"], ledger["sink"], ledger["query_id"])
    if ledger["query_id"] != query_id:
        return [other_checkpoint(name, path, f"has {many(log.rows(*owner), 'row')} of it", "table")]
    if ledger["sink"] != name:
        return [other_sink(name, path, ledger["sink"], "table")]
    newest = log.newest_kept(*owner)
    return [ahead(name, path, newest, next_epoch)] if newest >= next_epoch else []


def _no_store(sink: str, path: str) -> Problem:
    return Problem(
        "unknown-store",
        f"sink '{sink}' goes to {path}, which is not the address of a supported object store",
        f"write it as SCHEME://BUCKET/PATH with one of {', '.join(_STORES)}; or give a path "
        "without a scheme",
    )


def _no_table(sink: str, path: str) -> Problem:
    return Problem(
        "foreign-output",
        f"sink '{sink}' goes to {path}, which has files and is not a Delta table",
        "choose an empty folder or a Delta table, or move the files away",
    )


def _no_durations(sink: str, record: Any) -> Iterator[Problem]:
    try:
        schema = schema_of_record(sink, record)
    except RefusedError:
        return
    for column in schema:
        if "duration" in str(column.type):
            yield Problem(
                "no-column-type",
                f"sink '{sink}' would have a column '{column.name}' of {column.type}, which Delta "
                "tables do not have",
                "map it to a number, as seconds or microseconds, before the sink",
            )
