"""The state of an operator at an epoch: a snapshot and the changelogs after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.state_store.changelog_file import (
    Changelog,
    Version,
    read_changelog,
)
from cutwater.spark.checkpoint.state_store.formats import (
    DamagedStateError,
    UnknownFormatError,
    whole_bytes,
)
from cutwater.spark.checkpoint.state_store.rows import (
    ALL_LABELS,
    data_of,
    label_prefix,
    sequence_of,
)
from cutwater.spark.checkpoint.state_store.snapshot_file import read_snapshot
from cutwater.spark.exchange.bucket_hash import spark_hash
from cutwater.spark.storage.durable import parse_json

__all__ = ["StateStoreFiles"]

_Logs = dict[int, dict[int, bytes]]
"""The entries of each bucket's log, by label and then by number."""


class StateStoreFiles:
    """The state store of one operator, under Spark's own checkpoint."""

    def __init__(self, spark: Path, operator: int) -> None:
        self._spark = spark
        self._operator = operator

    def logs(self, epoch: int, labels: Collection[int] = ()) -> Iterator[_Logs]:
        """The logs at the end of an epoch, one partition at a time; of these buckets, or of all."""
        ids = self._unique_ids(epoch)
        for partition, unique_id in enumerate(ids):
            here = [label for label in labels if spark_hash(label) % len(ids) == partition]
            if here or not labels:
                with _failures_known(partition):
                    logs = self._partition(partition, Version(epoch + 1, unique_id), here)
                yield logs

    def _unique_ids(self, epoch: int) -> list[str]:
        """The attempt of each partition that the epoch committed."""
        try:
            _, text = whole_bytes(self._spark / "commits" / str(epoch)).split(b"\n", 1)
            stores = parse_json(text)["stateUniqueIds"][str(self._operator)]
            return [unique_id for (unique_id,) in stores]
        except (ValueError, KeyError, TypeError):
            raise UnknownFormatError(f"the commit of epoch {epoch} names no states") from None

    def _partition(self, partition: int, version: Version, labels: Collection[int]) -> _Logs:
        folder = self._spark / "state" / str(self._operator) / str(partition)
        prefixes = [label_prefix(label) for label in labels] or [ALL_LABELS]
        snapshot, changelogs = _path_to(folder, version)
        found: dict[bytes, bytes | None] = {}
        if snapshot:
            found.update(read_snapshot(folder / f"{snapshot.name}.zip", prefixes))
        for changelog in changelogs:
            found.update(changelog.changes)
        return _by_label(found, tuple(prefixes))


@contextmanager
def _failures_known(partition: int) -> Iterator[None]:
    """Turn any parser error, even RocksDB's plain ``Exception``, into `UnknownFormatError`."""
    try:
        yield
    except (DamagedStateError, UnknownFormatError, ImportError):
        raise
    except Exception as error:
        raise UnknownFormatError(f"partition {partition} of the state: {error}") from error


def _path_to(folder: Path, version: Version) -> tuple[Version | None, list[Changelog]]:
    """The newest snapshot that a version builds on, and the changelogs since, in order."""
    changelogs: list[Changelog] = []
    lineage = [version]
    while lineage:
        newest = lineage.pop()
        if (folder / f"{newest.name}.zip").exists():
            return newest, changelogs[::-1]
        changelogs.append(read_changelog(whole_bytes(folder / f"{newest.name}.changelog")))
        if newest == version:
            lineage = list(changelogs[0].lineage)
    if newest.version != 1:
        raise DamagedStateError(f"no snapshot in {folder} leads to version {version.version}")
    return None, changelogs[::-1]


def _by_label(found: dict[bytes, bytes | None], prefixes: tuple[bytes, ...]) -> _Logs:
    logs: dict[int, dict[int, Any]] = {}
    for key, value in found.items():
        if value is not None and key.startswith(prefixes):
            label, sequence = sequence_of(key)
            logs.setdefault(label, {})[sequence] = data_of(value)
    return logs
