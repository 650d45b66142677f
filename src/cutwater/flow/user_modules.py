"""The user's own modules: those of no installed package, which may change between runs.

A module counts as a whole. Which of its names a function uses cannot be determined from outside: a
method is looked up when it is called, a constant may be reached by another name.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

from cutwater.flow.tasks import Task

__all__ = ["UserModules", "held_by", "is_installed", "own_modules", "user_modules"]

_STANDARD_LIBRARY = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib"))


@dataclass(frozen=True)
class UserModules:
    """All of the user's own code that is reachable from some objects, and its dependencies."""

    digests: tuple[str, ...]
    """A digest of the syntax tree of each module, sorted; module names do not count, since a file
    has another name when it is run as a script."""
    packages: tuple[str, ...]
    """The name and version of each package that they import, or that an object is from, sorted."""
    sourceless: tuple[str, ...]
    """Modules without source code, as in a notebook."""


def held_by(things: Iterable[Any]) -> list[Any]:
    """The attributes of steps and bindings: functions, types, settings; and their classes."""
    things = list(things)
    held = [type(each) for each in things]
    held += [thing for each in things for thing in getattr(each, "__dict__", {}).values()]
    held += [thing.f for thing in held if isinstance(thing, Task)]
    held += [thing.func for thing in held if isinstance(thing, partial)]
    return held


def own_modules(things: Iterable[Any]) -> set[str]:
    """The modules of functions and types, and those reachable from them, unless installed."""
    waiting = list(things)
    found: set[str] = set()
    while waiting:
        thing = waiting.pop()
        name = thing.__name__ if isinstance(thing, ModuleType) else _module_of(thing)
        if name in sys.modules and name not in found and not is_installed(name):
            found.add(name)
            waiting += vars(sys.modules[name]).values()
    return found


def _module_of(thing: Any) -> str:
    name = getattr(thing, "__module__", None)
    return name if isinstance(name, str) else ""


def is_installed(module: str) -> bool:
    """Can every process import the module?"""
    path = getattr(sys.modules[module], "__file__", None)
    return path is None or _is_of_a_package(module, path)


def _is_of_a_package(module: str, path: str) -> bool:
    if module.split(".")[0] == __name__.split(".")[0]:
        return True
    return "site-packages" in path or "dist-packages" in path or path.startswith(_STANDARD_LIBRARY)


def user_modules(things: Iterable[Any], files: Iterable[str]) -> UserModules:
    """The modules of functions and types, those in files, and everything these import.

    Imports are found in the source code, so an import inside a function counts too, and so does one
    that only provides a constant.
    """
    held = list(things)
    waiting = [(name, _file_of(name)) for name in own_modules(held)]
    waiting += [(Path(path).stem, path) for path in set(files) if Path(path).is_file()]
    digests: dict[str, str] = {}
    packages = set(_packages_of(held))
    seen: set[str] = set()
    while waiting:
        name, path = waiting.pop()
        if path is None:
            continue
        if _is_of_a_package(name, path):
            packages.add(name.split(".")[0])
            continue
        path = str(Path(path).resolve())
        if path in digests:
            continue
        digests[path], imports = _read(path, _named_in_full(name, path))
        waiting += [(each, _file_of(each)) for each in imports if each not in seen]
        seen.update(imports)
    return UserModules(
        tuple(sorted(digests.values())),
        tuple(sorted(filter(None, map(_package, packages)))),
        tuple(sorted({name for name in map(_module_of, held) if _is_sourceless(name)})),
    )


def _packages_of(things: Iterable[Any]) -> Iterator[str]:
    """The installed packages that things are from, such as a connector that a file names."""
    for module in set(map(_module_of, things)) & sys.modules.keys():
        package = module.split(".")[0]
        if package not in sys.stdlib_module_names and is_installed(module):
            yield package


def _named_in_full(name: str, path: str) -> str:
    """The name under which a file's module was imported; `name` if it was not."""
    if _file_of(name) == path:
        return name
    loaded = (n for n, m in list(sys.modules.items()) if getattr(m, "__file__", None) == path)
    return next(loaded, name)


def _is_sourceless(name: str) -> bool:
    module = sys.modules.get(name)
    if module is None or name.split(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    return getattr(module, "__file__", None) is None and module.__spec__ is None


def _file_of(name: str) -> str | None:
    """The file of a module, imported or not; None if there is none to read."""
    if name.split(".")[0] in sys.stdlib_module_names and name != "__main__":
        return None
    module = sys.modules.get(name)
    spec = None if module else _spec(name)
    path = getattr(module, "__file__", None) or (spec.origin if spec else None)
    return path if path and Path(path).is_file() else None


def _spec(name: str) -> ModuleSpec | None:
    """Locate a module without importing it; None if it is not found."""
    parent, _, _ = name.rpartition(".")
    if not parent:
        return PathFinder.find_spec(name)
    folders = getattr(sys.modules.get(parent), "__path__", None)
    if folders is None:
        above = _spec(parent)
        folders = above.submodule_search_locations if above else None
    return PathFinder.find_spec(name, list(folders)) if folders else None


def _is_package(name: str) -> bool:
    module = sys.modules.get(name)
    if module is not None:
        return hasattr(module, "__path__")
    spec = _spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def _read(path: str, name: str) -> tuple[str, list[str]]:
    """The digest of a module's syntax tree, and the names it may import."""
    data = Path(path).read_bytes()
    try:
        digest, imports = _parsed(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # compiled, or too new
        return hashlib.sha256(data).hexdigest(), []
    package = name if _is_package(name) else name.rpartition(".")[0]
    parents = [name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)]
    return digest, [*parents, *_absolute(imports, package)]


@lru_cache(maxsize=256)
def _parsed(source: bytes) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(source)
    imports = tuple(_imports(tree))
    for node in ast.walk(tree):
        _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imports


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base
            dot = "" if base.endswith(".") else "."
            yield from (f"{base}{dot}{alias.name}" for alias in node.names if alias.name != "*")


def _absolute(imports: Iterable[str], package: str) -> Iterator[str]:
    """Absolute dotted names and all their prefixes; some name attributes, not modules."""
    for name in imports:
        try:
            found = resolve_name(name, package)
        except ImportError:  # beyond the top-level package: importing it would fail too
            continue
        parts = found.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    first = node.body[0] if node.body else None
    docstring = first.value if isinstance(first, ast.Expr) else None
    if isinstance(docstring, ast.Constant) and isinstance(docstring.value, str):
        node.body = node.body[1:]


@lru_cache(maxsize=256)
def _package(module: str) -> str | None:
    """The distributions that provide a module, with versions; None if unknown."""
    try:
        return f"{module} {version(module)}"
    except PackageNotFoundError:
        names = sorted(set(_distributions().get(module, [])))
        return ", ".join(f"{name} {version(name)}" for name in names) or None


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    return {name: list(found) for name, found in packages_distributions().items()}
