"""Codecs: serialise values of a type and read them back, without pickle.

Where the bytes alone tell msgspec what a value is, msgspec does all the work. Where they do not,
as with a union of two dataclasses, at the top level or nested, the parts are encoded one by one.
A leading byte then tags the alternative of a union by its position.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, get_args, get_origin

import msgspec
import msgspec.inspect

from cutwater.annotations import fields_of, fits, members, typename
from cutwater.errors import FlowError, InputError, Problem
from cutwater.times import Product

__all__ = ["UNENCODABLE", "Codec", "Plain", "codec_of", "is_native"]

UNENCODABLE = (OverflowError, UnicodeEncodeError, RecursionError)
"""Raised by encoding: integers of more than 64 bits, lone surrogates, values nested too deeply."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode
_Coding = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]
_COLLECTIONS = (list, set, frozenset)


class Plain:
    """The type of self-describing values: numbers, text, times, and tuples of these.

    Used for the keys of a function without annotations.
    """


class Codec:
    """Encodes values of one type as bytes, and decodes them.

    >>> Codec(tuple[int, str]).decode(Codec(tuple[int, str]).encode((1, "a")))
    (1, 'a')
    >>> Codec(Plain).decode(Codec(Plain).encode((1, Decimal("1.0"))))
    (1, Decimal('1.0'))
    """

    def __init__(self, tp: Any) -> None:
        self.type = tp
        self.encode, self.decode = _coding(tp) or _refuse(tp)


@lru_cache(maxsize=512)
def codec_of(tp: Any) -> Codec:
    """The codec of a type, cached: building one takes far longer than using it."""
    return Codec(tp)


def is_native(tp: Any) -> bool:
    """Does msgspec alone encode this type? Then its records carry the names of their fields.

    >>> is_native(dict[str, int]), is_native(Fraction)
    (True, False)
    """
    return tp is not Plain and _native(tp) is not None


def _refuse(tp: Any) -> _Coding:
    raise FlowError(
        Problem(
            "type-without-encoding",
            f"{typename(tp)} cannot be encoded; records and states are dataclasses or builtin "
            "types, or made of these",
            "use a dataclass with annotated fields",
        )
    )


def _coding(tp: Any, inside: tuple[Any, ...] = ()) -> _Coding | None:
    """The encode and decode functions of a type; None if it cannot be serialised."""
    if tp is Plain:
        return _encode_plain, _decode_plain
    decoder = _native(tp)
    if decoder is not None:
        return _pack, decoder
    if tp in inside:  # recursive, and msgspec refuses it: we would recurse for ever
        return None
    return _by_parts(tp, (*inside, tp))


def _native(tp: Any) -> Callable[[bytes], Any] | None:
    try:
        decode = msgspec.msgpack.Decoder(tp).decode
        return None if _has_custom(msgspec.inspect.type_info(tp), set()) else decode
    except (TypeError, NameError):
        return None


def _has_custom(info: Any, seen: set[int]) -> bool:
    """Is there a type, at any depth, that msgspec would need a custom hook for?"""
    if isinstance(info, tuple):
        return any(_has_custom(part, seen) for part in info)
    if not isinstance(info, (msgspec.inspect.Type, msgspec.inspect.Field)) or id(info) in seen:
        return False
    seen.add(id(info))
    if getattr(info, "cls", None) is Product:  # its parts are self-describing
        return True
    return isinstance(info, msgspec.inspect.CustomType) or any(
        _has_custom(getattr(info, name), seen) for name in info.__struct_fields__
    )


def _by_parts(tp: Any, inside: tuple[Any, ...]) -> _Coding | None:
    origin, args = get_origin(tp), get_args(tp)
    if tp is Product:
        return _fixed(
            lambda time: (time.first, time.second),
            Product,
            (Plain, Plain),
            inside,
        )
    if len(members(tp)) > 1:
        return _union(tp, inside)
    if origin is tuple and args[1:] == (...,):
        return _sequence(tuple, args[0], inside)
    if origin is tuple:
        return _fixed(lambda value: value, lambda *parts: parts, args, inside)
    if origin in _COLLECTIONS:
        return _sequence(origin, args[0], inside)
    if origin is dict or origin is Counter:
        return _mapping(origin, args[0], int if origin is Counter else args[1], inside)
    if dataclasses.is_dataclass(tp) and isinstance(tp, type):
        return _dataclass(tp, inside)
    return None


def _union(tp: Any, inside: tuple[Any, ...]) -> _Coding | None:
    alternatives = members(tp)
    codings = [_coding(member, inside) for member in alternatives]
    if None in codings:
        return None
    known: list[_Coding] = codings  # type: ignore[assignment]
    # a class that matches one alternative only decides by itself, without its content
    classes = [get_origin(m) or m for m in alternatives]
    by_class = {c: i for i, c in enumerate(classes) if classes.count(c) == 1}

    def encode(value: Any) -> bytes:
        number = by_class.get(type(value))
        if number is None:
            number = next((i for i, m in enumerate(alternatives) if _suits(value, m)), None)
        if number is None:
            raise InputError(_of_another_type(value, tp))
        return bytes([number]) + known[number][0](value)

    return encode, lambda data: known[data[0]][1](data[1:])


def _of_another_type(value: Any, tp: Any) -> Problem:
    return Problem(
        "value-of-another-type",
        f"{value!r} is a {type(value).__name__}; this stream carries {typename(tp)}",
        "correct the annotation, or what the step returns",
    )


def _suits(value: Any, tp: Any) -> bool:
    """Is the value of the type? Looks into collections, but not into records."""
    if len(members(tp)) > 1:
        return any(_suits(value, member) for member in members(tp))
    origin, args = get_origin(tp) or tp, get_args(tp)
    if not fits(type(value), origin):
        return False
    if origin is tuple and args and args[1:] != (...,):
        return len(value) == len(args) and all(map(_suits, value, args))
    if origin is tuple or origin in _COLLECTIONS or origin is Counter:
        return not args or all(_suits(item, args[0]) for item in value)
    if origin is dict and args:
        return all(_suits(k, args[0]) and _suits(v, args[1]) for k, v in value.items())
    return True


def _sequence(make: Any, element: Any, inside: tuple[Any, ...]) -> _Coding | None:
    coding = _coding(element, inside)
    if coding is None:
        return None
    encode, decode = coding
    return (
        lambda value: _pack([encode(item) for item in value]),
        lambda data: make([decode(item) for item in _unpack(data)]),
    )


def _mapping(make: Any, key: Any, value: Any, inside: tuple[Any, ...]) -> _Coding | None:
    pairs = _coding(tuple[tuple[key, value], ...], inside)
    if pairs is None:
        return None
    encode, decode = pairs
    return lambda found: encode(tuple(found.items())), lambda data: make(dict(decode(data)))


def _fixed(
    take: Callable[[Any], Any], make: Any, parts: tuple[Any, ...], inside: tuple[Any, ...]
) -> _Coding | None:
    codings = [_coding(part, inside) for part in parts]
    if None in codings:
        return None
    encoders, decoders = zip(*codings, strict=True) if codings else ((), ())
    return (
        lambda value: _pack([e(part) for e, part in zip(encoders, take(value), strict=True)]),
        lambda data: make(*(d(part) for d, part in zip(decoders, _unpack(data), strict=True))),
    )


def _dataclass(tp: type, inside: tuple[Any, ...]) -> _Coding | None:
    if not all(field.init for field in dataclasses.fields(tp)):
        return None
    parts = fields_of(tp) or {}
    names = tuple(parts)

    def make(*values: Any) -> Any:
        return tp(**dict(zip(names, values, strict=True)))

    return _fixed(
        lambda value: [getattr(value, name) for name in names], make, tuple(parts.values()), inside
    )


# `Plain` values that msgpack has no type for: how to encode each, how to decode it.
_KINDS: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    int: (str, int),  # of more than 64 bits
    Decimal: (str, Decimal),
    Fraction: (str, Fraction),
    dt.datetime: (lambda value: value.isoformat(), dt.datetime.fromisoformat),
    dt.date: (lambda value: value.isoformat(), dt.date.fromisoformat),
    dt.timedelta: (
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: dt.timedelta(*parts),
    ),
    uuid.UUID: (lambda value: value.bytes, lambda data: uuid.UUID(bytes=data)),
    tuple: (lambda value: [_to_plain(item) for item in value], lambda v: tuple(map(_of_plain, v))),
    Product: (
        lambda time: [_to_plain(time.first), _to_plain(time.second)],
        lambda parts: Product(*map(_of_plain, parts)),
    ),
    frozenset: (
        lambda value: [_to_plain(item) for item in value],
        lambda v: frozenset(map(_of_plain, v)),
    ),
}
_NAMES = {kind.__name__: make for kind, (_, make) in _KINDS.items()}


def _encode_plain(value: Any) -> bytes:
    return _pack(_to_plain(value))


def _decode_plain(data: bytes) -> Any:
    return _of_plain(msgspec.msgpack.decode(data))


def _to_plain(value: Any) -> Any:
    """Builtins unchanged; all others as a list of the name of their type and their content."""
    kind = type(value)
    if value is None or kind in (bool, float, str, bytes):
        return value
    if kind is int and -(1 << 63) <= value < (1 << 63):
        return value
    if kind not in _KINDS:
        raise InputError(
            Problem(
                "key-without-a-type",
                f"the key {value!r} is a {kind.__name__}, and its type is not declared",
                "annotate what the function of key_by returns",
            )
        )
    return [kind.__name__, _KINDS[kind][0](value)]


def _of_plain(value: Any) -> Any:
    return _NAMES[value[0]](value[1]) if isinstance(value, list) else value
