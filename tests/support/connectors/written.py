"""Records written as each kind of source has them, for tests that read them back."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.files.csv_source import Csv
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.parquet_source import Parquet
from cutwater.spark.connectors.generator.source import Generated

KINDS = ("JSON lines", "CSV", "Parquet", "generator")


class Listed:
    """The function of a generator: what is in a list, by number."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items

    def __call__(self, number: int) -> Any:
        return self.items[number]


def written(
    kind: str, folder: Path, items: Sequence[Any], *, per_file: int, per_epoch: int
) -> SourceConnector:
    """A source of such a kind that reads these records, about `per_epoch` of them in an epoch.

    Files that are there already stay as they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [items[start : start + per_file] for start in range(0, len(items), per_file)]
    match kind:
        case "JSON lines":
            for number, some in enumerate(files):
                lines = [msgspec.json.encode(item) + b"\n" for item in some]
                path = folder / f"{number:04}.jsonl"
                path.exists() or path.write_bytes(b"".join(lines))
            return JsonLines(str(folder), max_bytes_per_epoch=30 * per_epoch)
        case "CSV":
            for number, some in enumerate(files):
                path = folder / f"{number:04}.csv"
                path.exists() or write_csv(path, some)
            return Csv(str(folder), max_bytes_per_epoch=10 * per_epoch)
        case "Parquet":
            for number, some in enumerate(files):
                rows = msgspec.to_builtins(some)
                table = pa.Table.from_pylist(rows)
                path = folder / f"{number:04}.parquet"
                path.exists() or pq.write_table(table, path, row_group_size=3)
            return Parquet(str(folder), max_rows_per_epoch=per_epoch)
        case "generator":
            total = len(items) or None
            rate = None if total else 1e-9
            return Generated(Listed(items), total, rate, max_rows_per_epoch=per_epoch)
    raise AssertionError(kind)


def write_csv(path: Path, items: Sequence[Any]) -> None:
    """Records as CSV, quoted where they must be."""
    rows = msgspec.to_builtins(list(items))
    values = (value for row in rows for value in row.values() if isinstance(value, str))
    has_returns = any("\r" in value for value in values)
    quoting = csv.QUOTE_ALL if has_returns else csv.QUOTE_MINIMAL  # Python forgets "\r"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n", quoting=quoting)
        writer.writeheader()
        writer.writerows(rows)
