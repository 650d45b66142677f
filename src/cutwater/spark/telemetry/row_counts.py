"""How many rows each of the newest epochs had for each sink, for whoever watches a run.

The process that publishes epochs is not the driver's; it records them in a small file
of the checkpoint. Best effort: not synced, and safe to delete.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from cutwater.spark.storage.durable import parse_json

__all__ = ["EPOCHS_KEPT", "note_rows", "noted_rows"]

EPOCHS_KEPT = 100
"""As many as Spark itself reports."""


def note_rows(checkpoint: str | Path, epoch: int, rows: Mapping[str, int]) -> None:
    """Record the rows of an epoch."""
    path = _file(checkpoint)
    kept = {**noted_rows(checkpoint), epoch: dict(rows)}
    newest = {number: kept[number] for number in sorted(kept)[-EPOCHS_KEPT:]}
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with contextlib.suppress(OSError):
        fresh.write_text(json.dumps(newest))
        fresh.replace(path)


def noted_rows(checkpoint: str | Path) -> dict[int, dict[str, int]]:
    """The rows of each of the newest epochs, by sink."""
    try:
        found = parse_json(_file(checkpoint).read_bytes())
        return {int(epoch): dict(rows) for epoch, rows in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _file(checkpoint: str | Path) -> Path:
    return Path(checkpoint) / "row-counts.json"
