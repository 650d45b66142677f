"""The observer of a Delta table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalake import DeltaTable

__all__ = ["DeltaObserver"]


class DeltaObserver:
    """Reads the newest version of a table.

    Parameters
    ----------
    path
        The table: its folder, or its address in an object store.
    storage_options
        The options of the object store, as ``deltalake`` takes them.
    """

    def __init__(self, path: str | Path, storage_options: dict[str, str] | None = None) -> None:
        self._path = str(path)
        self._options = storage_options

    def rows(self) -> list[dict[str, Any]]:
        """All rows, in the order of the files: a table has no order."""
        table = self._table().to_pyarrow_table()
        rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
        return rows

    def epochs(self) -> dict[int, int]:
        """The number of rows of each epoch, as far back as the table's log goes."""
        infos = [commit.get("cutwater") for commit in self._table().history()]
        shown = [commit for commit in infos if commit and "rows" in commit]
        return {commit["epoch"]: commit["rows"] for commit in reversed(shown)}

    def files(self) -> int:
        """The number of files of the newest version."""
        return len(self._table().file_uris())

    def _table(self) -> DeltaTable:
        return DeltaTable(self._path, storage_options=self._options)
