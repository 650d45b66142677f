"""What a function does, as far as another run of the same Python can tell."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import CodeType
from typing import Any

from cutwater.flow.builder import Flow
from cutwater.flow.where import Where
from cutwater.records import is_immutable

__all__ = ["fingerprint", "flow_fingerprint"]


def fingerprint(f: Callable[..., Any]) -> tuple[str, str]:
    """The version of Python, and a digest of what the function is made of.

    Lines, comments, documentation and the names of variables do not count. What it calls is known
    by name only. Two fingerprints say something about each other if the versions are the same.
    """
    parts = "\n".join(_parts(f))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return version, hashlib.sha256(parts.encode()).hexdigest()[:16]


def flow_fingerprint(flow: Flow) -> str:
    """A digest of what a whole flow does; another version of Python gives another one."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parts = "\n".join([version, *(_said(step) for step in flow.steps)])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _said(thing: Any) -> str:
    """A step or what it holds, as text; where it was defined does not count."""
    if is_dataclass(thing) and not isinstance(thing, type):
        held = [(f.name, getattr(thing, f.name)) for f in fields(thing)]
        said = (f"{n}={_said(v)}" for n, v in held if not isinstance(v, Where))
        return f"{type(thing).__name__}({', '.join(said)})"
    if isinstance(thing, tuple):
        return f"({', '.join(map(_said, thing))})"
    if isinstance(thing, type):
        return f"{thing.__module__}.{thing.__qualname__}"
    return fingerprint(thing)[1] if callable(thing) else _plain(thing)


def _parts(f: Any) -> Iterator[str]:
    code = getattr(f, "__code__", None)
    if code is None:
        yield f"{getattr(f, '__module__', '')} {getattr(f, '__qualname__', type(f).__qualname__)}"
        return
    yield from _of_code(code, getattr(f, "__doc__", None))
    held = [cell.cell_contents for cell in f.__closure__ or ()] + list(f.__defaults__ or ())
    for value in held:
        if callable(value):
            yield from _parts(value)
        elif is_immutable(value):
            yield _plain(value)


def _of_code(code: CodeType, doc: str | None) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant, None)
        elif constant is not doc:
            yield _plain(constant)


def _plain(value: Any) -> str:
    """The value as text that is the same in every process."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_plain, value))})"
    return repr(value)
