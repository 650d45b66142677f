"""Files that commands write."""

from __future__ import annotations

from pathlib import Path

from cutwater.errors import CutwaterError, Problem

__all__ = ["write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text; raises an error if the file cannot be written."""
    try:
        path.write_text(text)
    except OSError as error:
        raise CutwaterError(
            Problem(
                "unwritable-file",
                f"{path} cannot be written: {error.strerror}",
                "choose a folder that you may write to",
            )
        ) from None
