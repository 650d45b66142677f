"""The connectors by name: the names used in configurations, and those stored in checkpoints.

A kind is a class or function whose keyword arguments are its settings, so a table of a
configuration maps onto it one to one. It is imported on demand, since its dependencies may not be
installed. Connectors of other packages are found through entry points of the group
``cutwater.connectors``, named by kind and role.

.. code-block:: toml

    [project.entry-points."cutwater.connectors"]
    "sqlite.source" = "cutwater_sqlite:SqliteRows"
    "sqlite.sink" = "cutwater_sqlite:SqliteTable"
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

from cutwater.errors import Problem, RefusedError
from cutwater.extras import not_installed
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector

__all__ = [
    "GROUP",
    "ConnectorKind",
    "ConnectorSetting",
    "sink_kinds",
    "source_class",
    "source_kinds",
]

GROUP = "cutwater.connectors"
"""The entry point group in which packages register connectors."""


@dataclass(frozen=True)
class ConnectorSetting:
    """One setting of a connector kind."""

    type: Any
    is_required: bool


@dataclass(frozen=True)
class ConnectorKind:
    """A class or function that makes a binding from its settings."""

    maker: str
    """``module:name`` of a class or function."""
    functions: tuple[str, ...] = ()
    """Settings that are functions; a configuration gives them as ``module:name``."""
    package: str = ""
    """The package that provides it; empty: Cutwater itself."""
    contract: type = object
    """The base class that a class of another package must have."""

    def load(self) -> Callable[..., Any]:
        """Import the class or function; raises `RefusedError` if a dependency is not installed.

        Also if it belongs to another package and cannot be imported or violates the contract.
        """
        module, name = self.maker.split(":")
        try:
            made: Callable[..., Any] = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            raise not_installed("it", error) or self._not_loaded(error) or error from None
        except Exception as error:
            raise self._not_loaded(error) or error from error
        if self.package and not (isinstance(made, type) and issubclass(made, self.contract)):
            why = f"it is not derived from {self.contract.__name__}"
            raise RefusedError(_broken(self.maker, self.package, why))
        return made

    def _not_loaded(self, error: Exception) -> RefusedError | None:
        why = f"{type(error).__name__}: {error}"
        return RefusedError(_broken(self.maker, self.package, why)) if self.package else None

    def settings(self) -> dict[str, ConnectorSetting]:
        """Its settings, by name."""
        make: Any = self.load()
        given = inspect.signature(make).parameters
        called = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]
        own = {
            name: annotation for name, annotation in called.__annotations__.items() if name in given
        }
        hints = typing.get_type_hints(SimpleNamespace(__annotations__=own), called.__globals__)
        return {
            name: ConnectorSetting(hints.get(name, Any), each.default is each.empty)
            for name, each in given.items()
        }


_OWN_SOURCES: Mapping[str, ConnectorKind] = {
    "json-lines": ConnectorKind("cutwater.spark.connectors.files.json_source:JsonLines"),
    "csv": ConnectorKind("cutwater.spark.connectors.files.csv_source:Csv"),
    "parquet": ConnectorKind("cutwater.spark.connectors.files.parquet_source:Parquet"),
    "kafka": ConnectorKind("cutwater.spark.connectors.kafka.source:KafkaMessages"),
    "postgres": ConnectorKind("cutwater.spark.connectors.postgres:postgres_rows"),
    "generate": ConnectorKind(
        "cutwater.spark.connectors.generator.source:Generated", functions=("record_of",)
    ),
}

_OWN_SINKS: Mapping[str, ConnectorKind] = {
    "folder": ConnectorKind("cutwater.spark.connectors.files.sink:Folder"),
    "delta": ConnectorKind("cutwater.spark.connectors.delta.sink:Delta"),
    "kafka": ConnectorKind("cutwater.spark.connectors.kafka.sink:KafkaTopic"),
    "postgres": ConnectorKind("cutwater.spark.connectors.postgres:postgres_table"),
    "call": ConnectorKind(
        "cutwater.spark.connectors.callback.sink:Callback", functions=("function",)
    ),
}

_OWN_SOURCE_CLASSES: Mapping[str, str] = {
    "CSV": "files.csv_source:Csv",
    "JSON lines": "files.json_source:JsonLines",
    "Kafka": "kafka.source:KafkaMessages",
    "Parquet": "files.parquet_source:Parquet",
    "generator": "generator.source:Generated",
    "rows of PostgreSQL": "postgres.source:PostgresRows",
}


def source_kinds() -> dict[str, ConnectorKind]:
    """All kinds of sources, by their name in a configuration."""
    return {**_installed("source"), **_OWN_SOURCES}


def sink_kinds() -> dict[str, ConnectorKind]:
    """All kinds of sinks, by their name in a configuration."""
    return {**_installed("sink"), **_OWN_SINKS}


def source_class(kind: str) -> type[SourceConnector] | None:
    """The class of a source by the `kind` that a checkpoint stores; None if unknown."""
    if kind in _OWN_SOURCE_CLASSES:
        module, _, name = _OWN_SOURCE_CLASSES[kind].partition(":")
        found: type[SourceConnector] = getattr(
            importlib.import_module(f"{__package__}.{module}"), name
        )
        return found
    others: list[Any] = [each.load() for each in _installed("source").values()]
    return next((connector for connector in others if connector.kind == kind), None)


@cache
def _installed(role: str) -> Mapping[str, ConnectorKind]:
    """The connectors of other packages, by kind."""
    found = {}
    for entry in entry_points(group=GROUP):
        kind, _, what = entry.name.partition(".")
        package = entry.dist.name if entry.dist else "an installed package"
        if not kind or what not in _CONTRACTS:
            raise RefusedError(
                _broken(entry.name, package, "its name is not of the form KIND.source or KIND.sink")
            )
        if what == role:
            found[kind] = ConnectorKind(entry.value, package=package, contract=_CONTRACTS[what])
    return found


_CONTRACTS = {"source": SourceConnector, "sink": SinkConnector}


def _broken(name: str, package: str, why: str) -> Problem:
    return Problem(
        "broken-connector",
        f"connector '{name}' of {package} cannot be used: {why}",
        f"correct {package}, or uninstall it",
    )
