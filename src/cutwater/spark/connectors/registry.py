"""The connectors by name: as configurations call them, and as checkpoints do.

A kind is a class or function whose keyword arguments are the settings, so a table of a
configuration maps onto it one to one. It is imported when it is asked for: not every installation
has what it needs.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from cutwater.extras import not_installed
from cutwater.spark.connectors.base.source import Feed

__all__ = ["SINK_KINDS", "SOURCE_CLASSES", "SOURCE_KINDS", "Kind", "Setting", "source_class"]


@dataclass(frozen=True)
class Setting:
    """A setting of a kind."""

    type: Any
    is_required: bool


@dataclass(frozen=True)
class Kind:
    """What makes a binding."""

    maker: str
    """``module:name`` of a class or function."""
    functions: tuple[str, ...] = ()
    """Settings that are functions, and are named as ``module:name``."""

    def load(self) -> Callable[..., Any]:
        """The class or function; raises `RefusedError` if what it needs is not installed."""
        module, name = self.maker.split(":")
        try:
            made: Callable[..., Any] = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            raise not_installed("it", error) or error from None
        return made

    def settings(self) -> dict[str, Setting]:
        """What can be set, by name."""
        make: Any = self.load()
        given = inspect.signature(make).parameters
        called = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]
        own = {name: said for name, said in called.__annotations__.items() if name in given}
        hints = typing.get_type_hints(SimpleNamespace(__annotations__=own), called.__globals__)
        return {
            name: Setting(hints.get(name, Any), each.default is each.empty)
            for name, each in given.items()
        }


SOURCE_KINDS: Mapping[str, Kind] = {
    "json-lines": Kind("cutwater.spark.connectors.files.json_source:JsonLines"),
    "csv": Kind("cutwater.spark.connectors.files.csv_source:Csv"),
    "parquet": Kind("cutwater.spark.connectors.files.parquet_source:Parquet"),
    "kafka": Kind("cutwater.spark.connectors.kafka.source:KafkaMessages"),
    "postgres": Kind("cutwater.spark.connectors.postgres:postgres_rows"),
    "generate": Kind(
        "cutwater.spark.connectors.generator.source:Generated", functions=("record_of",)
    ),
}

SINK_KINDS: Mapping[str, Kind] = {
    "folder": Kind("cutwater.spark.connectors.files.sink:Folder"),
    "delta": Kind("cutwater.spark.connectors.delta.sink:Delta"),
    "kafka": Kind("cutwater.spark.connectors.kafka.sink:KafkaTopic"),
    "postgres": Kind("cutwater.spark.connectors.postgres:postgres_table"),
    "call": Kind("cutwater.spark.connectors.callback.sink:Call", functions=("function",)),
}

SOURCE_CLASSES: Mapping[str, str] = {
    "CSV": "files.csv_source:Csv",
    "JSON lines": "files.json_source:JsonLines",
    "Kafka": "kafka.source:KafkaMessages",
    "Parquet": "files.parquet_source:Parquet",
    "generator": "generator.source:Generated",
    "rows of PostgreSQL": "postgres.source:PostgresRows",
}


def source_class(kind: str) -> type[Feed] | None:
    """The class of a source by the `Feed.kind` that a checkpoint has of it; None if unknown."""
    if kind not in SOURCE_CLASSES:
        return None
    module, _, name = SOURCE_CLASSES[kind].partition(":")
    found: type[Feed] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found
