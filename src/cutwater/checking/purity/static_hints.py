"""What a function's code refers to that a pure function need not: a warning, not a proof."""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from cutwater.flow.travel.unpicklable import global_names
from cutwater.flow.user_modules import is_installed

__all__ = ["hints_of"]

_MODULES = {
    "time": "the clock",
    "random": "random numbers",
    "secrets": "random numbers",
    "uuid": "random numbers",
    "os": "the operating system",
    "sys": "the interpreter",
    "locale": "the locale",
    "platform": "the machine",
    "tempfile": "files",
    "socket": "the network",
    "urllib": "the network",
    "requests": "the network",
    "httpx": "the network",
    "subprocess": "other processes",
    "threading": "threads",
}
_METHODS = {"now": "the clock", "today": "the clock", "utcnow": "the clock"}
_BUILTINS = {
    "open": "files",
    "print": "output",
    "input": "input",
    "hash": "the hash seed of the process",
    "id": "addresses in memory",
}
_CONSTANT = (int, float, str, bytes, bool, tuple, frozenset, type(None), type, FunctionType)


def hints_of(f: Callable[..., Any]) -> tuple[str, ...]:
    """What a function refers to, including through functions of the user's own modules it calls.

    >>> import random
    >>> def roll(state, event):
    ...     return state, [random.random()]
    >>> hints_of(roll)
    ("'random' (random numbers)",)
    """
    return tuple(dict.fromkeys(_found(f, set())))


def _found(f: Any, seen: set[int]) -> Iterator[str]:
    f = _behind(f)
    code = getattr(f, "__code__", None)
    if code is None or id(code) in seen:
        return
    seen.add(id(code))
    known = getattr(f, "__globals__", {})
    # An attribute of the same name is something else.
    scope = {name: known.get(name, getattr(builtins, name, None)) for name in global_names(code)}
    for name in _names(code):
        value = scope.get(name)
        if isinstance(value, ModuleType):
            top = value.__name__.split(".")[0]
            if top in _MODULES:
                yield f"'{name}' ({_MODULES[top]})"
        elif name in scope and _module_of(value) in _MODULES:
            yield f"'{name}' ({_MODULES[_module_of(value)]})"
        elif name in _METHODS:
            yield f"'{name}' ({_METHODS[name]})"
        elif name in _BUILTINS and value is getattr(builtins, name):
            yield f"'{name}' ({_BUILTINS[name]})"
        elif name in scope and _can_change(value):
            yield f"'{name}' (a {type(value).__name__} that can change)"
        elif isinstance(value, FunctionType) and _is_of_the_user(value, f):
            yield from _found(value, seen)
        yield from _through_module(value, code, seen)
    yield from (f"'{name}' (a global that it sets)" for name in _assigned(code, "STORE_GLOBAL"))
    outer = (name for name in _assigned(code, "STORE_DEREF") if name in code.co_freevars)
    yield from (f"'{name}' (a variable of a function around it that it sets)" for name in outer)
    for name, cell in zip(code.co_freevars, getattr(f, "__closure__", None) or (), strict=False):
        if _is_filled(cell) and _can_change(cell.cell_contents):
            yield f"'{name}' (a {type(cell.cell_contents).__name__} that can change)"


def _is_of_the_user(value: FunctionType, f: Any) -> bool:
    """Is it a function of the same module, or of another module outside of installed packages?"""
    module = value.__module__
    return module == getattr(f, "__module__", "") or (
        module in sys.modules and not is_installed(module)
    )


def _through_module(value: Any, code: CodeType, seen: set[int]) -> Iterator[str]:
    """What the functions of a user's module refer to, for those functions that the code names."""
    if not isinstance(value, ModuleType) or is_installed(value.__name__):
        return
    for name in _names(code):
        inner = vars(value).get(name)
        if isinstance(inner, FunctionType):
            yield from _found(inner, seen)
        elif name in vars(value) and _can_change(inner):
            yield f"'{value.__name__}.{name}' (a {type(inner).__name__} that can change)"


def _module_of(value: Any) -> str:
    """The module that a function comes from, even if it was imported by name."""
    module = getattr(value, "__module__", None) if callable(value) else None
    return {"posix": "os"}.get(module, module) if isinstance(module, str) else ""


def _behind(f: Any) -> Any:
    """The function behind a task, a wrapper, a partial application or a callable object."""
    for name in ("f", "__wrapped__", "func", "__func__"):
        if hasattr(f, name):
            return _behind(getattr(f, name))
    if not hasattr(f, "__code__") and not isinstance(f, type):
        return vars(type(f)).get("__call__", f)
    return f


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _can_change(value: Any) -> bool:
    return isinstance(value, (list, dict, set, bytearray, Iterator)) or (
        not isinstance(value, (*_CONSTANT, ModuleType))
        and not callable(value)
        and hasattr(value, "__dict__")
        and not getattr(getattr(value, "__dataclass_params__", None), "frozen", False)
    )


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _assigned(code: CodeType, opname: str) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname == opname:
            yield str(instruction.argval)
