"""Round trips: does a value survive being encoded and decoded by its declared type?

Everything an engine snapshots, or sends to another process, goes through the codec of the type that
annotations declare. A value of another type (an ``int`` where a ``float`` is declared, a subclass,
a ``Counter`` in a ``dict``) comes back as the declared type, or cannot be decoded at all.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args, get_origin

import msgspec

from cutwater.annotations import fields_of, fits, is_immutable, members, plain_type, typename
from cutwater.codec import Codec
from cutwater.errors import CutwaterError, InputError

__all__ = [
    "Loss",
    "difference",
    "exactness",
    "first_misfit",
    "round_trip",
    "shared_part",
    "unencodable_part",
]

_NO_KEY = "a NaN does not equal itself, so it is not found again after it was restored"
_SCALARS = (int, bool, str, bytes, type(None))
_DATES = (dt.date, dt.time, dt.timedelta)  # includes datetime, a subclass of date
_FAILURES = (TypeError, ValueError, AttributeError, OverflowError, RecursionError, KeyError)
"""What encoding or decoding may raise for a value of another type."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A part of a value that does not survive the round trip."""

    path: str
    """The path of fields to it, such as ``match.auth.country``; empty: the value itself."""
    sent: Any
    """The part before the round trip."""
    back: Any
    """The part after it; None if there is a `reason`."""
    reason: str = ""
    """Why it is lost; empty: something else comes back."""

    @property
    def found(self) -> str:
        """The part before the round trip, as a phrase with its path."""
        return f"{_at(self.path)}{_formatted(self.sent)}"

    def __str__(self) -> str:
        if self.reason:
            return f"{self.found}, which is lost: {self.reason}"
        return f"{self.found}, and comes back as {_formatted(self.back)}"


def _at(path: str) -> str:
    return f"'{path}' is " if path else "it is "


def _formatted(value: Any) -> str:
    try:
        text = ascii(value) if isinstance(value, str) else repr(value)
    except Exception:
        text = "a value that cannot be shown"
    return f"{text[:200]} ({type(value).__name__})"


def round_trip(value: Any, codec: Codec) -> tuple[Any, Loss | None]:
    """A value after its round trip, and its first loss if any; if it fails, the value itself.

    Raises `InputError` for a part that is declared as `Plain` and is not plain.

    >>> round_trip({"a": [1, 2]}, Codec(dict[str, list[int]]))
    ({'a': [1, 2]}, None)
    >>> print(round_trip({"a": (1, 2)}, Codec(dict[str, list[int]]))[1])
    '['a']' is (1, 2) (tuple), and comes back as [1, 2] (list)
    """
    try:
        data = codec.encode(value)
    except InputError as error:
        if error.problems[0].code == "key-without-a-type":
            raise
        return value, _misfit(value, codec.type, error)
    except _FAILURES as error:
        return value, _unencodable(value, codec.type, error)
    try:
        back = codec.decode(data)
    except _FAILURES as error:
        return value, _misfit(value, codec.type, error)
    return back, difference(value, back)


def difference(sent: Any, back: Any) -> Loss | None:
    """The first part in which two values differ: in type, in content, or in extra attributes.

    >>> difference([1, 2.0], [1, 2])
    Loss(path='[1]', sent=2.0, back=2, reason='')
    """
    return _difference(sent, back, "")


def _difference(sent: Any, back: Any, path: str) -> Loss | None:
    if sent is back:
        return None
    kind = type(sent)
    if kind is not type(back):
        return Loss(path, sent, back)
    if kind in _SCALARS:
        return None if sent == back else Loss(path, sent, back)
    if kind is float or isinstance(sent, (*_DATES, enum.Enum)):
        return None if repr(sent) == repr(back) else Loss(path, sent, back)
    if isinstance(sent, (list, tuple)):
        return _of_sequences(sent, back, path)
    if isinstance(sent, dict):
        return _of_dicts(sent, back, path)
    if isinstance(sent, (set, frozenset)):
        for item in sent:
            if not _is_itself(item):
                return Loss(path, sent, None, _NO_KEY)
        return None if _shape(sent) == _shape(back) else Loss(path, sent, back)
    names = _names_of(sent)
    if names is None:
        return None if _is_alike(sent, back) else Loss(path, sent, back)
    for name in names:
        found = _difference(getattr(sent, name, None), getattr(back, name, None), f"{path}.{name}")
        if found is not None:
            return _from_the_root(found)
    return _extra(sent, back, names, path)


def _is_alike(sent: Any, back: Any) -> bool:
    try:
        is_equal = bool(sent == back)
    except (ArithmeticError, *_FAILURES):  # a signalling NaN, or anything a user's class raises
        is_equal = False
    return (is_equal or not _is_itself(sent)) and repr(sent) == repr(back)


def _is_itself(value: Any) -> bool:
    """Does a value equal itself? A NaN does not."""
    try:
        return bool(value == value)
    except (ArithmeticError, *_FAILURES):
        return False


def _of_sequences(sent: Any, back: Any, path: str) -> Loss | None:
    if len(sent) != len(back):
        return Loss(path, sent, back)
    names = getattr(sent, "_fields", None)
    for number, (one, other) in enumerate(zip(sent, back, strict=True)):
        at = f"{path}.{names[number]}" if names else f"{path}[{number}]"
        found = _difference(one, other, at)
        if found is not None:
            return _from_the_root(found)
    return None


def _of_dicts(sent: Any, back: Any, path: str) -> Loss | None:
    for (key, one), (other_key, other) in zip(sent.items(), back.items(), strict=False):
        at = f"{path}[{key!r}]"
        if not _is_itself(key):
            return _from_the_root(Loss(at, key, None, _NO_KEY))
        found = _difference(key, other_key, at) or _difference(one, other, at)
        if found is not None:
            return _from_the_root(found)
    return None if len(sent) == len(back) else Loss(path, sent, back)


def _shape(items: Any) -> frozenset[tuple[type, str]]:
    return frozenset((type(item), repr(item)) for item in items)


def _extra(sent: Any, back: Any, names: tuple[str, ...], path: str) -> Loss | None:
    """An attribute that is not a field and not the cache of a cached property; None if none."""
    for name, value in getattr(sent, "__dict__", {}).items():
        is_cache = isinstance(getattr(type(sent), name, None), cached_property)
        if name not in names and not is_cache and name not in getattr(back, "__dict__", {}):
            reason = f"{type(sent).__name__} declares no such field"
            return _from_the_root(Loss(f"{path}.{name}", value, None, reason))
    return None


def _names_of(value: Any) -> tuple[str, ...] | None:
    """The fields of a record; None: the value is not a record."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    return None


def _from_the_root(loss: Loss) -> Loss:
    return dataclasses.replace(loss, path=loss.path.removeprefix("."))


_Exact = Callable[[Any], bool]
_EXACT: dict[Any, _Exact] = {
    int: lambda value: type(value) is int and -(1 << 63) <= value < (1 << 64),
    float: lambda value: type(value) is float,
    str: lambda value: type(value) is str and value.isascii(),
    bool: lambda value: value is True or value is False,
    bytes: lambda value: type(value) is bytes,
    type(None): lambda value: value is None,
}


@lru_cache(maxsize=512)
def exactness(tp: Any) -> _Exact:
    """A fast test of whether a value matches its declared type so exactly that it survives.

    A False decides nothing: then only the round trip itself can tell.

    >>> exactness(list[float])([1.0]), exactness(list[float])([1])
    (True, False)
    """
    return _exactness(tp, ()) or _never


def _never(_value: Any) -> bool:
    return False


def _exactness(tp: Any, inside: tuple[Any, ...]) -> _Exact | None:
    if tp in _EXACT:
        return _EXACT[tp]
    if tp in inside:
        return None
    origin, args = get_origin(tp), get_args(tp)
    if len(members(tp)) > 1:
        return _any_of([_exactness(member, (*inside, tp)) for member in members(tp)])
    if origin is list or (origin is tuple and args[1:] == (...,)):
        return _all_of(origin, _exactness(args[0], (*inside, tp)))
    if dataclasses.is_dataclass(tp) and isinstance(tp, type):
        declared = fields_of(tp, constrained=True) or {}
        return _record_of(tp, {n: _exactness(t, (*inside, tp)) for n, t in declared.items()})
    return None


def _any_of(checks: list[_Exact | None]) -> _Exact | None:
    if None in checks:
        return None
    return lambda value: any(check(value) for check in checks)  # type: ignore[misc]


def _all_of(kind: Any, check: _Exact | None) -> _Exact | None:
    if check is None:
        return None
    return lambda value: type(value) is kind and all(map(check, value))


def _record_of(tp: type, fields: dict[str, _Exact | None]) -> _Exact | None:
    if None in fields.values() or "__dict__" not in dir(tp) or _has_code_for_decoding(tp):
        return None
    checks: list[tuple[str, Any]] = list(fields.items())
    count = len(checks)

    def is_exact(value: Any) -> bool:
        if type(value) is not tp:
            return False
        held = value.__dict__
        return len(held) == count and all(name in held and c(held[name]) for name, c in checks)

    return is_exact


def _has_code_for_decoding(tp: Any) -> bool:
    """May decoding give other fields than were encoded? Only trying it can tell."""
    has_other_fields = not all(field.init for field in dataclasses.fields(tp))
    sets_itself = not tp.__dataclass_params__.frozen and tp.__setattr__ is not object.__setattr__
    is_made_itself = tp.__new__ is not object.__new__
    return has_other_fields or sets_itself or is_made_itself or hasattr(tp, "__post_init__")


def first_misfit(value: Any, tp: Any) -> Loss | None:
    """The first part of a value that is not of its declared type; None if all parts are.

    >>> first_misfit([1, "a"], list[int])
    Loss(path='[1]', sent='a', back=None, reason='it is declared as int')
    """
    found = _place_of_misfit(value, tp, "")
    return found and _from_the_root(found)


def _misfit(value: Any, tp: Any, error: Exception) -> Loss:
    return first_misfit(value, tp) or _from_the_root(_failing_part(value, tp, "", _reason(error)))


def _failing_part(value: Any, tp: Any, path: str, reason: str) -> Loss:
    """The innermost part that fails by itself, of a value whose parts fit what is declared.

    A ``bool`` fits an ``int`` and ``numpy.float64`` a ``float``, but the codec takes neither.
    """
    alternatives = [plain_type(member) for member in members(plain_type(tp))]
    for member in alternatives:
        origin = get_origin(member) or member
        if origin is Any or not fits(type(value), origin):
            continue
        for part, declared, at in _parts(value, member, origin):
            failure = _failure(part, declared)
            if failure is not None:
                return _failing_part(part, declared, f"{path}{at}", failure)
    is_as_declared = type(value) in [get_origin(member) or member for member in alternatives]
    return Loss(path, value, None, reason) if is_as_declared else _declared(value, tp, path)


def _failure(value: Any, tp: Any) -> str | None:
    """Why a value fails its round trip; None if it does not."""
    try:
        codec = Codec(tp)
        codec.decode(codec.encode(value))
    except (InputError, *_FAILURES) as error:
        return _reason(error)
    return None


def _place_of_misfit(value: Any, tp: Any, path: str) -> Loss | None:
    if get_origin(tp) is Literal:
        return None if value in get_args(tp) else _declared(value, tp, path)
    alternatives = members(plain_type(tp))
    found = [_in_one(value, plain_type(member), path) for member in alternatives]
    if None in found:
        return None
    deepest = max((loss for loss in found if loss), key=lambda loss: len(loss.path))
    return deepest if len(deepest.path) > len(path) else _declared(value, tp, path)


def _declared(value: Any, tp: Any, path: str) -> Loss:
    return Loss(path, value, None, f"it is declared as {typename(tp)}")


def _in_one(value: Any, tp: Any, path: str) -> Loss | None:
    origin = get_origin(tp) or tp
    if tp is Any or origin is Any:
        return None
    if not fits(type(value), origin):
        return _declared(value, tp, path)
    places = ((v, t, f"{path}{at}") for v, t, at in _parts(value, tp, origin))
    return next((found for v, t, at in places if (found := _place_of_misfit(v, t, at))), None)


def _parts(value: Any, tp: Any, origin: Any) -> Iterator[tuple[Any, Any, str]]:
    """The parts of a value, each with its declared type and its path."""
    args = get_args(tp)
    fields = fields_of(tp, constrained=True) or {}
    for name, declared in fields.items():
        yield getattr(value, name, None), declared, f".{name}"
    if fields or not args:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, args[0], f"[{key!r}]"
            yield item, args[-1], f"[{key!r}]"
    elif isinstance(value, tuple) and origin is tuple and args[1:] != (...,):
        yield from ((v, t, f"[{n}]") for n, (v, t) in enumerate(zip(value, args, strict=False)))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((item, args[0], f"[{n}]") for n, item in enumerate(value))


def shared_part(value: Any) -> tuple[str, str] | None:
    """Two paths to one mutable part, of which a snapshot would make two; None if there is none.

    >>> held = [1]
    >>> shared_part({"a": held, "b": held}), shared_part({"a": [1], "b": [1]})
    (("['a']", "['b']"), None)
    """
    return _shared(value, "", {})


def _shared(value: Any, path: str, seen: dict[int, str]) -> tuple[str, str] | None:
    if is_immutable(value):
        return None
    if id(value) in seen:
        return seen[id(value)].removeprefix("."), path.removeprefix(".")
    seen[id(value)] = path
    found = (_shared(part, f"{path}{at}", seen) for part, at in _inside(value))
    return next((pair for pair in found if pair), None)


_BITS = "whole numbers have at most 64 bits"
_UNICODE = "text is Unicode, and a lone surrogate is not"


def unencodable_part(value: Any) -> Loss | None:
    """The first part that no encoding takes; None if there is none, or it is nested too deeply.

    >>> print(unencodable_part(["a", "\\ud800"]))
    '[1]' is '\\ud800' (str), which is lost: text is Unicode, and a lone surrogate is not
    """
    try:
        found = _unencodable_leaf(value, "", ())
    except RecursionError:
        return None
    return found and _from_the_root(found)


def _unencodable(value: Any, tp: Any, error: Exception) -> Loss:
    return unencodable_part(value) or _misfit(value, tp, error)


def _unencodable_leaf(value: Any, path: str, above: tuple[int, ...]) -> Loss | None:
    if isinstance(value, int) and not -(1 << 63) <= value < (1 << 64):
        return Loss(path, value, None, _BITS)
    if isinstance(value, str) and not _is_unicode(value):
        return Loss(path, value, None, _UNICODE)
    if id(value) in above:
        return Loss(path, value, None, "it contains itself")
    for part, at in _inside(value):
        found = _unencodable_leaf(part, f"{path}{at}", (*above, id(value)))
        if found is not None:
            return found
    return None


def _inside(value: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(value, dict):
        yield from ((part, f"[{key!r}]") for key, item in value.items() for part in (key, item))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((item, f"[{n}]") for n, item in enumerate(value))
    else:
        names = _names_of(value) or ()
        yield from ((getattr(value, name, None), f".{name}") for name in names)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: Exception) -> str:
    return error.problems[0].message if isinstance(error, CutwaterError) else str(error)
