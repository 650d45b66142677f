"""Record types and function signatures, read from their annotations.

Records and states are dataclasses, msgspec structs or builtin types; `codec` serialises them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from cutwater.errors import FlowError, Problem

__all__ = [
    "Signature",
    "element_of",
    "fields_of",
    "fits",
    "is_immutable",
    "is_known",
    "members",
    "plain_type",
    "signature_of",
    "typename",
    "union_of",
]


def members(tp: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the type alone.

    >>> members(int | str)
    (<class 'int'>, <class 'str'>)
    """
    if get_origin(tp) in (Union, types.UnionType):
        return get_args(tp)
    return (tp,)


def union_of(tps: list[Any]) -> Any:
    """The union of types, each once; `Any` if one of them is unknown.

    >>> union_of([int, str, int])
    int | str
    """
    flat = list(dict.fromkeys(member for tp in tps for member in members(tp)))
    if Any in flat or not flat:
        return Any
    result = flat[0]
    for tp in flat[1:]:
        result = result | tp
    return result


def typename(tp: Any) -> str:
    """A type as the user writes it.

    >>> typename(list[int]), typename(int | None)
    ('list[int]', 'int | None')
    """
    if tp is type(None):
        return "None"
    if get_origin(tp) in (Union, types.UnionType):
        return " | ".join(typename(member) for member in get_args(tp))
    if isinstance(tp, type) and not get_args(tp):
        return tp.__name__
    return str(tp).replace("typing.", "").replace("collections.", "")


def fields_of(tp: Any, *, constrained: bool = False) -> dict[str, Any] | None:
    """Name and type of each field; for a union, the fields all members share; None if unknown.

    With ``constrained=True`` types keep what `Annotated` adds to them.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    >>> fields_of(Point), fields_of(int), fields_of(Any)
    ({'x': <class 'int'>}, {}, None)
    """
    known: list[dict[str, Any]] = []
    for member in map(plain_type, members(tp)):
        if member is Any:
            return None
        known.append(_fields_of_one(member, constrained))
    shared = set(known[0]).intersection(*known[1:])
    return {
        name: union_of([fields[name] for fields in known]) for name in known[0] if name in shared
    }


def _fields_of_one(tp: Any, constrained: bool) -> dict[str, Any]:
    tp = get_origin(tp) or tp
    declares_fields = dataclasses.is_dataclass(tp) or (
        isinstance(tp, type) and (issubclass(tp, msgspec.Struct) or hasattr(tp, "_fields"))
    )
    if not declares_fields:
        return {}
    try:
        hints = typing.get_type_hints(tp, include_extras=constrained)
    except NameError as error:
        raise FlowError(
            Problem(
                "unresolved-annotation",
                f"the annotations of {typename(tp)} cannot be resolved: {error}",
                "define the types it names at the top level of a module",
            )
        ) from None
    if dataclasses.is_dataclass(tp):
        names = [field.name for field in dataclasses.fields(tp)]
    else:
        names = list(getattr(tp, "__struct_fields__", None) or tp._fields)
    return {name: hints.get(name, Any) for name in names}


def fits(actual: Any, wanted: Any) -> bool:
    """May a value of type `actual` be used where `wanted` is expected? Unknown types fit.

    >>> fits(bool, int), fits(int | str, int), fits(list[int], list), fits(Any, int)
    (True, False, True, True)
    """
    actual, wanted = plain_type(actual), plain_type(wanted)
    if actual is Any or wanted is Any:
        return True
    return all(any(_fits_one(a, w) for w in members(wanted)) for a in members(actual))


def is_known(tp: Any) -> bool:
    """Are the type and all its type arguments known, with no `Any` among them?

    >>> is_known(tuple[int, ...]), is_known(tuple[Any, ...]), is_known(Any)
    (True, False, False)
    """
    return tp is not Any and all(is_known(arg) for arg in get_args(tp) if arg is not ...)


def plain_type(tp: Any) -> Any:
    """The classes behind a literal, an alias, a new type or a type variable."""
    if get_origin(tp) is Literal:
        return union_of([type(value) for value in get_args(tp)])
    if get_origin(tp) is Annotated:
        return plain_type(get_args(tp)[0])
    if isinstance(tp, TypeVar):
        return Any
    for behind in ("__supertype__", "__value__"):
        if not isinstance(tp, type) and hasattr(tp, behind):
            return plain_type(getattr(tp, behind))
    return type(None) if tp is None else tp


def _fits_one(actual: Any, wanted: Any) -> bool:
    actual, wanted = plain_type(actual), plain_type(wanted)
    actual_class, wanted_class = get_origin(actual) or actual, get_origin(wanted) or wanted
    if wanted in (Any, object) or actual is Any:
        return True
    if not (isinstance(actual_class, type) and isinstance(wanted_class, type)):
        return bool(actual == wanted)
    if wanted_class is float and issubclass(actual_class, int):
        return True
    try:
        if not issubclass(actual_class, wanted_class):
            return False
    except TypeError:  # a protocol or a typed dict: not decidable by issubclass
        return True
    return _arguments_fit(actual_class, get_args(actual), wanted_class, get_args(wanted))


def _arguments_fit(
    actual_class: type, actual: tuple[Any, ...], wanted_class: type, wanted: tuple[Any, ...]
) -> bool:
    if not actual or not wanted:
        return True
    if actual_class is tuple and wanted_class is tuple and ... in (*actual, *wanted):
        firsts, lasts = ([arg for arg in args if arg is not ...] for args in (actual, wanted))
        return all(fits(a, w) for a in firsts for w in lasts)
    if len(actual) != len(wanted):
        return actual_class is not tuple or wanted_class is not tuple
    return all(fits(a, w) for a, w in zip(actual, wanted, strict=True))


def is_immutable(value: Any) -> bool:
    """Can the value be shared without a copy, whatever its holder does with it?

    >>> is_immutable((1, "a")), is_immutable([1])
    (True, False)
    """
    if value is None or isinstance(value, (int, float, str, bytes, complex)):
        return True
    if isinstance(value, (tuple, frozenset)) and type(value) in (tuple, frozenset):
        return all(is_immutable(item) for item in value)
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return value.__struct_config__.frozen and all(
            is_immutable(getattr(value, n)) for n in names
        )
    params = getattr(type(value), "__dataclass_params__", None)
    if params is not None and params.frozen:
        return all(is_immutable(getattr(value, f.name)) for f in dataclasses.fields(value))
    return False


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """The annotated types of a function; `Any` where there is none."""

    parameters: tuple[Any, ...]
    result: Any


def signature_of(f: Callable[..., Any]) -> Signature:
    """The annotated types of a function; `Any` where an annotation cannot be resolved."""
    code = getattr(f, "__code__", None)
    if code is None:
        return Signature((), f if isinstance(f, type) else Any)
    try:
        hints = typing.get_type_hints(f)
    except (NameError, TypeError):
        hints = {}
    is_bound = getattr(f, "__self__", None) is not None
    names = code.co_varnames[is_bound : code.co_argcount]
    return Signature(tuple(hints.get(name, Any) for name in names), hints.get("return", Any))


def element_of(tp: Any) -> Any:
    """The element type of a list, tuple or iterable type; `Any` for all others.

    >>> element_of(list[int]), element_of(Any)
    (<class 'int'>, typing.Any)
    """
    origin, args = get_origin(tp), get_args(tp)
    is_sequence = isinstance(origin, type) and issubclass(
        origin, (list, tuple, set, frozenset, Sequence, Iterator, Iterable)
    )
    return args[0] if is_sequence and args and origin is not dict else Any
