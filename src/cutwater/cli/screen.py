"""What the command line shows: tables and progress for people, JSON for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cutwater.errors import CutwaterError, Problem

__all__ = ["Live", "errors", "live", "output", "print_json", "show_counts", "table"]

output = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output; what has no form in JSON is shown as Python does."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=repr)
    except (TypeError, ValueError, OverflowError) as error:
        raise CutwaterError(
            Problem("not-json", f"the result cannot be shown as JSON: {error}", "leave --json out")
        ) from None
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A plain table; numbers to the right."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_number = all(isinstance(row[index], (int, float)) for row in rows)
        shown.add_column(escape(column), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_cell(value) for value in row))
    output.print(shown)


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


class Live:
    """One line that says what is going on, on a terminal; nothing elsewhere."""

    def __init__(self, status: Any | None) -> None:
        self._status = status

    def say(self, text: str) -> None:
        """Replace the line."""
        if self._status is not None:
            self._status.update(escape(text))


@contextmanager
def live(first: str) -> Iterator[Live]:
    """Show a line of progress on standard error while something takes long."""
    if not errors.is_terminal:
        errors.print(first, highlight=False, markup=False, soft_wrap=True)
        yield Live(None)
        return
    with errors.status(escape(first)) as status:
        yield Live(status)


def show_counts(title: str, counts: Mapping[str, int]) -> None:
    """A small table of counts by name."""
    table([title, "rows"], list(counts.items()))
