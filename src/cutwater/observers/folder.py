"""The observer of a folder of JSON lines or Parquet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["FolderObserver"]


class FolderObserver:
    """Reads the files in the folders ``epoch=N``, in the order of their names.

    Parameters
    ----------
    path
        The folder that a sink is bound to.
    """

    def __init__(self, path: str | Path) -> None:
        self._root = Path(path)

    def rows(self) -> list[dict[str, Any]]:
        """All rows, epoch by epoch; a value without fields is in a column ``value``."""
        return [row for rows in self.epochs().values() for row in rows]

    def epochs(self) -> dict[int, list[dict[str, Any]]]:
        """The rows of each published epoch."""
        found = self._root.iterdir() if self._root.is_dir() else iter(())
        folders = {int(path.name[6:]): path for path in found if _is_epoch(path)}
        return {epoch: _rows_in(folder) for epoch, folder in sorted(folders.items())}


def _is_epoch(path: Path) -> bool:
    return re.fullmatch(r"epoch=[0-9]+", path.name) is not None


def _rows_in(folder: Path) -> list[dict[str, Any]]:
    files = sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
    return [row for path in files for row in _read(path)]


def _read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with path.open("rb") as file:
            rows: list[dict[str, Any]] = pq.read_table(file).to_pylist(maps_as_pydicts="strict")
        return rows
    values = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [value if isinstance(value, dict) else {"value": value} for value in values]
