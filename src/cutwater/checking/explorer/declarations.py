"""Does a declaration of a class about its actions hold for a model of it, or of a subclass?

``independent``, ``ample`` and ``is_acyclic`` are claims about code. A subclass that replaces a
part of that code, be it a helper that ``step`` calls, is another model, of which the claims may be
false. So they apply only if nothing below the class that declares them is overridden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

__all__ = ["makes_claim"]

_CLAIMS = {"independent", "ample", "is_acyclic", "is_reducible"}
"""Overriding one of them changes none of the others."""
_ABOUT_LOOKUP = {"__getattr__", "__getattribute__", "__call__"}


def makes_claim(model: Any, claim: str) -> bool:
    """Does a model make a claim, and is no method overridden below the class that makes it?

    A claim about ``ample`` also depends on ``observation``; the others only if their class uses it.
    Parameters, which are not methods, may be overridden.
    """
    if not hasattr(model, claim):
        return False
    own = getattr(model, "__dict__", {})
    classes = [c for c in type(model).__mro__[:-1] if not getattr(c, "_is_protocol", False)]
    author = len(classes) - 1 if claim in own else _author(classes, claim)
    defined, used = _defined_in(classes[author:]), _used_in(classes[author:])
    if claim != "ample":
        defined -= {"observation"}
    return not (
        _replaced(own, defined - _CLAIMS)  # a function that is a parameter replaces no method
        or any(_replaced(vars(c), (defined | used) - _CLAIMS) for c in classes[:author])
    )


def _author(classes: list[type], claim: str) -> int:
    return next((i for i, known in enumerate(classes) if claim in vars(known)), 0)


def _replaced(attributes: Mapping[str, Any], said_of: set[str]) -> bool:
    return any(
        _is_method(value) and (name in said_of or name in _ABOUT_LOOKUP)
        for name, value in attributes.items()
    )


def _defined_in(classes: list[type]) -> set[str]:
    return {name for known in classes for name in vars(known) if not name.startswith("__")}


def _used_in(classes: list[type]) -> set[str]:
    """The attributes that the code of classes names: a helper may be defined below."""
    values = (value for known in classes for value in vars(known).values())
    functions = (f for value in values for f in _functions_of(value))
    return {name for f in functions for name in _names_of(f.__code__)}


def _functions_of(value: Any) -> list[FunctionType]:
    parts = [value, *(getattr(value, name, None) for name in ("__func__", "fget", "func"))]
    return [part for part in parts if isinstance(part, FunctionType)]


def _names_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_of(constant)


def _is_method(value: Any) -> bool:
    return callable(value) or hasattr(type(value), "__get__")
