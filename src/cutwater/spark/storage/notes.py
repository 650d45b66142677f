"""Notes that may be lost: they survive a kill, but perhaps not a power failure.

Not synced, so that writing one does not wait for the disk. Readers must cope without.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from pathlib import Path
from typing import Any

from cutwater.spark.storage.durable import parse_json

__all__ = ["read_note", "write_note"]


def write_note(path: Path, value: dict[str, Any]) -> None:
    """Replace a note by one rename, or keep it if the disk refuses."""
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    with contextlib.suppress(OSError):
        try:
            fresh.touch(mode=0o600)
            fresh.write_text(json.dumps(value))
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


def read_note(path: Path) -> dict[str, Any]:
    """The content of a note; empty if there is none, or it cannot be read."""
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
