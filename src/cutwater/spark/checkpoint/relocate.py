"""Repairs a checkpoint that was moved: Spark stores absolute paths in some of its files.

The metadata of an operator refer to its state schemas by absolute path, from where the checkpoint
was made; everything else is relative. So the paths are corrected before Spark reads them, with the
lock held.
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


def relocate(checkpoint: Checkpoint) -> list[Path]:
    """Rewrite Spark's files to the checkpoint's current location; return those that changed."""
    changed = []
    for path in sorted((checkpoint.spark / "state").glob("*/_metadata/v*/*")):
        if path.name.isdigit() and _relocate_file(path):
            changed.append(path)
    return changed


def _relocate_file(path: Path) -> bool:
    operator = path.parents[2]
    try:
        version, _, text = path.read_text().partition("\n")
        metadata = parse_json(text)
        found = list(_schemas(metadata))
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
        # Without checksums Spark reads a file as it is; with stale ones it refuses it.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        write_file(path, f"{version}\n{json.dumps(metadata, separators=(',', ':'))}".encode())
    return is_changed


def _schemas(metadata: Any) -> Iterator[list[str]]:
    """The lists of schema paths in the metadata of an operator."""
    for store in metadata.get("stateStoreInfo", []):
        found = store.get("stateSchemaFilePaths", [])
        if all(isinstance(schema, str) and f"/{_SCHEMAS}/" in schema for schema in found):
            yield found
