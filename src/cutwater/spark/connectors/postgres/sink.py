"""The PostgreSQL sink: rows and ledger are committed in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from cutwater.annotations import typename
from cutwater.errors import Problem, RefusedError, many
from cutwater.spark.connectors.base.sink import (
    EXACTLY_ONCE,
    BucketRows,
    Claim,
    Guarantee,
    Receipt,
    Release,
    SinkConnector,
)
from cutwater.spark.connectors.postgres.checks import ledger_problems, missing_table, table_problems
from cutwater.spark.connectors.postgres.connections import Connection, persist
from cutwater.spark.connectors.postgres.fields import fields_of_record
from cutwater.spark.connectors.postgres.ledger import LedgerEntry, PostgresLedger
from cutwater.spark.connectors.postgres.packed_rows import (
    RowBatch,
    read_row_batches,
    row_batches_of,
    stage_row_batches,
)
from cutwater.spark.connectors.postgres.settings import Database, TableName, name_problems
from cutwater.spark.connectors.postgres.tables import read_table
from cutwater.spark.connectors.postgres.transactions import (
    create_table,
    known_table,
    table_definition,
    write_rows,
)

__all__ = ["PostgresTable", "Written"]

_Mode = Literal["append", "upsert"]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Written(Receipt):
    """What a task attempt staged; nothing if its rows were released early."""

    path: str = ""
    entries: tuple[LedgerEntry, ...] = ()

    def last_order(self) -> bytes:
        """The order of the last row; the parts of an epoch are sorted by it."""
        return max((entry.last_order for entry in self.entries), default=b"")


@dataclass(frozen=True, kw_only=True)
class PostgresTable(SinkConnector):
    """A PostgreSQL table whose ledger commits with its rows; see `postgres_table`."""

    table: str
    dsn: str = field(repr=False)
    mode: _Mode = "append"
    keys: tuple[str, ...] = ()
    release: Release = "commit"
    password_env: str | None = None
    password_file: str | None = None
    ledger_schema: str | None = None
    create: bool = False
    accepts: Literal["records"] = field(default="records", init=False)

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName.of(self.table)

    @property
    def ledger(self) -> PostgresLedger:
        """The ledger of the table."""
        return PostgresLedger(self.ledger_schema or self.name.schema, str(self.name))

    @property
    def location(self) -> str:
        """The table and its database, as a phrase."""
        return f"table {self.name} of {self._database}"

    @property
    def ledger_location(self) -> str:
        """The schema of the ledger."""
        return f"schema {self.ledger_schema or self.name.schema} of {self._database}"

    @property
    def releases(self) -> tuple[Release, ...]:
        return "commit", "early"

    def guarantee(self) -> Guarantee:
        """Exactly-once; with keys, provided that each belongs to one key of the flow."""
        keys = ", ".join(self.keys)
        same = f"rows with the same {keys} come from the same key of the flow" if keys else ""
        return Guarantee(EXACTLY_ONCE, "commits rows and ledger together", same)

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """Why the settings cannot work with records of a type; makes no connection."""
        owner = _owner(name)
        yield from name_problems(owner, self.table, self.ledger_schema)
        for setting, value, known in (
            ("mode", self.mode, get_args(_Mode)),
            ("release", self.release, get_args(Release)),
        ):
            if value not in known:
                yield Problem(
                    "unknown-setting",
                    f"{owner} has {setting}='{value}'",
                    f"it is one of: {', '.join(known)}",
                )
        yield from self._database.problems(owner)
        yield from self._key_problems(owner, record)

    def _key_problems(self, owner: str, record: Any) -> Iterator[Problem]:
        if self.mode == "upsert" and not self.keys:
            yield Problem(
                "no-keys", f"{owner} replaces rows, but not by any column", "pass keys=['id']"
            )
        if self.mode == "append" and self.keys:
            yield Problem(
                "keys-of-append",
                f"{owner} has keys={list(self.keys)}, but appends rows and replaces none",
                "pass mode='upsert', or leave the keys out",
            )
        fields = fields_of_record(record)
        if fields is None:
            yield Problem(
                "unknown-record",
                f"{owner} gets records of an unknown type ({typename(record)}), so it has no "
                "columns for them",
                "annotate what the step before the sink returns",
            )
        columns = [field.column for field in fields or ()]
        for key in self.keys:
            if fields and key not in columns:
                yield Problem(
                    "unknown-key",
                    f"{owner} replaces rows by '{key}', which is not a field of {typename(record)}",
                    f"it has: {', '.join(columns)}",
                )

    def check(self, name: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """Why a checkpoint must not write to this table; changes nothing."""

        def look(connection: Connection) -> Iterable[Problem]:
            held = self.ledger.read(connection)
            return ledger_problems(name, self.name, held, query_id, next_epoch)

        return self._looked(name, look)

    def schema_problems(self, name: str, record: Any) -> list[Problem]:
        """Why the table cannot hold records of a type, by the catalog."""
        fields = fields_of_record(record) or []

        def look(connection: Connection) -> Iterable[Problem]:
            table = read_table(connection, self.name)
            if table:
                return table_problems(name, table, fields, self.keys)
            definition = table_definition(self.name, fields, self.keys)
            return [] if self.create else [missing_table(name, self.name, definition)]

        return self._looked(name, look)

    def _looked(self, name: str, look: Callable[[Connection], Iterable[Problem]]) -> list[Problem]:
        """The problems that a query finds; retries if the server is unavailable, then raises."""
        try:
            return self._persist(name, f"read the catalog of {self.name}", lambda c: list(look(c)))
        except RefusedError as error:
            return list(error.problems)

    def prepare(self, name: str, record: Any) -> None:
        """Create the table if it is missing and `create` is set."""
        if self.create:
            fields = fields_of_record(record) or []
            self._persist(
                name,
                f"create table {self.name}",
                lambda connection: create_table(connection, self.name, fields, self.keys),
            )

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """By the buckets of the ledger; -1 if the table does not exist."""

        def look(connection: Connection) -> int | None:
            held = self.ledger.read(connection)
            if held is None or (held.query_id, held.sink) != (query_id, name):
                return None
            return held.newest_epoch if read_table(connection, self.name) else -1

        return self._persist(name, f"read the ledger of {self.name}", look)

    def generation(self, name: str) -> int:
        """The newest generation that claimed this table; 0 if none has."""
        held = self._persist(name, f"read the ledger of {self.name}", self.ledger.read)
        return held.generation if held else 0

    def claim(self, claim: Claim) -> None:
        """Write this generation to the ledger, which fences earlier ones; delete staged files."""
        self._persist(
            claim.sink,
            f"claim table {self.name}",
            lambda connection: self.ledger.claim(connection, claim),
        )
        for orphan in claim.staging.glob("*.rows"):
            orphan.unlink(missing_ok=True)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Make this checkpoint the owner; if not `keep`, delete all rows, in one transaction."""
        self._persist(
            claim.sink,
            f"take over table {self.name}",
            lambda connection: self.ledger.take_over(
                connection, claim, None if keep else self.name
            ),
        )

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> Written:
        """Commit rows with their ledger entries if released early, else stage them in a file."""
        if not buckets:
            return Written(claim.sink)
        owner = _owner(claim.sink)
        columns = known_table(self._database, self.name, claim).columns
        batches = list(row_batches_of(fields_of_record(record) or [], columns, buckets, owner))
        entries = tuple(
            LedgerEntry(bucket.label, len(bucket.orders), bucket.last_order) for bucket in buckets
        )
        if self.release == "early":
            self._show(claim, epoch, entries, batches)
            return Written(claim.sink)
        path = stage_row_batches(claim.staging, epoch, batches)
        return Written(claim.sink, str(path), entries)

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Commit what was staged with its ledger entries; skips what is committed already."""
        staged = [part for part in receipts if isinstance(part, Written) and part.path]
        if not staged:
            return
        paths = [Path(part.path) for part in sorted(staged, key=Written.last_order)]
        self._show(claim, epoch, _whole_buckets(staged), _Staged(paths))
        for path in paths:
            path.unlink(missing_ok=True)

    def released(self, claim: Claim, epoch: int) -> str | None:
        """By the ledger: rows and entries are committed together."""
        count = self._persist(
            claim.sink,
            f"read the ledger of {self.name}",
            lambda connection: self.ledger.buckets_at(connection, claim.query_id, epoch),
        )
        if not count:
            return None
        buckets = many(count, "bucket")
        return "all of it" if self.release == "commit" else f"the rows of {buckets}"

    def row_count(self, claim: Claim) -> int:
        """The number of rows written, by the ledger."""
        return self._persist(claim.sink, f"read the ledger of {self.name}", self.ledger.rows)

    def _show(
        self, claim: Claim, epoch: int, entries: Sequence[LedgerEntry], batches: Iterable[RowBatch]
    ) -> None:
        """Commit rows and ledger in one transaction; retries if the outcome is unknown."""
        table = known_table(self._database, self.name, claim)

        def work(connection: Connection) -> None:
            write_rows(connection, table, self.keys, self.ledger, claim, epoch, entries, batches)

        self._persist(claim.sink, f"write epoch {epoch} to {self.name}", work)

    @property
    def _database(self) -> Database:
        return Database(self.dsn, self.password_env, self.password_file)

    def _persist(self, sink: str, doing: str, work: Callable[[Connection], _T]) -> _T:
        return persist(self._database, _owner(sink), doing, work)


@dataclass(frozen=True)
class _Staged:
    """The batches of staged files, read lazily."""

    paths: Sequence[Path]

    def __iter__(self) -> Iterator[RowBatch]:
        for path in self.paths:
            yield from read_row_batches(path)


def _owner(sink: str) -> str:
    return f"sink '{sink}'"


def _whole_buckets(staged: Sequence[Written]) -> list[LedgerEntry]:
    """The ledger entry of each bucket; without an exchange, tasks share a bucket."""
    buckets: dict[int, LedgerEntry] = {}
    for entry in (entry for part in staged for entry in part.entries):
        before = buckets.get(entry.label, LedgerEntry(entry.label, 0, b""))
        last = max(before.last_order, entry.last_order)
        buckets[entry.label] = LedgerEntry(entry.label, before.rows + entry.rows, last)
    return list(buckets.values())
