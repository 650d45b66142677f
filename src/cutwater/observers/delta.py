"""What a Delta table shows to those who read it."""

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
        How the store is reached, as ``deltalake`` takes it.
    """

    def __init__(self, path: str | Path, storage_options: dict[str, str] | None = None) -> None:
        self._path = str(path)
        self._options = storage_options

    def rows(self) -> list[dict[str, Any]]:
        """All rows; a table has no order, so they come as its files do."""
        table = self._table().to_pyarrow_table()
        rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
        return rows

    def epochs(self) -> dict[int, int]:
        """How many rows each epoch has brought, as far back as the table's log goes."""
        infos = [commit.get("cutwater") for commit in self._table().history()]
        shown = [commit for commit in infos if commit and "rows" in commit]
        return {commit["epoch"]: commit["rows"] for commit in reversed(shown)}

    def files(self) -> int:
        """How many files the newest version is made of."""
        return len(self._table().file_uris())

    def _table(self) -> DeltaTable:
        return DeltaTable(self._path, storage_options=self._options)
