"""The files of a Delta table that the sink writes and deletes, in a folder or an object store."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from cutwater.spark.connectors.delta.torn_log import (
    LAST_CHECKPOINT,
    Compaction,
    is_parquet,
    newest_compaction,
    torn_files,
)
from cutwater.spark.storage.durable import create_file, parse_json, sync_file, sync_folder

__all__ = ["Files", "FolderFiles", "StoreFiles", "files_of"]

_LOG = "_delta_log"
_TORN = "_torn"
"""The folder for what was set aside; readers ignore names that begin with an underscore."""


class Files(Protocol):
    """The files of a table, by name; what is durable survives a crash of the machine."""

    def write(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """Write a new file durably; returns its size."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; some may be gone already."""

    def sync(self, addresses: Sequence[str]) -> None:
        """Make files durable that the library wrote."""

    def sync_log(self, after: int) -> None:
        """Make the commits after a version durable."""

    def sync_checkpoint(self) -> int:
        """Make the newest checkpoint of the log durable; returns its version, -1 if none."""

    def view(self) -> AbstractContextManager[str]:
        """The address of the table as it is without what a power loss tore; raises if damaged."""

    def set_aside_torn(self) -> None:
        """Move files of the log that a power loss tore out of it; raises if it is damaged."""

    def newest_compaction(self) -> Compaction | None:
        """The compaction that is the newest version, if a crash may have come before its sync."""

    def sync_whole(self, names: Sequence[str]) -> bool:
        """Make files durable, if they are whole; returns whether they all are."""


def files_of(path: str, is_local: bool, options: dict[str, str] | None) -> Files:
    """The files of a table."""
    return FolderFiles(Path(path)) if is_local else StoreFiles(path, options)


class FolderFiles:
    """Files in a folder, accessible to their owner only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """Write a new file durably; returns its size."""
        path = self._root / name
        with create_file(path) as file:
            write(file)
            sync_file(file)
            size = os.fstat(file.fileno()).st_size  # a run that takes over may delete it any time
        sync_folder(self._root)
        return size

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; some may be gone already."""
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def sync(self, addresses: Sequence[str]) -> None:
        """Sync the files and their names, which the library does not do."""
        for address in addresses:
            with (self._root / Path(address).name).open("rb") as file:
                sync_file(file)
        sync_folder(self._root)

    def sync_log(self, after: int) -> None:
        """Sync the commits after a version, which the library does not do."""
        log = self._root / _LOG
        version = after + 1
        while (path := log / f"{version:020}.json").exists():
            with path.open("rb") as file:
                sync_file(file)
            version += 1
        sync_folder(log)

    def sync_checkpoint(self) -> int:
        """Sync the newest checkpoint, which the library does not do."""
        log = self._root / _LOG
        try:
            version = int(parse_json((log / LAST_CHECKPOINT).read_bytes())["version"])
        except (OSError, ValueError, KeyError, TypeError):  # readers can do without it
            return -1
        parts = list(log.glob(f"{version:020}.checkpoint*"))
        for path in (*parts, log / LAST_CHECKPOINT):
            with path.open("rb") as file:
                sync_file(file)
        sync_folder(log)
        return version if parts else -1

    def view(self) -> AbstractContextManager[str]:
        """The table; or, while some of its log is torn, a folder with links to the rest of it."""
        torn = torn_files(self._root / _LOG)
        return self._without(torn) if torn else nullcontext(str(self._root))

    @contextmanager
    def _without(self, torn: Sequence[str]) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="cutwater-") as folder:
            log = Path(folder) / _LOG
            log.mkdir()
            for path in (self._root / _LOG).iterdir():
                if path.name not in torn:
                    (log / path.name).symlink_to(path.resolve())
            yield folder

    def set_aside_torn(self) -> None:
        """Move torn files out of the log, durably; the newest first, so that no gap appears."""
        log, aside = self._root / _LOG, self._root / _TORN
        for name in sorted(torn_files(log), reverse=True):
            aside.mkdir(mode=0o700, exist_ok=True)
            (log / name).replace(aside / f"{uuid.uuid4().hex}-{name}")
            sync_folder(log)

    def newest_compaction(self) -> Compaction | None:
        """By the log: a checkpoint is written when the files of a compaction are durable."""
        return newest_compaction(self._root / _LOG)

    def sync_whole(self, names: Sequence[str]) -> bool:
        """Sync the files of a compaction, if each can be read to its end."""
        paths = [self._root / name for name in names]
        if not all(is_parquet(path) for path in paths):
            return False
        self.sync(names)
        return True


class StoreFiles:
    """Files in an object store, where a confirmed write is durable."""

    def __init__(self, url: str, options: dict[str, str] | None) -> None:
        self._url = url
        handler: Any = DeltaStorageHandler(url, options)
        self._files = PyFileSystem(handler)

    def write(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """Write a new file; returns its size."""
        with self._files.open_output_stream(name) as file:
            write(file)
        return int(self._files.get_file_info(name).size)

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; some may be gone already."""
        for name in names:
            self._files.delete_file(name)

    def sync(self, addresses: Sequence[str]) -> None:
        """Does nothing: writes are durable."""

    def sync_log(self, after: int) -> None:
        """Does nothing: writes are durable."""

    def sync_checkpoint(self) -> int:
        """Does nothing and returns -1: writes are durable."""
        return -1

    def view(self) -> AbstractContextManager[str]:
        """The table: no write is lost."""
        return nullcontext(self._url)

    def set_aside_torn(self) -> None:
        """Does nothing: no write is torn."""

    def newest_compaction(self) -> Compaction | None:
        """None: writes are durable."""
        return None

    def sync_whole(self, names: Sequence[str]) -> bool:
        """Returns True: writes are durable."""
        return True
