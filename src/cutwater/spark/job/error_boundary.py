"""The boundary to Spark: errors cross it as one message, not as a stack trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cutwater.endings import of_unexpected
from cutwater.errors import CutwaterError, embed

__all__ = ["error_boundary"]


@contextmanager
def error_boundary() -> Iterator[None]:
    """Around what Spark calls: our errors reach the driver as messages."""
    try:
        yield
    except CutwaterError as error:
        raise RuntimeError(embed(error)) from error
    except (OSError, MemoryError) as error:
        raise RuntimeError(embed(of_unexpected(error))) from error
