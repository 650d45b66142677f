"""Has a file changed since it was planned? Checked by size, modification time and fingerprint.

A file that only grew still begins with what was read: if files grow, chunks carry a fingerprint of
that beginning.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from cutwater.endings import kind_of_errno
from cutwater.errors import CutwaterError, InputError, Problem
from cutwater.spark.connectors.base.source import Chunk

__all__ = [
    "cannot_be_read",
    "changed",
    "check_unchanged",
    "file_state_of",
    "is_beginning_kept",
    "sample_hash",
]

_SAMPLE_BYTES = 4 << 10
"""Bytes that a fingerprint covers, both of the beginning of a file and before its position."""


def file_state_of(found: os.stat_result) -> tuple[int, int]:
    """The size of a file, and its modification time in nanoseconds."""
    return found.st_size, found.st_mtime_ns


def sample_hash(path: str, end: int) -> str:
    """A hash of the first bytes of a file, and of the last ones before a position."""
    with Path(path).open("rb") as file:
        head = file.read(min(_SAMPLE_BYTES, end))
        file.seek(max(end - _SAMPLE_BYTES, 0))
        tail = file.read(min(_SAMPLE_BYTES, end))
    return xxhash.xxh64_hexdigest(head + b"\0" + tail)


def is_beginning_kept(about: Mapping[str, Any], found: os.stat_result) -> bool:
    """Does a file still begin with what was read, by the fingerprint of its chunk?"""
    if "print" not in about or found.st_size < about["size"]:
        return False
    return bool(sample_hash(about["path"], about["complete"]) == about["print"])


def check_unchanged(chunk: Chunk) -> None:
    """Raise `InputError` if what a chunk reads has changed since it was planned."""
    about = chunk.about
    try:
        now = Path(about["path"]).stat()
        if file_state_of(now) == (about["size"], about["modified_ns"]):
            return
        if is_beginning_kept(about, now):
            return
    except OSError as error:
        raise cannot_be_read(about["path"], error) from None
    raise InputError(changed(about["path"], about["size"], now.st_size))


def changed(path: str, size: int, size_now: int, *, grows: bool = False) -> Problem:
    """The message for a file that has changed."""
    rule = (
        "a file of a source that grows must only be appended to"
        if grows
        else "a file of a source must not change once it appears"
    )
    return Problem(
        "changed-file",
        f"{path} has changed since it was first seen ({size} bytes then, {size_now} now); {rule}",
        "restore it with its modification time; or, if it was read already, move it out of the "
        "folder and add the new content under another name; for logs that grow, set grows=True",
    )


def cannot_be_read(path: str, error: OSError) -> CutwaterError:
    """The error for a file that cannot be read: it is missing, or the machine fails."""
    problem = Problem(
        "unreadable-file",
        f"{path} cannot be read: {error.strerror or error}",
        "put it back, or start with a new checkpoint; files must stay until they are read",
    )
    return kind_of_errno(error.errno, InputError)(problem)
