"""Is a file still what it was when it was planned? Its size and time say so, and what it holds.

A file that only grew still begins with what was read: the chunks of a source whose files grow carry
a fingerprint of that beginning.
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
    "fingerprint",
    "is_beginning_kept",
    "state_of",
]

_SAMPLE_BYTES = 4 << 10
"""A fingerprint covers so much of the beginning of a file, and so much before its position."""


def state_of(found: os.stat_result) -> tuple[int, int]:
    """What changes when a file does: its size, and its time of modification in nanoseconds."""
    return found.st_size, found.st_mtime_ns


def fingerprint(path: str, end: int) -> str:
    """A hash of the first bytes of a file, and of the last ones before a position."""
    with Path(path).open("rb") as file:
        head = file.read(min(_SAMPLE_BYTES, end))
        file.seek(max(end - _SAMPLE_BYTES, 0))
        tail = file.read(min(_SAMPLE_BYTES, end))
    return xxhash.xxh64_hexdigest(head + b"\0" + tail)


def is_beginning_kept(about: Mapping[str, Any], found: os.stat_result) -> bool:
    """Does a file still begin with what was read of it, as its chunk says?"""
    if "print" not in about or found.st_size < about["size"]:
        return False
    return bool(fingerprint(about["path"], about["complete"]) == about["print"])


def check_unchanged(chunk: Chunk) -> None:
    """Raise `InputError` if what a chunk reads is not what it was when it was planned."""
    about = chunk.about
    try:
        now = Path(about["path"]).stat()
        if state_of(now) == (about["size"], about["modified_ns"]):
            return
        if is_beginning_kept(about, now):
            return
    except OSError as error:
        raise cannot_be_read(about["path"], error) from None
    raise InputError(changed(about["path"], about["size"], now.st_size))


def changed(path: str, size: int, size_now: int, *, grows: bool = False) -> Problem:
    """What is said of a file that is not what it was."""
    rule = (
        "a file of a source that grows is only appended to"
        if grows
        else "a file of a source does not change once it is there"
    )
    return Problem(
        "changed-file",
        f"{path} has changed since it was first seen ({size} bytes then, {size_now} now); {rule}",
        "put it back as it was, with its time; or, if it is read already, move it out of the "
        "folder and bring what is new under another name; logs that are appended to: grows=True",
    )


def cannot_be_read(path: str, error: OSError) -> CutwaterError:
    """Why a file cannot be read: it is not there, or the machine fails."""
    problem = Problem(
        "unreadable-file",
        f"{path} cannot be read: {error.strerror or error}",
        "put it back, or start with a new checkpoint; files stay until they are read",
    )
    return kind_of_errno(error.errno, InputError)(problem)
