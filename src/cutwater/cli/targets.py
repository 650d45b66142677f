"""Targets on the command line: ``module:name`` or ``path/to/file.py:name``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from cutwater.errors import (
    CutwaterError,
    InputError,
    Problem,
    RefusedError,
    TargetError,
    did_you_mean,
)
from cutwater.extras import not_installed
from cutwater.flow import Flow

__all__ = [
    "load",
    "load_flow",
    "load_function",
    "load_inputs",
    "load_module",
    "spark_package",
    "split_target",
]

_OF_SPARK = ("numpy", "pandas", "prometheus_client", "pyarrow", "pyspark")
"""What the extra ``spark`` brings: `cutwater.spark` imports it when it is needed."""


def split_target(target: str) -> tuple[str, str | None]:
    """The module or file, and the name in it if there is one.

    >>> split_target("jobs.py:flow"), split_target("package.jobs")
    (('jobs.py', 'flow'), ('package.jobs', None))
    """
    module_path, colon, name = target.rpartition(":")
    return (module_path, name) if colon and name.isidentifier() else (target, None)


def load_flow(target: str) -> tuple[Flow, ModuleType]:
    """The flow a target names, and its module; a name may be left out if there is one flow."""
    module_path, name = split_target(target)
    module = load_module(module_path)
    if name is None:
        flows = {n: v for n, v in vars(module).items() if isinstance(v, Flow)}
        if len(flows) != 1:
            message = f"{len(flows)} flows: {', '.join(flows)}" if flows else "no flow"
            raise TargetError(
                Problem(
                    "which-flow",
                    f"{module_path} defines {message}",
                    f"name one: {module_path}:NAME",
                )
            )
        return next(iter(flows.values())), module
    found = load(module, module_path, name)
    if not isinstance(found, Flow):
        raise TargetError(
            Problem(
                "not-a-flow",
                f"{target} is a {type(found).__name__}; a flow is needed",
                _names_hint(module, Flow) or "define one with cutwater.Flow('name')",
            )
        )
    return found, module


def load(module: ModuleType, module_path: str, name: str) -> Any:
    """The value of a name in a module."""
    if hasattr(module, name):
        return getattr(module, name)
    if getattr(module, "__file__", None) is None and hasattr(module, "__path__"):
        raise TargetError(
            Problem(
                "unknown-name",
                f"{module_path} is a folder, and has no '{name}'",
                f"name the file in it: {module_path.replace('.', '/')}/FILE.py:{name}",
            )
        )
    known = [n for n in vars(module) if n[0] != "_"]
    hint = did_you_mean(name, known) or _names_hint(module, Flow)
    raise TargetError(
        Problem("unknown-name", f"{module_path} has no '{name}'", hint or "define it")
    )


def load_function(target: str) -> Callable[..., Any]:
    """The function that a target names."""
    module_path, name = split_target(target)
    found: Callable[..., Any] | None = (
        load(load_module(module_path), module_path, name) if name else None
    )
    if found is None or not callable(found):
        message = f"is a {type(found).__name__}" if name else "names no function"
        raise TargetError(
            Problem(
                "not-a-function", f"{target} {message}; a function is needed", "use module:name"
            )
        )
    return found


def load_inputs(inputs: str | None, target: str, module: ModuleType) -> Mapping[str, Any]:
    """The dict from source to values that a target names; default: ``inputs`` beside the flow."""
    module_path, name = split_target(inputs) if inputs else (target, "inputs")
    if inputs is None and not hasattr(module, "inputs"):
        raise TargetError(
            Problem(
                "no-inputs",
                f"there are no inputs for {target}",
                "define inputs = {'source': [...]} beside the flow, or pass --inputs module:name",
            )
        )
    found = load(load_module(module_path) if inputs else module, module_path, name or "inputs")
    if isinstance(found, Mapping):
        if all(isinstance(values, Iterable) for values in found.values()):
            return found
        shown = repr(found)[:200]
    else:
        shown = f"a {type(found).__name__}"
    raise InputError(
        Problem(
            "not-inputs",
            f"{module_path}:{name} is {shown}; inputs are a dict from source to values",
            "for example inputs = {'words': ['a', 'b']}",
        )
    )


def spark_package() -> ModuleType:
    """``cutwater.spark``, which not every installation can import."""
    missing = [name for name in _OF_SPARK if not _is_installed(name)]
    if missing:
        raise RefusedError(
            Problem(
                "no-spark",
                f"this command needs the package '{missing[0]}', which is not installed",
                "pip install 'cutwater[spark,java]'",
            )
        )
    from cutwater import spark

    return spark


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _names_hint(module: ModuleType, kind: type) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, kind)]
    return f"its flows: {', '.join(names)}" if names else ""


def load_module(module_path: str) -> ModuleType:
    """Import a module by name, or a file by path."""
    try:
        return (
            _import_file(Path(module_path))
            if module_path.endswith(".py")
            else _import_name(module_path)
        )
    except CutwaterError:
        raise
    except (Exception, SystemExit) as error:
        where = _last_line(error, module_path)
        lacking = None
        if isinstance(error, ModuleNotFoundError):
            lacking = not_installed(module_path, error)
        raise TargetError(
            Problem(
                "target-does-not-import",
                f"{module_path} cannot be imported: {type(error).__name__}: {error}{where}",
                lacking.problems[0].hint
                if lacking
                else "run it with python to see the whole error, or add --debug",
            )
        ) from error


def _import_name(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        found = None
    if found is None:
        raise TargetError(
            Problem(
                "unknown-module",
                f"there is no module '{name}'",
                "give a module that can be imported from here, or a path that ends in .py",
            )
        )
    return importlib.import_module(name)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        here = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise TargetError(
            Problem(
                "no-such-file",
                f"there is no file {path}{here}",
                "correct the path, or change to the folder that it is relative to",
            )
        )
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path.absolute()):
        return loaded  # running it again would create its classes again
    spec = importlib.util.spec_from_file_location(path.stem, path.absolute())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.absolute().parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _last_line(error: BaseException, module_path: str) -> str:
    if isinstance(error, SyntaxError):
        return ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    return f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else ""
