"""The files of a Delta table that the sink writes and deletes, in a folder or an object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from cutwater.spark.storage.durable import create_file, parse_json, sync_file, sync_folder

__all__ = ["Files", "FolderFiles", "StoreFiles", "files_of"]

_NEWEST = "_last_checkpoint"


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
        """Sync the files, which the library does not do."""
        for address in addresses:
            with (self._root / Path(address).name).open("rb") as file:
                sync_file(file)

    def sync_log(self, after: int) -> None:
        """Sync the commits after a version, which the library does not do."""
        log = self._root / "_delta_log"
        version = after + 1
        while (path := log / f"{version:020}.json").exists():
            with path.open("rb") as file:
                sync_file(file)
            version += 1
        sync_folder(log)

    def sync_checkpoint(self) -> int:
        """Sync the newest checkpoint, which the library does not do."""
        log = self._root / "_delta_log"
        try:
            version = int(parse_json((log / _NEWEST).read_bytes())["version"])
        except (OSError, ValueError, KeyError, TypeError):  # readers can do without it
            return -1
        parts = list(log.glob(f"{version:020}.checkpoint*"))
        for path in (*parts, log / _NEWEST):
            with path.open("rb") as file:
                sync_file(file)
        sync_folder(log)
        return version if parts else -1


class StoreFiles:
    """Files in an object store, where a confirmed write is durable."""

    def __init__(self, url: str, options: dict[str, str] | None) -> None:
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
