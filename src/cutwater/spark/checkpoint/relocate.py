"""A checkpoint that was moved: Spark keeps the full path of some of its own files.

What an operator's metadata say of the schemas of its states begins with the place in which the
checkpoint was made; everything else is found relative to it. So the paths are put right before
Spark reads them, with the lock held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.storage.durable import damaged, parse_json, write_file

__all__ = ["relocate"]

_SCHEMAS = "_stateSchema"


def relocate(place: Checkpoint) -> list[Path]:
    """Make Spark's files speak of where the checkpoint is now; those that did not."""
    changed = []
    for path in sorted((place.spark / "state").glob("*/_metadata/v*/*")):
        if path.name.isdigit() and _relocate_file(path):
            changed.append(path)
    return changed


def _relocate_file(path: Path) -> bool:
    operator = path.parents[2]
    try:
        version, _, text = path.read_text().partition("\n")
        said = parse_json(text)
        found = list(_schemas(said))
    except (ValueError, AttributeError, TypeError) as error:
        raise damaged(path, "Spark's file of an operator", error) from None
    is_changed = False
    for schemas in found:
        for number, schema in enumerate(schemas):
            here = operator / _SCHEMAS / schema.rpartition(f"/{_SCHEMAS}/")[2]
            if schema != f"file:{here}" and here.exists():
                schemas[number] = f"file:{here}"
                is_changed = True
    if is_changed:
        # Without its sums a file is read as it is; with those of another it is refused.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        write_file(path, f"{version}\n{json.dumps(said, separators=(',', ':'))}".encode())
    return is_changed


def _schemas(said: Any) -> Iterator[list[str]]:
    """The lists of paths in what is said of an operator."""
    for store in said.get("stateStoreInfo", []):
        found = store.get("stateSchemaFilePaths", [])
        if all(isinstance(schema, str) and f"/{_SCHEMAS}/" in schema for schema in found):
            yield found
