"""Input and output of the benchmarks that run whole flows: folders of JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "FIRST",
    "PARTITIONS",
    "Enough",
    "import_by_name",
    "new_files",
    "read_lines",
    "write_readings",
]

PARTITIONS = 2
"""Of the state, on all sides."""
FIRST = 10**9
"""The first position: all have the same number of digits, so all lines have the same length."""


class Enough(Exception):
    """Ends a run that would go on for ever."""


def write_readings(path: Path, first: int, keys: Iterable[int]) -> None:
    """A file of readings, one for each key, that appears whole."""
    lines = [
        f'{{"position":{FIRST + first + number},"key":"user-{key:07}","value":1}}\n'
        for number, key in enumerate(keys)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(lines))
    hidden.rename(path)


def new_files(folder: Path, seen: set[str]) -> Iterator[Path]:
    """Data files that appeared in a folder or its epochs; names with ``_`` or ``.`` are hidden."""
    try:
        with os.scandir(folder) as entries:
            found = [e for e in entries if e.name[0] not in "._" and e.path not in seen]
    except FileNotFoundError:
        return
    for entry in found:
        seen.add(entry.path)
        if entry.is_dir():
            yield from new_files(Path(entry.path), seen)
        else:
            yield Path(entry.path)


def read_lines(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """All records of some files."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def import_by_name() -> None:
    """Let workers find the modules of this folder."""
    paths = [str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
