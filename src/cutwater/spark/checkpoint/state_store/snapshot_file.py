"""A snapshot: a zip of RocksDB's small files, and tables (SST files) stored beside it.

The metadata in the zip map the tables. The database is assembled in a scratch folder, with links to
the tables, and opened read-only: nothing is written to the checkpoint.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.state_store.formats import UnknownFormatError, check_whole
from cutwater.spark.checkpoint.state_store.rows import FAMILY
from cutwater.spark.storage.durable import parse_json

__all__ = ["read_snapshot"]


def read_snapshot(path: Path, prefixes: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The keys that begin with one of the prefixes, with their values."""
    check_whole(path)
    with tempfile.TemporaryDirectory(prefix="cutwater-") as folder:
        database = Path(folder)
        with zipfile.ZipFile(path) as zipped:
            metadata = _metadata(zipped.read("metadata"))
            for name in zipped.namelist():
                if name != "metadata":
                    (database / Path(name).name).write_bytes(zipped.read(name))
        for table in metadata["sstFiles"]:
            source = path.parent / "SSTs" / Path(table["dfsSstFileName"]).name
            check_whole(source)
            (database / Path(table["localFileName"]).name).symlink_to(source)
        yield from _scanned(database, prefixes)


def _metadata(data: bytes) -> dict[str, Any]:
    version, _, text = data.partition(b"\n")
    found = parse_json(text) if version == b"v1" else {}
    if found.get("columnFamilyMapping", {}).get("log") != FAMILY:
        raise UnknownFormatError("the snapshot does not say where the logs are")
    metadata: dict[str, Any] = found
    return metadata


def _scanned(database: Path, prefixes: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    from rocksdict import AccessType, Options, Rdict

    opened = Rdict(str(database), Options(raw_mode=True), access_type=AccessType.read_only())
    try:
        for prefix in prefixes:
            yield from _under(prefix, opened.items(from_key=prefix))
    finally:
        opened.close()


def _under(prefix: bytes, items: Iterator[Any]) -> Iterator[tuple[bytes, bytes]]:
    return takewhile(lambda pair: bytes(pair[0]).startswith(prefix), items)
