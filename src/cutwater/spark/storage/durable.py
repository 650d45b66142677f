"""Writes files atomically and durably; only their owner may read them."""

from __future__ import annotations

import errno
import json
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

from cutwater.errors import Problem, RefusedError

__all__ = [
    "SYNC_LOG",
    "create_file",
    "damaged",
    "make_folder",
    "parse_json",
    "read_json",
    "sync_file",
    "sync_folder",
    "sync_path",
    "why_unwritable",
    "write_file",
    "write_json",
]


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, durably, for their owner only."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def create_file(path: Path) -> BinaryIO:
    """Open an empty file to write to, for its owner only."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


_SUM = "sum"

SYNC_LOG = "CUTWATER_SYNC_LOG"
"""The variable that names a file in which every sync is recorded, for tests of power losses."""


def write_file(path: Path, data: bytes, *, is_new: bool = False) -> None:
    """Write a file atomically and durably.

    With `is_new`, raises `FileExistsError` and changes nothing if it exists already.
    """
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    with create_file(fresh) as file:
        file.write(data)
        sync_file(file)
    if is_new:
        try:
            path.hardlink_to(fresh)
        finally:
            fresh.unlink()
    else:
        fresh.replace(path)
    sync_folder(path.parent)


def write_json(path: Path, value: dict[str, Any] | list[Any], *, is_new: bool = False) -> None:
    """Write JSON, durably, with a checksum as the last field of a dict or item of a list."""
    note = {_SUM: _sum(value)}
    if isinstance(value, dict):
        text = json.dumps({**value, **note}, indent=1)
    else:  # one is written in each epoch, and with an indent `dumps` is many times slower
        text = "[\n" + ",\n".join(json.dumps(item) for item in [*value, note]) + "\n]"
    write_file(path, text.encode() + b"\n", is_new=is_new)


def read_json(path: Path, what: str) -> Any | None:
    """What `write_json` wrote; None if there is no file; raises if it is damaged."""
    try:
        return _without_sum(parse_json(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise damaged(path, what, error) from None


def parse_json(data: bytes | str) -> Any:
    """The value of a JSON text; raises `ValueError` if it is invalid."""
    try:
        return json.loads(data.decode() if isinstance(data, bytes) else data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _without_sum(noted: Any) -> Any:
    """The value without its checksum, which must match."""
    value, note = noted, None
    if isinstance(noted, dict):
        value = {name: inner for name, inner in noted.items() if name != _SUM}
        note = noted.get(_SUM)
    elif isinstance(noted, list) and noted and _is_note(noted[-1]):
        value, note = noted[:-1], noted[-1][_SUM]
    if note != _sum(value):
        raise ValueError("its content does not match its checksum")
    return value


def _is_note(item: Any) -> bool:
    return isinstance(item, dict) and list(item) == [_SUM]


def _sum(value: Any) -> str:
    return xxhash.xxh64_hexdigest(json.dumps(value).encode())


def damaged(path: Path, what: str, error: Exception) -> RefusedError:
    """The problem of a file whose content is not what was written."""
    return RefusedError(
        Problem(
            "damaged-file",
            f"{what} {path} is damaged: {error}",
            "restore it from a backup together with the files beside it",
        )
    )


def why_unwritable(folder: Path) -> str | None:
    """Why a folder cannot be written to or made, as far as is known without trying.

    Raises `OSError` if its file system is read-only: a disk that failed becomes so.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if os.statvfs(there).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(there))
    if not there.is_dir():
        return "it is a file" if there == folder else f"{there} is a file"
    if not os.access(there, os.W_OK | os.X_OK):
        return "permission denied" if there == folder else f"permission denied in {there}"
    return None


def sync_file(file: BinaryIO) -> None:
    """Sync a file, so that it survives a crash of the machine."""
    file.flush()
    _sync(file.fileno(), file.name)


def sync_path(path: Path) -> None:
    """Sync a file that others wrote; one that has disappeared is ignored."""
    with suppress(FileNotFoundError):
        _sync_opened(path)


def sync_folder(path: Path) -> None:
    """Sync a folder, so that the names in it survive a crash."""
    _sync_opened(path)


def _sync_opened(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _sync(descriptor, path)
    finally:
        os.close(descriptor)


def _sync(descriptor: int, path: str | int | Path) -> None:
    """The only place that syncs, so that a test of power losses knows what is durable."""
    os.fsync(descriptor)
    if log := os.environ.get(SYNC_LOG):
        what = os.fstat(descriptor)
        entry = [time.time_ns(), str(path), what.st_ino, what.st_size, what.st_mtime_ns]
        with Path(log).open("a") as file:
            file.write(json.dumps(entry) + "\n")
