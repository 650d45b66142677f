"""A run as a TOML file: the connectors of its sources and sinks, and its options.

::

    [run]
    checkpoint = "state"
    until = "stopped"

    [sources.readings]
    kind = "json-lines"
    path = "in"

    [sinks.means]
    kind = "folder"
    path = "out"

    [spark]
    "spark.driver.memory" = "4g"

Paths are relative to the file. All problems are reported at once, each with its line number.
"""

from __future__ import annotations

import importlib
import os
import re
import tomllib
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from cutwater.endings import kind_of_errno
from cutwater.errors import CutwaterError, Problem, RefusedError, RunError, did_you_mean
from cutwater.flow import Flow
from cutwater.flow import steps as s
from cutwater.spark.binding import sink_problems, source_problems
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.connectors.registry import ConnectorKind, sink_kinds, source_kinds
from cutwater.spark.embedded.session import setting_problem
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.options import ProcessOptions, RunOptions, declared
from cutwater.spark.secrets import inline_secrets, is_secret_name
from cutwater.spark.storage.local_paths import is_url
from cutwater.spark.toml_lines import toml_lines_of

__all__ = ["RunConfig", "load_config"]


_TABLES = ("run", "sources", "sinks", "spark")
_OF_A_SOURCE = dict.fromkeys(
    (
        "idle_after",
        "max_bytes_per_epoch",
        "max_files_per_epoch",
        "max_record_bytes",
        "max_rows_per_epoch",
    ),
    "it is a setting of a source; move it to [sources.NAME]",
)


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run; start it with ``run(flow, **config.arguments)``."""

    checkpoint: str | None = None
    run: RunOptions = field(default_factory=RunOptions)
    process: ProcessOptions = field(default_factory=ProcessOptions)
    sources: dict[str, SourceConnector] = field(default_factory=dict)
    sinks: dict[str, SinkConnector] = field(default_factory=dict)
    spark: dict[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `run`, without the flow."""
        named = {"sources": self.sources, "sinks": self.sinks, "settings": self.spark}
        return {**named, **self.run} | ({"checkpoint": self.checkpoint} if self.checkpoint else {})


def load_config(
    path: str | Path,
    flow: Flow,
    bound_sources: Collection[str] = (),
    bound_sinks: Collection[str] = (),
) -> RunConfig:
    """Read the configuration of a run of a flow; raises `RunError` listing every problem.

    Sources and sinks that are bound elsewhere may be missing from the file, and are ignored if
    present.
    """
    file = Path(path)
    try:
        raw = file.read_bytes()
        text = raw.decode()
        data = tomllib.loads(text)
    except OSError as error:
        message = f"the configuration {file} cannot be read: {error.strerror}"
        raise kind_of_errno(error.errno)(
            Problem("no-config", message, "correct the path")
        ) from None
    except (ValueError, RecursionError) as error:  # also an int of too many digits
        raise RefusedError(_not_toml(file, raw, error)) from None
    reading = _Reading(file, toml_lines_of(text), flow)
    table = reading.run(data)
    config = RunConfig(
        table.get("checkpoint"),
        typing.cast(RunOptions, _keys(table, RunOptions)),
        typing.cast(ProcessOptions, _keys(table, ProcessOptions)),
        reading.bindings(data, "source", source_kinds(), bound_sources),
        reading.bindings(data, "sink", sink_kinds(), bound_sinks),
        reading.spark(data),
    )
    reading.unknown("table", (), data, _TABLES)
    if reading.problems:
        raise RefusedError([problem for _, problem in sorted(reading.problems, key=lambda p: p[0])])
    return config


class _Reading:
    """Reads the tables of a file and collects their problems, with line numbers."""

    def __init__(self, file: Path, lines: Mapping[tuple[str, ...], int], flow: Flow) -> None:
        self._file = file
        self._lines = lines
        self._flow = flow
        self.problems: list[tuple[int, Problem]] = []

    # --- tables ----------------------------------------------------------------------------------

    def run(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The table ``run``: the checkpoint, and the options of the run and of its process."""
        table = self._without_secrets(("run",), self._table(data, ("run",)))
        known = {"checkpoint": str, **_of_a_file(RunOptions), **_of_a_file(ProcessOptions)}
        self.unknown("setting", ("run",), table, list(known), hints=_OF_A_SOURCE)
        found = {
            name: self._checked(("run", name), value, known[name])
            for name, value in table.items()
            if name in known
        }
        for name in ("checkpoint", "log"):
            if isinstance(found.get(name), str):
                found[name] = self._from_here(found[name])
        return found

    def bindings(
        self,
        data: Mapping[str, Any],
        what: str,
        kinds: Mapping[str, ConnectorKind],
        bound: Collection[str],
    ) -> dict[str, Any]:
        """The tables ``sources.NAME`` or ``sinks.NAME``."""
        group = f"{what}s"
        tables = self._table(data, (group,))
        sort: type[s.Step] = s.Source if what == "source" else s.Sink
        names = [step.name for step in self._flow.steps if isinstance(step, sort)]
        self.unknown(f"{what} of this flow", (group,), tables, names, code=f"unknown-{what}")
        found = {}
        for name in names:
            if name in bound:
                continue
            if name not in tables:
                self._report(
                    (group,),
                    f"unbound-{what}",
                    f"{what} '{name}' is not bound; every {what} needs a table",
                    f"add [{group}.{name}] with a kind: {', '.join(kinds)}",
                )
                continue
            made = self._binding((group, name), tables[name], what, kinds)
            if made is not None:
                found[name] = made
                self._look_at(what, name, made)
        return found

    def spark(self, data: Mapping[str, Any]) -> dict[str, str]:
        """The table ``spark``: settings of the session, as strings."""
        found: dict[str, str] = {}
        for name, value in _flat(self._table(data, ("spark",))):
            path = ("spark", name)
            if is_secret_name(name.removesuffix("_env").removesuffix("_file")):
                found |= self._kept_elsewhere(path, name, value)
                continue
            if self._is_secret(path, value):
                continue
            if isinstance(value, (str, int, float, bool)):
                found[name] = str(value).lower() if isinstance(value, bool) else str(value)
                problem = setting_problem(name)
                if problem:
                    self._report(path, problem.code, problem.message, problem.hint)
            else:
                message = (
                    f"{name} is {value!r}; a Spark setting must be text, a number, true or false"
                )
                self._report(path, "wrong-type", message, f'for example "{name}" = "..."')
        return found

    def _kept_elsewhere(self, path: tuple[str, ...], name: str, value: Any) -> dict[str, str]:
        """Resolve a secret of Spark's from ``NAME_env``, a variable, or ``NAME_file``, a path."""
        if not name.endswith(("_env", "_file")) or not isinstance(value, str):
            hint = f'remove it, and say where it is: "{name}_env" = a variable, or "{name}_file"'
            message = f"{'.'.join(path)} holds a secret; a configuration is copied and committed"
            self._report(path, "inline-secret", message, f"{hint} = a file")
            return {}
        try:
            if name.endswith("_env"):
                return {name.removesuffix("_env"): os.environ[value]}
            text = Path(self._from_here(value)).read_text()
            return {name.removesuffix("_file"): text.rstrip("\n")}
        except (KeyError, OSError, ValueError) as error:
            why = "is not set" if isinstance(error, KeyError) else f"cannot be read: {error}"
            message = f"{name} is read from {value}, which {why}"
            self._report(path, "no-password", message, "put it there; it must not be in this file")
            return {}

    # --- one binding -----------------------------------------------------------------------------

    def _binding(
        self, path: tuple[str, ...], table: Any, what: str, kinds: Mapping[str, ConnectorKind]
    ) -> Any | None:
        if not isinstance(table, Mapping):
            self._wrong_type(path, table, "a table")
            return None
        kind = self._kind(path, table, what, kinds)
        if kind is None:
            return None
        before = len(self.problems)
        try:
            known = kind.settings()
        except RunError as error:
            self._report((*path, "kind"), *_parts(error.problems[0]))
            return None
        given = {name: value for name, value in table.items() if name != "kind"}
        settings = self._without_secrets(path, given)
        self.unknown(f"setting of {table['kind']}", path, settings, list(known))
        made = {
            name: self._function((*path, name), value)
            if name in kind.functions
            else self._setting((*path, name), value, known[name].type)
            for name, value in settings.items()
            if name in known
        }
        for name, setting in known.items():
            if setting.is_required and name not in table:
                message = f"{what} '{path[1]}' has no {name}; {table['kind']} needs it"
                self._report(path, "missing-setting", message, f"add {name} = ...")
        if len(self.problems) > before:
            return None
        try:
            return kind.load()(**made)
        except CutwaterError as error:
            for problem in error.problems:
                self._report(path, *_parts(problem))
        except (TypeError, ValueError) as error:
            self._report(path, "wrong-setting", f"{what} '{path[1]}': {error}", "correct it")
        return None

    def _kind(
        self,
        path: tuple[str, ...],
        table: Mapping[str, Any],
        what: str,
        kinds: Mapping[str, ConnectorKind],
    ) -> ConnectorKind | None:
        kind = table.get("kind")
        if isinstance(kind, str) and kind in kinds:
            return kinds[kind]
        there = f"kinds of {what}s: {', '.join(kinds)}"
        if kind is None:
            message = f"{what} '{path[1]}' has no kind"
            self._report(path, "missing-setting", message, there)
        else:
            message = f"{what} '{path[1]}' has the unknown kind {kind!r}"
            hint = did_you_mean(str(kind), kinds) or there
            self._report((*path, "kind"), "unknown-kind", message, hint)
        return None

    def _setting(self, path: tuple[str, ...], value: Any, tp: Any) -> Any:
        value = self._checked(path, value, tp)
        return self._from_here(value) if _is_path(path[-1]) and isinstance(value, str) else value

    def _function(self, path: tuple[str, ...], value: Any) -> Any:
        """Import the function that a setting names as 'module:name'."""
        module, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
        if not (module and colon and name):
            self._wrong_type(path, value, "a function, as 'module:name'")
            return None
        try:
            return getattr(importlib.import_module(module), name)
        except Exception as error:  # importing a module may raise anything
            message = f"{'.'.join(path)} is {value!r}, which cannot be imported: {error}"
            self._report(
                path, "unknown-name", message, "name a function of a module beside the flow"
            )
            return None

    def _look_at(self, what: str, name: str, made: Any) -> None:
        """Report what is wrong with a binding for its step, without contacting external systems."""
        try:
            planned = spark_plan(self._flow)
        except CutwaterError:
            return  # reported when the flow is run
        look: Callable[..., Iterator[Problem]]
        look = source_problems if what == "source" else sink_problems
        for problem in look(planned, name, made):
            self._report((f"{what}s", name), *_parts(problem))

    # --- problems --------------------------------------------------------------------------------

    def unknown(
        self,
        what: str,
        path: tuple[str, ...],
        table: Mapping[str, Any],
        known: Collection[str],
        code: str = "unknown-setting",
        hints: Mapping[str, str] | None = None,
    ) -> None:
        """Report the names in a table that are not known; `hints` say where some of them belong."""
        for name in table:
            if name not in known:
                hint = (hints or {}).get(name) or did_you_mean(name, known)
                hint = hint or f"known: {', '.join(known)}"
                self._report((*path, name), code, f"'{name}' is not a {what}", hint)

    def _table(self, data: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
        found = data.get(path[0], {})
        if isinstance(found, Mapping):
            return found
        self._wrong_type(path, found, "a table")
        return {}

    def _checked(self, path: tuple[str, ...], value: Any, tp: Any) -> Any:
        try:
            msgspec.convert(value, tp, strict=True)
        except msgspec.ValidationError:
            self._wrong_type(path, value, _in_words(tp))
            return None
        except TypeError:  # a type that msgspec does not know
            pass
        return value

    def _wrong_type(self, path: tuple[str, ...], value: Any, wanted: str) -> None:
        message = f"{'.'.join(path)} is {_shown(value)}; it must be {wanted}"
        self._report(path, "wrong-type", message, "correct the value")

    def _without_secrets(self, path: tuple[str, ...], table: Mapping[str, Any]) -> dict[str, Any]:
        """The entries of a table that hold no secret, and so may be shown."""
        return {n: value for n, value in table.items() if not self._is_secret((*path, n), value)}

    def _is_secret(self, path: tuple[str, ...], value: Any) -> bool:
        found = list(inline_secrets(path[-1], value))
        for name in found:
            self._report(
                path,
                "inline-secret",
                f"{'.'.join((*path[:-1], name))} holds a secret; a configuration is copied, logged "
                "and committed",
                "remove it, and say where it is: password_env = the name of an environment "
                "variable, or password_file = a file",
            )
        return bool(found)

    def _report(self, path: tuple[str, ...], code: str, message: str, hint: str) -> None:
        ends = (path[:n] for n in range(len(path), 0, -1))
        line = next((self._lines[end] for end in ends if end in self._lines), 0)
        where = f"{self._file}:{line}" if line else str(self._file)
        self.problems.append((line, Problem(code, f"{where}: {message}", hint)))

    def _from_here(self, value: str) -> str:
        """Resolve a path of the configuration against the file's folder; URLs stay as they are."""
        return value if is_url(value) else str(self._file.absolute().parent / value)


def _of_a_file(options: type) -> dict[str, Any]:
    """The types of the options that may be set in a file."""
    every = declared(options).items()
    return {name: tp for name, (tp, option) in every if not option.is_for_one_start}


def _keys(values: Mapping[str, Any], options: type) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in declared(options)}


def _parts(problem: Problem) -> tuple[str, str, str]:
    return problem.code, problem.message, problem.hint


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested tables to dotted names: TOML nests ``spark.driver.memory = 1``."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _is_path(name: str) -> bool:
    return name in ("path", "folder") or name.endswith(("_file", "_path", "_folder"))


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "nothing",
}


def _in_words(tp: Any) -> str:
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_in_words(arg) for arg in args if arg is not type(None))
    if origin is Literal:
        return " or ".join(map(repr, args))
    if tp in _WORDS:
        return _WORDS[tp]
    name = getattr(origin or tp, "__name__", "")
    if name in ("Mapping", "dict"):
        return "a table"
    return f"a list of {_in_words(args[0])}" if args else str(tp)


def _not_toml(file: Path, raw: bytes, error: Exception) -> Problem:
    found = re.search(r"\(at line (\d+), column \d+\)", str(error))
    line = int(found[1]) if found else len(raw.splitlines())
    why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    return Problem("not-toml", f"{file}:{line}: it is not TOML: {why}", "correct the file")
