"""Every pair of a kind of sink and a way of release: how it is bound, and who looks at it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutwater.observers.delta import DeltaObserver
from cutwater.observers.folder import FolderObserver
from cutwater.observers.kafka import KafkaObserver
from cutwater.observers.observer import Observer
from cutwater.observers.postgres import PostgresObserver

PAIRS = (
    "jsonl-commit",
    "parquet-commit",
    "delta-commit",
    "postgres-early",
    "postgres-commit",
    "kafka-early",
    "kafka-commit",
)
ON_SERVERS = tuple(pair for pair in PAIRS if pair.startswith(("postgres", "kafka")))


@dataclass(frozen=True)
class Pair:
    """One sink, bound, with its observer."""

    name: str
    binding: dict[str, Any]
    """The function of `cutwater.spark` and what it takes."""
    observer: Observer
    has_order: bool = True
    """Does the observer see rows of a key in an order? A table of Delta has none."""
    settle: Callable[[], None] = field(default=lambda: None)
    """Wait until what is under way in the other system is decided."""

    def seen(self) -> dict[str, list[tuple[int, int]]]:
        """Number and position of the rows of each key, as a reader comes by them."""
        found: dict[str, list[tuple[int, int]]] = {}
        for row in self.observer.rows():
            found.setdefault(row["key"], []).append((row["number"], row["position"]))
        return found if self.has_order else {key: sorted(rows) for key, rows in found.items()}


def make_pair(name: str, folder: Path, service: Callable[[str], Any]) -> Pair:
    """Return a new, empty sink; `service` starts a server of a kind, or finds it."""
    kind, release = name.split("-")
    if kind == "jsonl":
        place = str(folder / "out")
        return Pair(name, {"kind": "folder", "path": place}, FolderObserver(place))
    if kind == "parquet":
        place = str(folder / "out")
        binding = {"kind": "folder", "path": place, "format": "parquet"}
        return Pair(name, binding, FolderObserver(place))
    if kind == "delta":
        place = str(folder / "out")
        binding = {"kind": "delta_table", "path": place, "compact_every": 3, "keep_hours": 0}
        return Pair(name, binding, _Delta(place), has_order=False)
    if kind == "postgres":
        return _postgres(name, release, service("postgres"))
    return _kafka(name, release, service("broker"))


class _Delta(DeltaObserver):
    """Sees nothing where there is no table yet."""

    def rows(self) -> list[dict[str, Any]]:
        return super().rows() if (Path(self._path) / "_delta_log").is_dir() else []


def _postgres(name: str, release: str, server: Any) -> Pair:
    table = f"t{uuid.uuid4().hex[:12]}"
    server.execute(
        f"CREATE TABLE {table} (key text, number bigint, position bigint, seen bigserial)"
    )
    binding = {"kind": "postgres_table", "table": table, "dsn": server.dsn, "release": release}
    return Pair(name, binding, PostgresObserver(server.dsn, table, order_by="seen"))


def _kafka(name: str, release: str, broker: Any) -> Pair:
    topic = broker.topic(partitions=2)
    binding = {
        "kind": "kafka_topic",
        "topic": topic,
        "servers": broker.servers,
        "key": "key",
        "release": release,
        "ledger": f"ledger-{topic}",
    }
    observer = KafkaObserver(broker.servers, topic)
    return Pair(name, binding, observer, settle=observer.wait_until_decided)
