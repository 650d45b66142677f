"""What the command line shows: tables and progress for people, JSON for machines.

Records, names and messages may hold anything, and a terminal obeys: it is retitled, cleared, or
shows text backwards. So everything goes through `safe`, in the one place where text is rendered.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cutwater.errors import CutwaterError, Problem

__all__ = ["Live", "errors", "live", "print_json", "safe", "show_counts", "stdout", "table"]

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions of text
    "\u2028\u2029\ufff9-\ufffb\ud800-\udfff]"  # other lines, annotations, half characters
)


def safe(text: str) -> str:
    r"""Text that does nothing to a terminal: control characters become Python escapes.

    >>> safe("\x1b[2Ja\u202eb")
    '\\x1b[2Ja\\u202eb'
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


class _Screen(Console):
    """A console on which only its own control codes work; it finds no markup or emoji in text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Make all text safe, and leave what rich adds to it."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=safe(segment.text))


stdout = _Screen()
errors = _Screen(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output; a value without a form in JSON is its repr."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=repr)
    except (TypeError, ValueError, OverflowError) as error:
        raise CutwaterError(
            Problem("not-json", f"the result cannot be shown as JSON: {error}", "leave --json out")
        ) from None
    text = msgspec.json.format(encoded, indent=2).decode()
    sys.stdout.write(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A plain table; numbers to the right."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_number = all(isinstance(row[index], (int, float)) for row in rows)
        shown.add_column(safe(column), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_cell(value) for value in row))
    stdout.print(shown)


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else safe(str(value))


class Live:
    """One line of progress on a terminal; nothing elsewhere."""

    def __init__(self, status: Any | None) -> None:
        self._status = status

    def notify(self, text: str) -> None:
        """Replace the line."""
        if self._status is not None:
            self._status.update(Text(text))


@contextmanager
def live(first: str) -> Iterator[Live]:
    """Show a line of progress on standard error while something takes long."""
    if not errors.is_terminal:
        errors.print(first, soft_wrap=True)
        yield Live(None)
        return
    with errors.status(Text(first)) as status:
        yield Live(status)


def show_counts(title: str, counts: Mapping[str, int], unit: str) -> None:
    """A small table of counts by name."""
    table([title, unit], list(counts.items()))
