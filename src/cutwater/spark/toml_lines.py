"""Line numbers of tables and keys in a TOML file, which the standard parser does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

__all__ = ["KeyPath", "toml_lines_of"]

KeyPath = tuple[str, ...]
"""The keys that lead to a value."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]\]?")
_PAIR = re.compile(rf"\s*({_DOTTED})\s*=")
_TOKENS = re.compile(
    r'\"\"\"|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|\#[^\n]*|[\[\]{}]', re.MULTILINE
)


def toml_lines_of(text: str) -> dict[KeyPath, int]:
    """The line number of each table and key of a valid TOML text, counted from 1.

    >>> toml_lines_of('[run]\\nuntil = "x"\\n[sinks."a b"]\\nkind = "folder"')
    {('run',): 1, ('run', 'until'): 2, ('sinks', 'a b'): 3, ('sinks', 'a b', 'kind'): 4}
    """
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in _beginnings(text):
        header, pair = _TABLE.match(line), _PAIR.match(line)
        if header:
            table = _keys(header[1])
            found.setdefault(table, number)
        elif pair:
            path = (*table, *_keys(pair[1]))
            for end in range(len(table) + 1, len(path) + 1):
                found.setdefault(path[:end], number)
    return found


def _beginnings(text: str) -> Iterator[tuple[int, str]]:
    """The lines on which something begins: not those inside a multi-line string, list or table."""
    depth, closing = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if not depth and not closing:
            yield number, line
        rest = line
        if not depth and not closing and (header := _TABLE.match(line)):
            rest = line[header.end() :]
        depth, closing = _after(rest, depth, closing)


def _after(line: str, depth: int, closing: str) -> tuple[int, str]:
    """The bracket depth at the end of a line, and which multi-line quotes are open there."""
    at = 0
    while at < len(line):
        if closing:
            end = line.find(closing, at)
            if end < 0:
                return depth, closing
            at, closing = end + 3, ""
            continue
        token = _TOKENS.search(line, at)
        if token is None:
            break
        at = token.end()
        if token[0] in ('"""', "'''"):
            closing = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
    return depth, closing


def _keys(dotted: str) -> KeyPath:
    """Split a dotted key into its keys, as TOML does."""
    value: object = tomllib.loads(f"{dotted} = 0")
    keys = []
    while isinstance(value, dict):
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)
