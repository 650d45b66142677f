"""The log of a Delta table as a ledger: its owner, its newest epoch, and maintenance."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import xxhash
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    SchemaMismatchError,
    TableNotFoundError,
)
from deltalake.transaction import AddAction, RemoveAction

from cutwater.endings import kind_of_errno
from cutwater.errors import ConnectorError, CutwaterError, Problem, RefusedError, StepError
from cutwater.spark.connectors.base.sink import Claim, fenced, refuse_if_claimed
from cutwater.spark.connectors.delta.checks import hindrances, schema_problems
from cutwater.spark.connectors.delta.files import files_of
from cutwater.spark.connectors.delta.restores import kept_epochs

if TYPE_CHECKING:
    from cutwater.spark.connectors.delta.sink import Delta, StagedFile

__all__ = ["ATTEMPTS", "DELTA_LEDGER_FORMAT", "DeltaLog"]

DELTA_LEDGER_FORMAT = 1
ATTEMPTS = 50
"""Attempts of a commit that loses races against other writers of the table."""

_LEDGER = "cutwater.ledger"


class DeltaLog:
    """One table, as used by one sink; caches nothing between calls."""

    def __init__(self, settings: Delta, sink: str) -> None:
        self.path = settings.path
        self._settings = settings
        self._sink = sink
        self._options = settings.storage_options or None
        self._files = files_of(settings.path, settings.is_local, self._options)

    def exists(self) -> bool:
        """Is there a table?"""
        with self._speaking():
            return DeltaTable.is_deltatable(self.path, self._options)

    def create(self, schema: pa.Schema) -> None:
        """Create the table if it does not exist; its own settings bound how long files are kept.

        Syncs the log even if the table exists: a run that was killed may not have done so.
        """
        keep = self._settings.keep_hours
        settings = {
            "delta.logRetentionDuration": f"interval {keep} hours",
            # Files are deleted after `keep` hours, so the log must list them for longer.
            "delta.deletedFileRetentionDuration": f"interval {2 * keep + 1} hours",
        }
        with self._speaking():
            DeltaTable.create(
                self.path,
                schema,
                mode="ignore",
                configuration=settings,
                storage_options=self._options,
            )
            self._files.sync_log(self._files.sync_checkpoint())

    def schema_problems(self, schema: pa.Schema) -> list[Problem]:
        """The columns in which the table and a schema differ."""
        with self._speaking():
            return list(schema_problems(self._sink, self._table(), schema))

    def hindrances(self) -> list[Problem]:
        """Features of the table that its writers must support and this one does not."""
        with self._speaking():
            return list(hindrances(self._sink, self._table()))

    def ledger(self) -> dict[str, Any] | None:
        """The owner of the table; None if it was never claimed."""
        with self._speaking():
            return _ledger_of(self._table())

    def newest_epoch(self, flow: str, sink: str, query_id: str) -> int:
        """The newest committed epoch of a checkpoint; -1 if none is."""
        with self._speaking():
            return _newest(self._table(), _application(flow, sink, query_id))

    def newest_kept(self, flow: str, sink: str, query_id: str) -> int:
        """The newest committed epoch that no RESTORE has undone; -1 if none is."""
        with self._speaking():
            table = self._table()
            committed = _newest(table, _application(flow, sink, query_id))
            return kept_epochs(table, query_id, committed).epoch

    def rows(self, flow: str, sink: str, query_id: str) -> int:
        """The number of committed rows of a checkpoint."""
        with self._speaking():
            application = _application(flow, sink, query_id)
            return self._table().transaction_version(f"{application}/rows") or 0

    def claim(self, claim: Claim) -> None:
        """Write a generation to the metadata, which conflicts with all commits prepared before.

        Finishes a takeover. Raises `FencedError` if a newer generation has claimed the table.
        """

        def attempt(table: DeltaTable) -> None:
            held = _ledger_of(table) or {}
            refuse_if_claimed(self.path, claim, held)
            if held.get("takes_over") == "fresh":
                table.delete()
            if "takes_over" in held:
                self.sweep(replace(claim, query_id=held["from"]), before_epoch=0)
            _enter(table, claim, _settling(table, claim))

        self._synced(attempt)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Write another checkpoint to the metadata, and what is left for `claim` to do."""

        def attempt(table: DeltaTable) -> None:
            held = _ledger_of(table) or {}
            before = held.get("query_id", claim.query_id)
            if before == claim.query_id:
                return
            if not keep and table.metadata().configuration.get("delta.appendOnly") == "true":
                raise RefusedError(_append_only(self._sink, self.path))
            way = "adopt" if keep else "fresh"
            _enter(table, claim, **{"takes_over": way, "from": before})

        self._synced(attempt)

    def _synced(self, attempt: Callable[[DeltaTable], None]) -> None:
        version = self._until_committed(attempt)
        with self._speaking():
            self._files.sync_log(version)

    def write_file(
        self, claim: Claim, epoch: int, write: Callable[[BinaryIO], None]
    ) -> tuple[str, int]:
        """Write a new file, which no version names; returns its name and size."""
        name = f"{_prefix(claim)}-{claim.generation}-{epoch}-{uuid.uuid4().hex}.parquet"
        return name, self._files.write(name, write)

    def commit(self, claim: Claim, epoch: int, staged: Sequence[StagedFile]) -> None:
        """Add files to the table, in one version with the number of their epoch.

        Raises `FencedError` if the run was fenced, `RefusedError` if a RESTORE has undone epochs.
        """
        application = _application(claim.flow, claim.sink, claim.query_id)
        before = -1

        def attempt(table: DeltaTable) -> None:
            nonlocal before
            held = _ledger_of(table) or {}
            if (held.get("query_id"), held.get("generation")) != (claim.query_id, claim.generation):
                raise fenced(epoch, self.path, claim, held.get("generation"))
            before = _newest(table, application)
            kept = kept_epochs(table, claim.query_id, before).epoch
            if kept < before:
                raise RefusedError(_restored(self._sink, self.path, kept, before))
            if staged and before < epoch:
                _add(table, claim, epoch, staged)

        version = self._until_committed(attempt)
        if staged and before < epoch:
            self._files.sync_log(version)
            self._maybe_keep_up(claim, before, epoch)

    def _until_committed(self, attempt: Callable[[DeltaTable], None]) -> int:
        """Retry until no other commit interferes; returns the version it was based on."""
        with self._speaking():
            for left in reversed(range(ATTEMPTS)):
                table = self._table()
                version = table.version()  # before the attempt, which may advance the table
                try:
                    attempt(table)
                    break
                except CommitFailedError:
                    if not left:
                        raise
            return version

    def _maybe_keep_up(self, claim: Claim, before: int, epoch: int) -> None:
        every = self._settings.compact_every
        if not every or before < 0 or before // every == epoch // every:
            return
        try:
            self.keep_up(claim, epoch)
        except Exception as error:  # the epoch is committed, and maintenance can wait
            logging.getLogger("cutwater").warning(
                "the Delta table %s was not compacted: %s", self.path, _first_line(error)
            )

    def keep_up(self, claim: Claim, epoch: int) -> None:
        """Delete what the last compaction replaced, if it is old enough; then compact.

        In this order a file survives for the epochs between two compactions, however short
        `keep_hours` is. Only files that the log lists as removed are deleted: these never come
        back, so even a zombie may do it.
        """
        version = self._table().version()
        try:
            self._compact(claim, epoch)
        finally:
            self._files.sync_log(version)
        self._table().cleanup_metadata()

    def _compact(self, claim: Claim, epoch: int) -> None:
        self._table().vacuum(
            self._settings.keep_hours, dry_run=False, enforce_retention_duration=False
        )
        self.sweep(claim, before_epoch=epoch + 1)
        properties = CommitProperties(custom_metadata={"cutwater": {"compacted": epoch}})
        table = self._table()
        before = set(table.file_uris())
        table.optimize.compact(commit_properties=properties)
        table = self._table()
        self._files.sync(sorted(set(table.file_uris()) - before))
        table.create_checkpoint()
        self._files.sync_checkpoint()

    def sweep(self, claim: Claim, before_epoch: int) -> None:
        """Delete files that tasks of this checkpoint wrote and that were never committed.

        These are files of earlier generations, and of this one before an epoch: they cannot be
        committed any more. Files that were committed and removed since are left to `vacuum`.
        """
        with self._speaking():
            table = self._table()
            unnamed, removed = (
                table.vacuum(0, dry_run=True, enforce_retention_duration=False, full=is_full)
                for is_full in (True, False)
            )
        mine = (claim.generation, before_epoch)
        kept = set(removed)
        orphans = [n for n in unnamed if n not in kept and _is_before(n, _prefix(claim), mine)]
        self._files.delete(orphans)

    def _table(self) -> DeltaTable:
        return DeltaTable(self.path, storage_options=self._options)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            raise _kind(error)(
                Problem(
                    "delta-failed",
                    f"sink '{self._sink}' cannot use the Delta table {self.path}: "
                    f"{_first_line(error)}",
                    "check that it exists, is intact, and that you may read and write it; then run "
                    "again, which continues where this run ended",
                )
            ) from None


def _kind(error: Exception) -> type[CutwaterError]:
    """The class of an error; deltalake says little, so an unavailable store is the likeliest."""
    if isinstance(error, OSError) and error.errno is not None:
        return kind_of_errno(error.errno)
    if isinstance(error, TableNotFoundError):
        return RefusedError
    return StepError if isinstance(error, SchemaMismatchError) else ConnectorError


def _application(flow: str, sink: str, query_id: str) -> str:
    return f"cutwater/{flow}/{sink}/{query_id}"


def _ledger_of(table: DeltaTable) -> dict[str, Any] | None:
    text = table.metadata().configuration.get(_LEDGER)
    ledger: dict[str, Any] | None = json.loads(text) if text else None
    return ledger


def _enter(
    table: DeltaTable, claim: Claim, properties: CommitProperties | None = None, **more: str
) -> None:
    ledger = json.dumps(claim.as_ledger(DELTA_LEDGER_FORMAT) | more)
    table.alter.set_table_properties(
        {_LEDGER: ledger}, raise_if_not_exists=False, commit_properties=properties
    )


def _settling(table: DeltaTable, claim: Claim) -> CommitProperties | None:
    """Roll application transactions back to where a RESTORE left the table; None if they agree."""
    application = _application(claim.flow, claim.sink, claim.query_id)
    committed = _newest(table, application)
    kept = kept_epochs(table, claim.query_id, committed)
    if kept.epoch == committed:
        return None
    rows = (table.transaction_version(f"{application}/rows") or 0) - kept.lost_rows
    return CommitProperties(
        custom_metadata={"cutwater": {"query_id": claim.query_id, "epoch": kept.epoch}},
        app_transactions=[
            Transaction(application, kept.epoch),
            Transaction(f"{application}/rows", max(rows, 0)),
        ],
    )


def _newest(table: DeltaTable, application: str) -> int:
    version = table.transaction_version(application)
    return -1 if version is None else version


def _add(table: DeltaTable, claim: Claim, epoch: int, staged: Sequence[StagedFile]) -> None:
    application = _application(claim.flow, claim.sink, claim.query_id)
    rows = sum(file.rows for file in staged)
    total = (table.transaction_version(f"{application}/rows") or 0) + rows
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        AddAction(file.name, file.size, {}, now, True, json.dumps({"numRecords": file.rows}))
        for file in staged
    ]
    table.create_write_transaction(
        actions,
        "append",
        table.schema(),
        commit_properties=CommitProperties(
            custom_metadata={
                "cutwater": {"query_id": claim.query_id, "epoch": epoch, "rows": rows}
            },
            app_transactions=[
                Transaction(application, epoch),
                Transaction(f"{application}/rows", total),
            ],
        ),
    )


def _prefix(claim: Claim) -> str:
    return f"cutwater-{xxhash.xxh64_hexdigest(claim.query_id.encode())}"


def _is_before(name: str, prefix: str, mine: tuple[int, int]) -> bool:
    """Did a task write the file in an earlier generation, or before an epoch of this one?"""
    parts = name.removesuffix(".parquet").split("-")
    if "-".join(parts[:2]) != prefix or len(parts) != 5 or not (parts[2] + parts[3]).isdigit():
        return False
    return (int(parts[2]), int(parts[3])) < mine


def _restored(sink: str, path: str, kept: int, released: int) -> Problem:
    has = f"has them up to epoch {kept}" if kept >= 0 else "has none"
    return Problem(
        "output-behind",
        f"sink '{sink}' has released rows up to epoch {released}, and {path} {has}: a RESTORE has "
        "removed the others during the run, and they would stay missing",
        "restore the table to its newest version; or the checkpoint of the same time too; or "
        f"continue without these rows: --accept-gap {sink}",
    )


def _append_only(sink: str, path: str) -> Problem:
    return Problem(
        "append-only",
        f"sink '{sink}': fresh deletes all rows of {path}, whose delta.appendOnly forbids that",
        "take it over with --adopt, choose another table, or unset delta.appendOnly",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
