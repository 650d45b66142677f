"""Where in the user's code a step was defined."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["Where", "here", "is_of_this_package", "of_function"]

_PACKAGE = str(Path(__file__).parent.parent) + os.sep


@dataclass(frozen=True, slots=True)
class Where:
    """A file and a line, shown relative to the current folder where that is shorter."""

    file: str
    line: int

    def __str__(self) -> str:
        relative = os.path.relpath(self.file) if Path(self.file).is_absolute() else self.file
        return f"{min(relative, self.file, key=len)}:{self.line}"


def here(frame: FrameType | None = None) -> Where:
    """The nearest line on the stack that is not in this package."""
    frame = frame or sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Where(frame.f_code.co_filename, frame.f_lineno)


def is_of_this_package(frame: FrameType) -> bool:
    """Does the frame run code of this package?"""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def of_function(f: Callable[..., Any]) -> Where:
    """Where a function is defined; the caller's line if it has no code object."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    return Where(code.co_filename, code.co_firstlineno) if code else here()
