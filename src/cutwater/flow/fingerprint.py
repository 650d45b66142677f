"""Digests of functions and flows, stable across runs of the same Python version."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from cutwater.annotations import is_immutable
from cutwater.flow.builder import Flow
from cutwater.flow.timely.bodies import with_bodies
from cutwater.flow.user_modules import held_by, user_modules
from cutwater.flow.where import Where

__all__ = ["fingerprint", "flow_fingerprint"]


def fingerprint(f: Callable[..., Any]) -> tuple[str, str]:
    """The version of Python, and a digest of the function's code and the values it captures.

    Line numbers, comments, docstrings and variable names do not count. Called functions count by
    name only; captured values (a closure, defaults, arguments of a `partial`, attributes) count if
    they are immutable. Two fingerprints can be compared only if their Python versions are equal.
    """
    parts = "\n".join(_parts(f))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return version, hashlib.sha256(parts.encode()).hexdigest()[:16]


def flow_fingerprint(flow: Flow, bound: Iterable[Any] = ()) -> str:
    """A digest of a whole flow and of what its sources and sinks are bound to.

    Every module of the user's that the flow reaches counts in full, and so do the versions of the
    packages these import; comments, docstrings and layout do not. Another version of Python gives
    another digest.
    """
    held = held_by([*with_bodies(flow.steps), *bound])
    modules = user_modules(held, (step.where.file for step in with_bodies(flow.steps)))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parts = [version, *(_formatted(step) for step in flow.steps)]
    parts += [*modules.digests, *modules.packages, *map(_typed_in, modules.sourceless)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _typed_in(module: str) -> str:
    """A module without source code: its functions and classes, and the constants they name."""
    names = vars(sys.modules[module])
    own = {
        name: value
        for name, value in sorted(names.items())
        if getattr(value, "__module__", None) == module and callable(value)
    }
    parts = [f"{name} {part}" for name, value in own.items() for part in _with_methods(value)]
    used = {word for part in parts for word in re.findall(r"\w+", part)}
    constants = [
        f"{name}={_plain(value)}"
        for name, value in sorted(names.items())
        if name in used and name not in own and is_immutable(value)
    ]
    return "\n".join([*parts, *constants])


def _with_methods(thing: Any) -> Iterator[str]:
    yield from _parts(thing)
    for name, value in sorted(vars(thing).items()) if isinstance(thing, type) else ():
        if isinstance(value, FunctionType):
            yield name
            yield from _parts(value)
        elif is_immutable(value) and name not in ("__doc__", "__module__", "__firstlineno__"):
            yield f"{name}={_plain(value)}"


def _formatted(thing: Any) -> str:
    """A step or a value it holds, as text; the position of its definition does not count."""
    if is_dataclass(thing) and not isinstance(thing, type):
        held = [(f.name, getattr(thing, f.name)) for f in fields(thing)]
        parts = (f"{n}={_formatted(v)}" for n, v in held if not isinstance(v, Where))
        return f"{type(thing).__name__}({', '.join(parts)})"
    if isinstance(thing, tuple):
        return f"({', '.join(map(_formatted, thing))})"
    if isinstance(thing, type):
        return thing.__qualname__  # its whole module counts anyway
    return fingerprint(thing)[1] if callable(thing) else _plain(thing)


def _parts(f: Any, inside: tuple[Any, ...] = ()) -> Iterator[str]:
    """The parts of a function; `inside` holds the functions that enclose it, to stop recursion."""
    if any(f is other for other in inside):
        yield "itself"
        return
    code = getattr(f, "__code__", None)
    held: list[Any]
    if isinstance(f, partial):
        yield "partial"
        held = [f.func, *f.args, *_by_name(f.keywords)]
    elif code is not None:
        yield from _of_code(code, getattr(f, "__doc__", None))
        cells = [cell.cell_contents for cell in f.__closure__ or ()]
        held = [*cells, *(f.__defaults__ or ()), *_by_name(f.__kwdefaults__ or {})]
        held += _by_name(getattr(getattr(f, "__self__", None), "__dict__", {}))
    else:
        yield f"{getattr(f, '__module__', '')} {getattr(f, '__qualname__', type(f).__qualname__)}"
        call = type(f).__call__
        held = [call] if hasattr(call, "__code__") else []
        held += _by_name({} if isinstance(f, type) else getattr(f, "__dict__", {}))
    for value in held:
        if callable(value):
            yield from _parts(value, (*inside, f))
        elif is_immutable(value):  # a mutable value may change at any time
            yield _plain(value)


def _by_name(values: Mapping[str, Any]) -> list[Any]:
    """Names and their values, sorted by name."""
    return [part for item in sorted(values.items()) for part in item]


def _of_code(code: CodeType, doc: str | None) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant, None)
        elif constant is not doc:
            yield _plain(constant)


def _plain(value: Any) -> str:
    """The value as text, identical in every process."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_plain, value))})"
    return repr(value)
