"""The folder sink: publishes an epoch by one atomic rename of a directory.

::

    out/
      epoch=0/part-00000.jsonl      what readers see: whole epochs, each once (or .parquet)
              _manifest.json        rows and last order of each bucket, published with them
      epoch=1/…
      _cutwater/ledger.json         the owner of this output, the newest generation, and the number
                                    of its first epoch if another checkpoint owned it before
      _cutwater/newest.json         the newest epoch, which stays when readers delete epochs
      _cutwater/staging/G-Q/        files of epochs that are not published yet, of generation G of
                                    the runs of checkpoint Q

Readers commonly ignore names that begin with an underscore. A run that claims the output moves the
folders of other runs out of staging, each by one rename. All that a run stages and gathers is in
its own folder, so a fenced run has nothing left to publish, however far it was.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cutwater.annotations import fields_of, typename
from cutwater.endings import kind_of_errno
from cutwater.errors import Problem, RefusedError, many
from cutwater.spark.connectors.base.merging import in_order
from cutwater.spark.connectors.base.parquet_rows import parquet_column_problems, write_parquet
from cutwater.spark.connectors.base.refusals import (
    ANOTHER_CHECKPOINT,
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
    fenced,
    refuse_if_claimed,
)
from cutwater.spark.exchange.columns import Records
from cutwater.spark.storage.durable import (
    create_file,
    make_folder,
    read_json,
    sync_file,
    sync_folder,
    why_unwritable,
    write_json,
)
from cutwater.spark.storage.local_paths import impossible, is_url
from cutwater.spark.storage.notes import read_note, write_note

__all__ = ["FOLDER_LEDGER_FORMAT", "Folder", "StagedPart"]

FOLDER_LEDGER_FORMAT = 1

_SUFFIXES = {"jsonl": ".jsonl", "parquet": ".parquet"}


@dataclass(frozen=True)
class StagedPart(Receipt):
    """The file that a task attempt staged for one sink, not yet published."""

    path: str
    buckets: tuple[tuple[int, int, str], ...]
    """Label, rows and last order (as hex) of each bucket in the file."""

    def last_order(self) -> str:
        """The order of the last row, as hex; the parts of an epoch are sorted by it."""
        return max((last for _, _, last in self.buckets), default="")


@dataclass(frozen=True)
class Folder(SinkConnector):
    """A folder of JSON lines or Parquet, with one directory per epoch."""

    path: str
    format: str = "jsonl"
    """``"jsonl"``: lines of JSON; ``"parquet"``: one column per field."""
    accepts: Literal["lines", "records"] = field(default="lines", init=False)
    release: Release = field(default="commit", init=False)

    def __post_init__(self) -> None:
        if not is_url(self.path):
            object.__setattr__(self, "path", str(Path(self.path).absolute()))
        if self.format == "parquet":
            object.__setattr__(self, "accepts", "records")

    def guarantee(self) -> Guarantee:
        """Exactly-once."""
        return Guarantee(EXACTLY_ONCE, "publishes an epoch by renaming a directory")

    def problems(self, name: str, record: Any) -> Iterator[Problem]:
        """Why it cannot work: an object store, an unknown format, records without columns."""
        if is_url(self.path):
            yield _object_store(name, self.path)
        yield from impossible(f"the folder of sink '{name}'", self.path)
        if self.format not in _SUFFIXES:
            yield _unknown_format(name, self.format)
        if self.format == "parquet":
            yield from parquet_column_problems(name, record)
            yield from _epoch_twice(name, record)

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.root.resolve())

    @property
    def root(self) -> Path:
        """The folder."""
        return Path(self.path)

    @property
    def _ledger(self) -> Path:
        return self.root / "_cutwater" / "ledger.json"

    @property
    def _newest(self) -> Path:
        return self.root / "_cutwater" / "newest.json"

    @property
    def _staging(self) -> Path:
        return self.root / "_cutwater" / "staging"

    def _own_staging(self, claim: Claim) -> Path:
        """Where one run stages; only `claim` creates it, so that a fenced run cannot."""
        return self._staging / f"{claim.generation}-{claim.query_id}"

    def directory(self, number: int) -> Path:
        """The directory of an epoch, by its number among all epochs of the folder."""
        return self.root / f"epoch={number}"

    def published(self) -> list[int]:
        """The epochs that readers see."""
        try:
            names = [path.name for path in self.root.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name[6:]) for name in names if _is_epoch(name))

    def check(self, sink: str, query_id: str | None, next_epoch: int) -> list[Problem]:
        """Why this checkpoint must not write to the folder; changes nothing.

        `query_id` is None for a checkpoint that does not exist yet; `next_epoch` is the first
        epoch that the checkpoint has not planned.
        """
        hindrance = why_unwritable(self.root)
        if hindrance:
            return [unwritable(sink, self.root, hindrance)]
        ledger = read_json(self._ledger, "the ledger")
        published = self.published()
        if ledger is None:
            return [_foreign_output(sink, self.root)] if published else []
        if ledger.get("format") != FOLDER_LEDGER_FORMAT:
            return [
                other_format(sink, str(self._ledger), ledger.get("format"), FOLDER_LEDGER_FORMAT)
            ]
        files = ledger.get("files", "jsonl")
        schema_problems = [_other_files(sink, self.root, files, self.format)] * (
            files != self.format
        )
        if ledger["query_id"] != query_id:
            shows = f"has {many(len(published), 'epoch')} of it"
            return [other_checkpoint(sink, str(self.root), shows), *schema_problems]
        if ledger["sink"] != sink:
            return [other_sink(sink, str(self.root), ledger["sink"])]
        beyond = _first(ledger) + next_epoch
        is_whole = "takes_over" not in ledger  # else epochs are another's until `claim`
        if not schema_problems and is_whole and published and published[-1] >= beyond:
            return [ahead(sink, str(self.root), published[-1], beyond)]
        return schema_problems

    def newest_epoch(self, name: str, query_id: str) -> int | None:
        """By the directories, and by a note that outlives deleted ones."""
        ledger = read_json(self._ledger, "the ledger")
        if ledger is None or (ledger["query_id"], ledger["sink"]) != (query_id, name):
            return None
        note = read_note(self._newest)
        noted = note.get("epoch") if note.get("query_id") == query_id else None
        return max(
            noted if isinstance(noted, int) else -1,
            *(number - _first(ledger) for number in self.published()),
            -1,
        )

    def generation(self, name: str) -> int:
        """The newest generation that claimed this output; 0 if none has."""
        ledger = read_json(self._ledger, "the ledger")
        return int(ledger["generation"]) if ledger else 0

    def claim(self, claim: Claim) -> None:
        """Write this generation to the ledger, which fences earlier ones; delete orphaned files."""
        with self._writing(claim):
            make_folder(self._staging)
            held = read_json(self._ledger, "the ledger") or {}
            refuse_if_claimed(str(self.root), claim, held)
            began = {name: held[name] for name in ("first", "takes_over") if name in held}
            self._enter(claim, **began)
            self._sweep()
            if "takes_over" in began:
                self._enter(claim, first=self._begin_behind_others(began["takes_over"]))
            self._own_staging(claim).mkdir(mode=0o700)
            sync_folder(self._staging)

    def take_over(self, claim: Claim, *, keep: bool) -> None:
        """Fence the other checkpoint; `claim` then keeps or deletes its epochs."""
        with self._writing(claim):
            held = read_json(self._ledger, "the ledger") or {}
            if held.get("query_id") != claim.query_id:
                self._enter(claim, takes_over="adopt" if keep else "fresh")

    def _enter(self, claim: Claim, **more: Any) -> None:
        files = {"files": self.format}
        write_json(self._ledger, claim.as_ledger(FOLDER_LEDGER_FORMAT) | files | more)

    def _begin_behind_others(self, way: str) -> int:
        """The number of the first epoch of this checkpoint, which has published nothing yet.

        The staging folder of the other checkpoint is gone, so it publishes nothing more. If its
        epochs are to be deleted, they disappear one by one, each atomically.
        """
        published = self.published()
        if way == "fresh":
            for epoch in published:
                self.directory(epoch).rename(self._staging / f"gone-{uuid.uuid4().hex}")
            sync_folder(self.root)
            self._sweep()
        return published[-1] + 1 if published else 0

    @contextlib.contextmanager
    def _writing(self, claim: Claim) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise kind_of_errno(error.errno)(unwritable(claim.sink, self.root, why)) from None

    def _sweep(self) -> None:
        """Delete what earlier runs staged.

        A zombie may still be publishing: its folder is moved by one rename before it is emptied, so
        that an epoch is published whole or not at all.
        """
        for orphan in list(self._staging.iterdir()):
            doomed = self._staging / f"swept-{uuid.uuid4().hex}"
            with contextlib.suppress(FileNotFoundError):
                orphan.rename(doomed)
                shutil.rmtree(doomed) if doomed.is_dir() else doomed.unlink()

    def write(
        self, claim: Claim, epoch: int, record: Any, buckets: Sequence[BucketRows]
    ) -> StagedPart:
        """Stage rows where no reader looks."""
        path = self._own_staging(claim) / f"{epoch}-{uuid.uuid4().hex}{_SUFFIXES[self.format]}"
        values = in_order(buckets)
        with self._fencing(claim, epoch), create_file(path) as file:
            if isinstance(values, Records):
                write_parquet(file, claim.sink, record, values)
            else:
                file.writelines(values)
            sync_file(file)
        message = tuple(
            (bucket.label, len(bucket.orders), bucket.last_order.hex()) for bucket in buckets
        )
        return StagedPart(claim.sink, str(path), message)

    def publish(self, claim: Claim, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Publish an epoch atomically; one that is published already stays as it is."""
        staged = [receipt for receipt in receipts if isinstance(receipt, StagedPart)]
        target = self.directory(self._check_fence(claim, epoch) + epoch)
        if staged and target.exists():
            _refuse_of_another(claim, target)
        elif staged:
            with self._fencing(claim, epoch):
                self._show(claim, epoch, staged, target)
        if staged:
            write_note(self._newest, {"query_id": claim.query_id, "epoch": epoch})
        for part in staged:
            Path(part.path).unlink(missing_ok=True)

    def _show(self, claim: Claim, epoch: int, staged: Sequence[StagedPart], target: Path) -> None:
        """Gather the parts of an epoch in a directory of this run, and rename it to `target`."""
        whole = self._own_staging(claim) / f"{target.name}.{uuid.uuid4().hex}"
        whole.mkdir(mode=0o700)
        for number, part in enumerate(sorted(staged, key=StagedPart.last_order)):
            Path(part.path).rename(whole / f"part-{number:05d}{_SUFFIXES[self.format]}")
        manifest = {
            "query_id": claim.query_id,
            "generation": claim.generation,
            "epoch": epoch,
            "rows": sum(rows for part in staged for _, rows, _ in part.buckets),
            "buckets": _whole_buckets(staged),
        }
        write_json(whole / "_manifest.json", manifest)
        try:
            whole.rename(target)
        except OSError:
            if not target.exists():
                raise
            _refuse_of_another(claim, target)
        sync_folder(self.root)

    @contextlib.contextmanager
    def _fencing(self, claim: Claim, epoch: int) -> Iterator[None]:
        """Raise `FencedError` for a missing file if a newer run has claimed the output."""
        try:
            yield
        except FileNotFoundError:
            self._check_fence(claim, epoch)
            raise

    def released(self, claim: Claim, epoch: int) -> str | None:
        """All of the epoch if its directory exists, else None."""
        first = _first(read_json(self._ledger, "the ledger") or {})
        folder = self.directory(first + epoch)
        if not folder.exists():
            return None
        return f"all of it, {many((_manifest(folder) or {}).get('rows', 0), 'row')}"

    def row_count(self, claim: Claim) -> int:
        """The number of rows of this checkpoint that readers see, by the manifests."""
        first = _first(read_json(self._ledger, "the ledger") or {})
        own = [epoch for epoch in self.published() if epoch >= first]
        found = (_manifest(self.directory(epoch)) for epoch in own)
        return sum(manifest["rows"] for manifest in found if manifest)

    def _check_fence(self, claim: Claim, epoch: int) -> int:
        """The number of this checkpoint's first epoch; raises `FencedError` if it was fenced."""
        ledger = read_json(self._ledger, "the ledger") or {}
        held = (ledger.get("query_id"), ledger.get("generation"))
        if held != (claim.query_id, claim.generation):
            raise fenced(epoch, str(self.root), claim, ledger.get("generation"))
        return _first(ledger)


def _first(ledger: dict[str, Any]) -> int:
    """The number of a checkpoint's first epoch; above 0 if it took over from another."""
    return int(ledger.get("first", 0))


def _manifest(folder: Path) -> dict[str, Any] | None:
    found: dict[str, Any] | None = read_json(folder / "_manifest.json", "the manifest")
    return found


def _refuse_of_another(claim: Claim, folder: Path) -> None:
    """Raise `RefusedError` if another checkpoint published the epoch: this one would be lost."""
    manifest = _manifest(folder)
    if manifest and manifest["query_id"] != claim.query_id:
        raise RefusedError(
            Problem(
                ANOTHER_CHECKPOINT,
                f"sink '{claim.sink}' cannot publish {folder}: another checkpoint has published "
                "an epoch there meanwhile",
                f"stop the run of the other checkpoint, move {folder.name} away, and run again",
            )
        )


def _whole_buckets(staged: Sequence[StagedPart]) -> dict[int, tuple[int, str]]:
    """Rows and last order of each bucket; without an exchange, tasks share a bucket."""
    buckets: dict[int, tuple[int, str]] = {}
    for label, rows, last in (bucket for part in staged for bucket in part.buckets):
        before = buckets.get(label, (0, ""))
        buckets[label] = (before[0] + rows, max(before[1], last))
    return buckets


def _is_epoch(name: str) -> bool:
    return name.startswith("epoch=") and name[6:].isdigit()


def _object_store(sink: str, path: str) -> Problem:
    return Problem(
        "object-store",
        f"sink '{sink}' goes to {path}; a folder publishes an epoch by one rename, which an object "
        "store does not have",
        "use a Delta table there, which commits by its log: delta_table(...); or a folder of "
        "this machine",
    )


def _unknown_format(sink: str, found: str) -> Problem:
    return Problem(
        "unknown-choice",
        f"the format of sink '{sink}' is {found!r}; a folder has 'jsonl' or 'parquet'",
        "use one of these",
    )


def _epoch_twice(sink: str, record: Any) -> Iterator[Problem]:
    if "epoch" in (fields_of(record) or {}):
        yield Problem(
            "column-named-epoch",
            f"sink '{sink}' writes {typename(record)}, which has a field 'epoch'; readers of "
            "Parquet make a column of that name of the folders epoch=0, epoch=1, …",
            "rename the field, or write JSON lines",
        )


def _other_files(sink: str, root: Path, found: str, wanted: str) -> Problem:
    return Problem(
        "another-format",
        f"sink '{sink}' goes to {root}, whose files are {found}; now they would be {wanted}",
        f"keep format={found!r}, or choose an empty folder with a new checkpoint",
    )


def _foreign_output(sink: str, root: Path) -> Problem:
    return Problem(
        "foreign-output",
        f"sink '{sink}' goes to {root}, which has epochs but no ledger; what wrote them is unknown",
        "choose an empty folder, or move the old output away",
    )
