"""Classifies errors of deltalake, which gives status codes and errnos only within its messages."""

from __future__ import annotations

import re

from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    SchemaMismatchError,
)

from cutwater.endings import kind_of_errno, kind_of_http
from cutwater.errors import ConnectorError, CutwaterError, RefusedError, StepError

__all__ = ["first_line", "kind_of_delta"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STATUS = re.compile(r"status code\W+(\d{3})\b")
_ERRNO = re.compile(r"\(os error (\d+)\)")


def kind_of_delta(error: Exception) -> type[CutwaterError]:
    """The class of an error: by the number that it quotes, else by its own class.

    Without a number, a `DeltaError` other than a lost race is a log that cannot be read or an
    unsupported feature.
    """
    text = _COLOURS.sub("", str(error))
    if isinstance(error, OSError) and error.errno is not None:
        return kind_of_errno(error.errno)
    if status := _STATUS.search(text):
        return kind_of_http(int(status[1]))
    if number := _ERRNO.search(text):
        return kind_of_errno(int(number[1]))
    if isinstance(error, SchemaMismatchError):
        return StepError
    is_no_request = isinstance(error, DeltaError) and not isinstance(error, CommitFailedError)
    return RefusedError if is_no_request else ConnectorError


def first_line(error: Exception) -> str:
    """The error on one line: deltalake draws its causes below each other, in colours."""
    text = " ".join(_COLOURS.sub("", str(error)).replace("↳", ": ").split())
    return re.sub(r" ?:( :)* ", ": ", text) or type(error).__name__
