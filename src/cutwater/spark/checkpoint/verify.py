"""Is a checkpoint intact? Checks every file of it that can be checked, without Spark.

=========================  ======================================================================
``cutwater.json``          matches its checksum
``sources/``               the entries of each log are intact and without gaps, as far as the
                           newest epoch needs them
``spark/offsets, commits`` match their checksums, can be parsed, and the newest have no gaps
``spark/state``            matches its checksums; each partition has what the newest epoch needs: a
                           snapshot with its tables, and the changelogs since
ledgers                    belong to this checkpoint, and are neither ahead of it nor behind
=========================  ======================================================================

A run checks all but the states before it starts, since these may be large. If Spark fails to load
a state, they are checked as well, to name the damaged file.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutwater.errors import CutwaterError, Problem, RefusedError
from cutwater.spark.checkpoint.checksums import why_altered
from cutwater.spark.checkpoint.compatibility import Identity
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.checkpoint.sink_records import changed_outputs, output_problems
from cutwater.spark.checkpoint.store import Checkpoint, no_checkpoint
from cutwater.spark.connectors.base.side_outputs import (
    bad_records_sink,
    late_events_sink,
    side_output_folder,
)
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import Chunk
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.storage.durable import parse_json
from cutwater.spark.storage.entry_log import EntryLog

__all__ = ["RESTORE", "Looking", "Verified", "damages_of_logs", "verify_checkpoint"]

_NO_SNAPSHOT = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,  # an offset in it points outside the file
    EOFError,
    NotImplementedError,  # an unknown compression method
    RuntimeError,  # a flag says that it is encrypted
    KeyError,
    ValueError,
    IndexError,
    TypeError,
    AttributeError,
)
"""What a damaged archive, and the files in it, may raise."""

RESTORE = (
    "restore the whole checkpoint from a backup; without one, start with a new checkpoint and an "
    "empty output"
)
"""The hint where a file does not match its checksum."""

_NEWEST = 3
"""The newest epochs that must be present without a gap: the two that a restart reads, and one more.

Spark deletes older ones in no particular order, so that a kill may leave gaps, which are harmless.
"""


@dataclass(frozen=True)
class Verified:
    """What was found in a checkpoint."""

    flow: str
    """Empty if the identity of the checkpoint cannot be read."""
    files: int
    """How many files were checked."""
    problems: list[Problem] = field(default_factory=list)
    """Empty: the checkpoint is intact."""


def verify_checkpoint(
    checkpoint: Checkpoint, sinks: Mapping[str, SinkConnector] | None = None
) -> Verified:
    """Check every file of a checkpoint of micro-batches, and the ledgers of sinks.

    Read-only. Files come and go while a run is active, so verify a checkpoint at rest.
    """
    looking = Looking(checkpoint)
    identity = looking.identity()
    looking.logs(identity)
    looking.states(identity)
    looking.ledgers(identity, sinks or {})
    return looking.verified(identity)


def damages_of_logs(checkpoint: Checkpoint) -> list[Problem]:
    """What is wrong with the logs of a checkpoint: all that can be known before a start."""
    looking = Looking(checkpoint)
    looking.logs(looking.identity())
    return looking.problems


class Looking:
    """Checks the files of a checkpoint, and collects what is wrong with them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        if not checkpoint.root.is_dir() or not any(checkpoint.root.iterdir()):
            raise RefusedError(no_checkpoint(checkpoint))
        self._checkpoint = checkpoint
        self.files = 0
        self.problems: list[Problem] = []

    def verified(self, identity: Identity | None) -> Verified:
        """The result."""
        return Verified(identity.flow if identity else "", self.files, self.problems)

    # --- our own files ---------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        """The identity of the checkpoint; None if it is damaged."""
        self.files += 1
        try:
            found = self._checkpoint.identity()
        except CutwaterError as error:
            self.problems += error.problems
            return None
        if found is None:
            self.problems += [no_checkpoint(self._checkpoint)]
        return found

    def logs(self, identity: Identity | None) -> None:
        """Check the logs of the sources, and those of Spark."""
        metadata = self._checkpoint.spark / "metadata"
        if metadata.exists():
            self._file(metadata, "Spark's name of the query", _json_lines)
        offsets, commits = self._numbered("offsets"), self._numbered("commits")
        self._follow_one_another(offsets, commits)
        needed: dict[str, int] = {}
        for number, path in offsets.items():
            sources = self._file(path, "Spark's offset log", _offsets)
            if identity is not None and sources is not None:
                needed.update(self._entries(identity, path, number, sources))
        for number, path in commits.items():
            is_newest = number == max(commits)
            self._file(path, "Spark's commit log", _commit, _commit_hint(path, is_newest))
        for name, newest in needed.items():
            self._source(name, newest)

    def _entries(
        self, identity: Identity, path: Path, number: int, found: list[Any]
    ) -> dict[str, int]:
        """For each of our logs, the newest entry that an epoch reads."""
        names = sorted(identity.sources)
        expected = len(names) + len(identity.logs)
        if len(found) != expected:
            reason = f"has {len(found)} sources, and the flow has {expected}"
            self.damage(path, "Spark's offset log", reason, RESTORE)
            return {}
        pairs = zip(names, found, strict=False)  # the logs of a loop come after the sources
        return {n: data["entry"] for n, data in pairs if isinstance(data, dict) and "entry" in data}

    def _source(self, name: str, needed: int) -> None:
        folder = self._checkpoint.root / "sources" / name
        try:
            log = EntryLog(folder, LOG, _read_chunks)
        except CutwaterError as error:
            self.problems += error.problems
            return
        except (TypeError, ValueError, AttributeError) as error:
            self.damage(folder, LOG, f"has an invalid entry: {error}", RESTORE)
            return
        self.files += sum(1 for _ in folder.rglob("*.json*"))
        if log.newest < needed:
            message = f"ends with entry {log.newest}, but an epoch has read up to entry {needed}"
            self.damage(folder, LOG, message, RESTORE)

    # --- Spark's logs ----------------------------------------------------------------------------

    def _numbered(self, log: str) -> dict[int, Path]:
        folder = self._checkpoint.spark / log
        found = folder.iterdir() if folder.is_dir() else iter(())
        return {int(p.name): p for p in sorted(found, key=lambda p: p.name) if p.name.isdigit()}

    def _follow_one_another(self, offsets: dict[int, Path], commits: dict[int, Path]) -> None:
        for log, found in (("offsets", offsets), ("commits", commits)):
            missing = _gaps(found)
            if missing:
                path = self._checkpoint.spark / log / str(missing[0])
                self.damage(path, f"Spark's log of {log}", "is missing", RESTORE)
        begun, finished = max(offsets, default=-1), max(commits, default=-1)
        if finished > begun:
            path = self._checkpoint.spark / "offsets" / str(finished)
            self.damage(path, "Spark's offset log", "is missing; the epoch is finished", RESTORE)
        elif begun > finished + 1 and not (finished < 0 and min(offsets) > 0):
            path = self._checkpoint.spark / "commits" / str(begun - 1)
            message = f"is missing; epoch {begun} has begun"
            self.damage(path, "Spark's commit log", message, RESTORE)

    def _file(
        self, path: Path, what: str, read: Callable[[str], Any], hint: str = RESTORE
    ) -> Any | None:
        """The parsed content of a file; None if it is damaged."""
        self.files += 1
        try:
            why = why_altered(path)
            if why is None:
                return read(path.read_text())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"its content is invalid: {error}"
        self.damage(path, what, f"is damaged: {why}", hint)
        return None

    # --- states ----------------------------------------------------------------------------------

    def states(self, identity: Identity | None) -> None:
        """Check the state of the newest finished epoch, and every other state file."""
        known = len(self.problems)
        for path in sorted((self._checkpoint.spark / "state").rglob("*")):
            if path.is_file() and path.suffix not in (".crc", ".tmp"):
                self.files += 1
                why = why_altered(path)
                if why is not None:
                    self.damage(path, "the file of a state", f"is damaged: {why}", RESTORE)
        finished = self._checkpoint.finished_epochs()
        if len(self.problems) == known and finished and identity and identity.levels:
            self._chains(finished[-1])

    def _unzipped(self, path: Path) -> str | None:
        """What is wrong with a snapshot, which refers to tables stored beside it."""
        try:
            with zipfile.ZipFile(path) as archive:
                broken = archive.testzip()
                if broken:
                    return f"{broken} in it does not match its checksum"
                data = parse_json(archive.read("metadata").decode().split("\n", 1)[1])
                for table in data.get("sstFiles", []):
                    there = path.parent / "SSTs" / table["dfsSstFileName"]
                    if not there.exists() or there.stat().st_size != table["sizeBytes"]:
                        return f"{there}, which it needs, is missing or has another length"
        except _NO_SNAPSHOT as error:
            return f"it is not a snapshot: {error}"
        return None

    def _chains(self, epoch: int) -> None:
        """Each partition must have the state of an epoch: a snapshot, and all changelogs since."""
        versions = {e + 1: self._names_of_states(e) for e in self._checkpoint.finished_epochs()}
        for operator, partitions in versions[epoch + 1].items():
            for partition in range(len(partitions)):
                self._chain(epoch + 1, versions, operator, partition)

    def _chain(
        self, newest: int, versions: Mapping[int, Mapping[str, Any]], operator: str, partition: int
    ) -> None:
        folder = self._checkpoint.spark / "state" / operator / str(partition)
        for version in range(newest, 0, -1):
            names = versions.get(version, {}).get(operator)
            if names is None or partition >= len(names):
                return  # older than the commit log
            found = folder / f"{version}_{names[partition]}.zip"
            if found.exists():
                why = self._unzipped(found)
                if why is not None:
                    self.damage(found, "the snapshot of a state", f"is damaged: {why}", RESTORE)
                return
            changes = found.with_suffix(".changelog")
            if not changes.exists():
                message = f"is missing: partition {partition} needs it for epoch {newest - 1}"
                self.damage(changes, "the file of a state", message, RESTORE)
                return

    def _names_of_states(self, epoch: int) -> dict[str, list[str]]:
        """For each operator, the name of the newest state of each partition."""
        try:
            text = (self._checkpoint.spark / "commits" / str(epoch)).read_text()
            data = parse_json(text.split("\n", 1)[1]).get("stateUniqueIds") or {}
            found = {number: [ids[0] for ids in parts] for number, parts in data.items()}
        except (OSError, ValueError, IndexError, TypeError, AttributeError, KeyError):
            return {}
        names = [*found, *(name for parts in found.values() for name in parts)]
        return found if all(map(_is_name, names)) else {}

    # --- ledgers ---------------------------------------------------------------------------------

    def ledgers(self, identity: Identity | None, sinks: Mapping[str, SinkConnector]) -> None:
        """Check the ledgers of sinks, of side outputs and of the logs of loops."""
        if identity is None:
            return
        every = {**dict(self._side_outputs(identity)), **sinks}
        for name, sink in every.items():
            self.files += 1
            try:
                found = output_problems(self._checkpoint, name, sink, identity.query_id)
                self.problems += found or changed_outputs(
                    self._checkpoint.root, name, sink, identity.query_id
                )
            except CutwaterError as error:
                self.problems += error.problems

    def _side_outputs(self, identity: Identity) -> Iterator[tuple[str, SinkConnector]]:
        for name in identity.logs:
            yield name, Folder(str(self._checkpoint.root / side_output_folder(name)))
        for kind, named in (("bad-records", bad_records_sink), ("late-events", late_events_sink)):
            for name in identity.sources:
                folder = self._checkpoint.root / kind / name
                if folder.is_dir():
                    yield named(name), Folder(str(folder))

    def damage(self, path: Path, what: str, message: str, hint: str = RESTORE) -> None:
        """Record what is wrong with a file."""
        self.problems.append(Problem("damaged-file", f"{what} {path} {message}", hint))


def _is_name(found: Any) -> bool:
    """Can it be a file name, or a part of one?"""
    return isinstance(found, str) and re.fullmatch(r"[\w-]{1,100}", found) is not None


def _gaps(found: Collection[int]) -> list[int]:
    """The epochs that are missing among the newest."""
    newest = max(found, default=-1)
    oldest = max(min(found, default=0), newest - _NEWEST + 1)
    return sorted(set(range(oldest, newest)) - set(found))


def _read_chunks(kept: list[dict[str, Any]]) -> None:
    for chunk in kept:
        Chunk.of_json(chunk)


def _json_lines(text: str) -> Any:
    return [parse_json(line) for line in text.splitlines()]


def _offsets(text: str) -> list[Any]:
    """The offset of each source; None where nothing was read yet."""
    version, about, *sources = text.splitlines()
    if not re.fullmatch(r"v\d+", version) or not isinstance(parse_json(about), dict):
        raise ValueError("it does not begin like an offset log")
    offsets = [None if source == "-" else parse_json(source) for source in sources]
    for offset in offsets:
        if isinstance(offset, dict) and type(offset.get("entry", 0)) is not int:
            raise ValueError(f"its entry is {offset['entry']!r}, which is not a number")
    return offsets


def _commit(text: str) -> Any:
    version, *about = text.splitlines()
    if not re.fullmatch(r"v\d+", version) or not about:
        raise ValueError("it does not begin like a commit log")
    return [parse_json(line) for line in about]


def _commit_hint(path: Path, is_newest: bool) -> str:
    if not is_newest:
        return RESTORE
    return (
        f"delete {path} and {path.with_name(f'.{path.name}.crc').name} beside it, and run again: "
        "the epoch is replayed, without duplicates"
    )
