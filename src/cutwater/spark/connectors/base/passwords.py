"""Passwords: settings name a variable or a file, and each process reads the password there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cutwater.errors import Problem, RefusedError

__all__ = ["password_from", "password_problems"]


def password_problems(owner: str, env: str | None, file: str | None) -> Iterator[Problem]:
    """Why a password cannot be looked up; `owner` begins the message: ``sink 'total'``."""
    if env is not None and file is not None:
        yield Problem(
            "two-passwords",
            f"{owner} has both password_env={env!r} and password_file={file!r}; only one of them "
            "can be used",
            "leave one of them out",
        )


def password_from(owner: str, env: str | None, file: str | None) -> str | None:
    """The password, read at each call; None if neither a variable nor a file is named.

    Raises `RefusedError` if the variable is not set or the file cannot be read.
    """
    if env is not None:
        if env not in os.environ:
            raise RefusedError(
                Problem(
                    "no-password",
                    f"{owner} has its password in the environment variable {env!r}, which is not "
                    "set in this process",
                    "set it for the driver and for every executor, or use password_file",
                )
            )
        return os.environ[env]
    if file is not None:
        try:
            return Path(file).read_text().rstrip("\r\n")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise RefusedError(
                Problem(
                    "no-password",
                    f"{owner} has its password in the file {file}, which cannot be read: {why}",
                    "put it there on every machine of the run, readable by this user, or use "
                    "password_env",
                )
            ) from None
    return None
