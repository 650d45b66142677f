"""Paths of this machine: a URL is refused, so that it does not become a folder of that name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cutwater.errors import Problem

__all__ = ["impossible", "is_url", "not_local"]


def is_url(path: str | Path) -> bool:
    """Does a path begin with the scheme of a URL? `Path` makes one slash of two.

    >>> is_url("s3://bucket/state"), is_url(Path("s3://bucket/state")), is_url("in/a:b")
    (True, True, False)
    """
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:/", str(path)) is not None


def not_local(what: str, path: str | Path) -> Problem:
    """The problem of a URL where only a local path is possible."""
    return Problem(
        "not-a-local-path",
        f"{what} is {path}; it must be a path on this machine: a URL would become a folder of "
        "that name",
        "give a path without a scheme; mount remote storage",
    )


def impossible(what: str, path: str | Path) -> Iterator[Problem]:
    """The problem of a path with a character that no path can have; none for any other."""
    try:
        is_possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        yield Problem(
            "not-a-local-path",
            f"{what} is {str(path)!r}; no path has such a character",
            "correct the path",
        )
