"""Taking back the newest entries of a log, which nobody has read yet."""

from __future__ import annotations

from pathlib import Path

from cutwater.spark.storage.durable import sync_folder

__all__ = ["drop_entries_after"]


def drop_entries_after(folder: Path, number: int) -> list[int]:
    """Delete the entries of an `EntryLog` that come after one, durably; which they were.

    The newest goes first, so what a crash leaves is a log without a gap. Only entries that have
    files of their own are newest: what is compacted was read long ago.
    """
    found = (int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit())
    dropped = sorted((entry for entry in found if entry > number), reverse=True)
    for entry in dropped:
        (folder / f"{entry}.json").unlink()
    if dropped:
        sync_folder(folder)
    return dropped
