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
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from cutwater.errors import Problem, RefusedError
from cutwater.spark.connectors.base.sink import Claim, fenced, refuse_if_claimed
from cutwater.spark.connectors.delta.checks import schema_problems, unsupported_features
from cutwater.spark.connectors.delta.failures import first_line, kind_of_delta
from cutwater.spark.connectors.delta.files import files_of
from cutwater.spark.connectors.delta.restores import kept_epochs
from cutwater.spark.connectors.delta.torn_log import DamagedLog
from cutwater.spark.storage.durable import parse_json

if TYPE_CHECKING:
    from cutwater.spark.connectors.delta.sink import Delta, StagedFile

__all__ = ["ATTEMPTS", "DELTA_LEDGER_FORMAT", "DeltaLog"]

DELTA_LEDGER_FORMAT = 1
ATTEMPTS = 50
"""Attempts of a commit that loses races against other writers of the table."""

_LEDGER = "cutwater.ledger"
_CHECKPOINT_EVERY = 100
"""Epochs after which the log gets a checkpoint if nothing is compacted."""
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""No maintenance beside a commit: it would delete the log before its checkpoint is synced."""


class DeltaLog:
    """One table, as used by one sink; caches nothing between calls."""

    def __init__(self, settings: Delta, sink: str) -> None:
        self.path = settings.path
        self._settings = settings
        self._sink = sink
        self._options = settings.storage_options or None
        with self._speaking():
            self._files = files_of(settings.path, settings.is_local, self._options)

    def exists(self) -> bool:
        """Is there a table, apart from what a power loss tore?"""
        with self._speaking(), self._files.view() as path:
            return DeltaTable.is_deltatable(path, self._options)

    def create(self, schema: pa.Schema) -> None:
        """Create the table if it does not exist; its own settings bound how long files are kept.

        Syncs the log even if the table exists: a run that was killed may not have done so. Before
        that, what a power loss tore is set aside.
        """
        keep = self._settings.keep_hours
        settings = {
            "delta.logRetentionDuration": f"interval {keep} hours",
            # Files are deleted after `keep` hours, so the log must list them for longer.
            "delta.deletedFileRetentionDuration": f"interval {2 * keep + 1} hours",
        }
        with self._speaking():
            self._files.set_aside_torn()
            DeltaTable.create(
                self.path,
                schema,
                mode="ignore",
                configuration=settings,
                storage_options=self._options,
                commit_properties=CommitProperties(custom_metadata={"cutwater": {"made": True}}),
                post_commithook_properties=_NO_HOOKS,
            )
            self._undo_torn_compaction()
            self._files.sync_log(self._files.sync_checkpoint())

    def _undo_torn_compaction(self) -> None:
        """Undo a compaction whose files a power loss tore: those that it replaced are kept."""
        made = self._files.newest_compaction()
        if made is not None and not self._files.sync_whole(made.names):
            self._table().restore(made.version - 1, post_commithook_properties=_NO_HOOKS)

    def schema_problems(self, schema: pa.Schema) -> list[Problem]:
        """The columns in which the table and a schema differ."""
        with self._looking() as table:
            return list(schema_problems(self._sink, table, self.path, schema))

    def unsupported_features(self) -> list[Problem]:
        """Features of the table that its writers must support and this one does not."""
        with self._looking() as table:
            return list(unsupported_features(self._sink, table, self.path))

    def ledger(self) -> dict[str, Any] | None:
        """The owner of the table; None if it was never claimed."""
        with self._looking() as table:
            return _ledger_of(table)

    def newest_epoch(self, flow: str, sink: str, query_id: str) -> int:
        """The newest committed epoch of a checkpoint; -1 if none is."""
        with self._looking() as table:
            return _newest(table, _application(flow, sink, query_id))

    def newest_kept(self, flow: str, sink: str, query_id: str) -> int:
        """The newest committed epoch that no RESTORE has undone; -1 if none is."""
        with self._looking() as table:
            committed = _newest(table, _application(flow, sink, query_id))
            return kept_epochs(table, query_id, committed).epoch

    def rows(self, flow: str, sink: str, query_id: str) -> int:
        """The number of committed rows of a checkpoint."""
        with self._looking() as table:
            application = _application(flow, sink, query_id)
            return table.transaction_version(f"{application}/rows") or 0

    def claim(self, claim: Claim) -> None:
        """Write a generation to the metadata, which conflicts with all commits prepared before.

        Finishes a takeover. Raises `FencedError` if a newer generation has claimed the table.
        """

        def attempt(table: DeltaTable) -> None:
            held = _ledger_of(table) or {}
            refuse_if_claimed(self.path, claim, held)
            if held.get("takes_over") == "fresh":
                table.delete(post_commithook_properties=_NO_HOOKS)
            if "takes_over" in held:
                self.sweep(replace(claim, query_id=held["from"]), before_epoch=0)
            _enter(table, claim, _settling(table, claim))

        self._synced(attempt)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Write this checkpoint to the metadata, and what remains for `claim` to do."""

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
        # By hand: each attempt must read the table anew, and there is nothing to wait for. A lost
        # race means that another commit is done.
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
        if before < 0 or before // (every or _CHECKPOINT_EVERY) == epoch // (
            every or _CHECKPOINT_EVERY
        ):
            return
        try:
            self.keep_up(claim, epoch) if every else self._shorten_log()
        except Exception as error:  # the epoch is committed, and maintenance can wait
            logging.getLogger("cutwater").warning(
                "the Delta table %s was not compacted: %s", self.path, first_line(error)
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
        self._shorten_log()

    def _shorten_log(self) -> None:
        """Delete old entries of the log, when the checkpoint that replaces them is durable."""
        self._table().create_checkpoint()
        self._files.sync_checkpoint()
        self._table().cleanup_metadata()

    def _compact(self, claim: Claim, epoch: int) -> None:
        self._table().vacuum(
            self._settings.keep_hours,
            dry_run=False,
            enforce_retention_duration=False,
            post_commithook_properties=_NO_HOOKS,
        )
        self.sweep(claim, before_epoch=epoch + 1)
        properties = CommitProperties(custom_metadata={"cutwater": {"compacted": epoch}})
        table = self._table()
        before = set(table.file_uris())
        table.optimize.compact(commit_properties=properties, post_commithook_properties=_NO_HOOKS)
        self._files.sync(sorted(set(self._table().file_uris()) - before))

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
    def _looking(self) -> Iterator[DeltaTable]:
        """The table without what a power loss tore, for reading; changes nothing."""
        with self._speaking(), self._files.view() as path:
            yield DeltaTable(path, storage_options=self._options)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            yield
        except DamagedLog as error:
            raise RefusedError(_damaged(self._sink, self.path, error)) from None
        except (DeltaError, OSError) as error:
            raise kind_of_delta(error)(
                Problem(
                    "delta-failed",
                    f"sink '{self._sink}' cannot use the Delta table {self.path}: "
                    f"{first_line(error)}",
                    "check that it exists, is intact, and that you may read and write it; then run "
                    "again, which continues where this run ended",
                )
            ) from None


def _application(flow: str, sink: str, query_id: str) -> str:
    return f"cutwater/{flow}/{sink}/{query_id}"


def _ledger_of(table: DeltaTable) -> dict[str, Any] | None:
    text = table.metadata().configuration.get(_LEDGER)
    if not text:
        return None
    try:
        ledger = parse_json(text)
        if not isinstance(ledger, dict):
            raise ValueError("it is not a JSON object")
        is_known = ledger.get("format") == DELTA_LEDGER_FORMAT
        if is_known and not isinstance(ledger.get("generation"), int):
            raise ValueError("it names no generation")
    except ValueError as error:
        raise DamagedLog(f"the property {_LEDGER} is {text:.60}: {error}") from None
    return ledger


def _enter(
    table: DeltaTable, claim: Claim, properties: CommitProperties | None = None, **more: str
) -> None:
    ledger = json.dumps(claim.as_ledger(DELTA_LEDGER_FORMAT) | more)
    table.alter.set_table_properties(
        {_LEDGER: ledger},
        raise_if_not_exists=False,
        commit_properties=properties,
        post_commithook_properties=_NO_HOOKS,
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
                "cutwater": {
                    "query_id": claim.query_id,
                    "epoch": epoch,
                    "rows": rows,
                    "files": len(staged),
                }
            },
            app_transactions=[
                Transaction(application, epoch),
                Transaction(f"{application}/rows", total),
            ],
        ),
        post_commithook_properties=_NO_HOOKS,
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


def _damaged(sink: str, path: str, error: DamagedLog) -> Problem:
    return Problem(
        "damaged-table",
        f"sink '{sink}': the Delta table {path} is damaged: {error}",
        "restore the table from a backup, with the checkpoint of the same time",
    )
