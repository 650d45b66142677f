"""The files of a Delta table that we write and delete ourselves, in a folder or in a store."""

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
    """The files of a table, by their names in it."""

    def write(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """Make a file, for good; its size."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; some may be gone already."""

    def sync(self, addresses: Sequence[str]) -> None:
        """Make files that the library wrote survive a crash of the machine."""

    def sync_log(self, after: int) -> None:
        """Make what was committed after a version survive a crash of the machine."""

    def sync_checkpoint(self) -> int:
        """Make the newest sum of the log survive too; the version it goes up to, -1 if none is."""


def files_of(path: str, is_local: bool, options: dict[str, str] | None) -> Files:
    """The files of a table."""
    return FolderFiles(Path(path)) if is_local else StoreFiles(path, options)


class FolderFiles:
    """Files of a folder, for their owner only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """Make a file, for good; its size."""
        path = self._root / name
        with create_file(path) as file:
            write(file)
            sync_file(file)
            size = os.fstat(file.fileno()).st_size  # whoever takes over may sweep it at any time
        sync_folder(self._root)
        return size

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; some may be gone already."""
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def sync(self, addresses: Sequence[str]) -> None:
        """The library leaves this to the system."""
        for address in addresses:
            with (self._root / Path(address).name).open("rb") as file:
                sync_file(file)

    def sync_log(self, after: int) -> None:
        """The library that writes the log leaves this to the system."""
        log = self._root / "_delta_log"
        version = after + 1
        while (path := log / f"{version:020}.json").exists():
            with path.open("rb") as file:
                sync_file(file)
            version += 1
        sync_folder(log)

    def sync_checkpoint(self) -> int:
        """The library leaves this to the system."""
        log = self._root / "_delta_log"
        try:
            version = int(parse_json((log / _NEWEST).read_bytes())["version"])
        except (OSError, ValueError, KeyError, TypeError):  # readers do without it as well
            return -1
        parts = list(log.glob(f"{version:020}.checkpoint*"))
        for path in (*parts, log / _NEWEST):
            with path.open("rb") as file:
                sync_file(file)
        sync_folder(log)
        return version if parts else -1


class StoreFiles:
    """Files of an object store, which keeps what it has confirmed."""

    def __init__(self, url: str, options: dict[str, str] | None) -> None:
        handler: Any = DeltaStorageHandler(url, options)
        self._files = PyFileSystem(handler)

    def write(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """Make a file, for good; its size."""
        with self._files.open_output_stream(name) as file:
            write(file)
        return int(self._files.get_file_info(name).size)

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; some may be gone already."""
        for name in names:
            self._files.delete_file(name)

    def sync(self, addresses: Sequence[str]) -> None:
        """Nothing to do."""

    def sync_log(self, after: int) -> None:
        """Nothing to do."""

    def sync_checkpoint(self) -> int:
        """Nothing to do."""
        return -1
