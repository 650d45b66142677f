"""What can be wrong with a file of the state store: an unknown format, or damage."""

from __future__ import annotations

from pathlib import Path

from cutwater.spark.checkpoint.checksums import why_altered

__all__ = ["DamagedStateError", "UnknownFormatError", "check_whole", "whole_bytes"]


class UnknownFormatError(Exception):
    """Another version or setting of Spark wrote the file; Spark itself may read it."""


class DamagedStateError(Exception):
    """A file is missing, or does not match its checksums."""


def whole_bytes(path: Path) -> bytes:
    """The bytes of a file that matches its checksums; raises `DamagedStateError` if it does not."""
    check_whole(path)
    return path.read_bytes()


def check_whole(path: Path) -> None:
    """Raise `DamagedStateError` if a file is missing or does not match its checksums."""
    if not path.exists():
        raise DamagedStateError(f"{path} is missing")
    altered = why_altered(path)
    if altered:
        raise DamagedStateError(f"{path} is damaged: {altered}")
