"""Schemas: a type as plain data, so that a later run can check that it still reads stored state.

A schema is a name such as ``"int"``, ``{"of": "list", "args": [...]}``, or a record with its
fields. Class names are for people only; the stored bytes do not contain them.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from cutwater.annotations import fields_of, members, typename
from cutwater.codec import is_native

__all__ = ["Schema", "render", "schema_of", "what_breaks"]

Schema = Any
"""A string, or a dict that JSON can hold."""


def schema_of(tp: Any) -> Schema:
    """The schema of a type.

    >>> schema_of(dict[str, int | None])
    {'of': 'dict', 'args': ['str', {'of': '|', 'args': ['int', 'None']}]}
    """
    return _schema(tp, (), by_name=False)


def _schema(tp: Any, inside: tuple[Any, ...], *, by_name: bool) -> Schema:
    tp = _behind(tp)
    if tp in inside:
        return f"^{len(inside) - inside.index(tp)}"
    by_name = by_name or is_native(tp)
    if len(members(tp)) > 1:
        return _of("|", [_schema(m, inside, by_name=by_name) for m in members(tp)])
    if get_origin(tp) is Literal:
        return _of("one of", sorted(map(repr, get_args(tp))))
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return _of("one of", sorted(repr(member.value) for member in tp))
    required = _required(get_origin(tp) or tp)
    if required is not None:
        return _record(tp, required, inside, by_name=by_name)
    if get_args(tp):
        args = ["..." if a is ... else _schema(a, inside, by_name=by_name) for a in get_args(tp)]
        return _of(typename(get_origin(tp)), args)
    return typename(tp)


def _of(name: str, args: list[Schema]) -> Schema:
    return {"of": name, "args": args}


def _behind(tp: Any) -> Any:
    """The type behind a NewType or an alias."""
    for behind in ("__supertype__", "__value__"):
        if not isinstance(tp, type) and hasattr(tp, behind):
            return _behind(getattr(tp, behind))
    return tp


def _required(tp: Any) -> dict[str, bool] | None:
    """The fields of a record, and whether each is required; None: the type is not a record."""
    if dataclasses.is_dataclass(tp):
        return {f.name: _has_no_default(f) for f in dataclasses.fields(tp)}
    if not isinstance(tp, type):
        return None
    if issubclass(tp, msgspec.Struct):
        return {f.name: f.required for f in msgspec.structs.fields(tp)}
    record: Any = tp
    if issubclass(tp, tuple) and hasattr(tp, "_fields"):
        return {name: name not in record._field_defaults for name in record._fields}
    if typing.is_typeddict(tp):
        return {name: name in record.__required_keys__ for name in record.__annotations__}
    return None


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _record(
    tp: Any, required: dict[str, bool], inside: tuple[Any, ...], *, by_name: bool
) -> Schema:
    hints = typing.get_type_hints(tp) if typing.is_typeddict(tp) else fields_of(tp) or {}
    fields = {
        name: {
            "type": _schema(hints.get(name, Any), (*inside, tp), by_name=by_name),
            "required": is_required,
        }
        for name, is_required in required.items()
    }
    config = getattr(get_origin(tp) or tp, "__struct_config__", None)
    is_row = isinstance(tp, type) and issubclass(tp, tuple)
    is_row = is_row or bool(config and config.array_like)
    kept_by = "name" if by_name and not is_row else "place"
    tag = str(config.tag) if config and config.tag is not None else ""
    args = [_schema(a, (*inside, tp), by_name=by_name) for a in get_args(tp)]
    return {"record": typename(tp), "by": kept_by, "tag": tag, "args": args, "fields": fields}


def render(schema: Schema) -> str:
    """A schema for people.

    >>> render(schema_of(dict[str, int | None]))
    'dict[str, int | None]'
    """
    if isinstance(schema, str):
        return schema
    if "record" in schema:
        fields = (f"{name}: {render(f['type'])}" for name, f in schema["fields"].items())
        return f"{schema['record']}({', '.join(fields)})"
    args = [render(arg) for arg in schema["args"]]
    return " | ".join(args) if schema["of"] == "|" else f"{schema['of']}[{', '.join(args)}]"


def what_breaks(before: Schema, now: Schema, subject: str = "it") -> Iterator[str]:
    """The reasons why bytes written with one schema cannot be read with another; none if they can.

    >>> list(what_breaks("int", schema_of(float)))
    ['it was int and is float']
    """
    if isinstance(before, str) or isinstance(now, str):
        is_same = before == now
    elif "record" in before and "record" in now:
        is_same = _same_writing(before, now)
    else:
        is_same = before.get("of", "") == now.get("of") and len(before["args"]) == len(now["args"])
    if not is_same:
        yield f"{subject} was {render(before)} and is {render(now)}"
    elif isinstance(before, dict):
        for old, new in zip(before["args"], now["args"], strict=True):
            yield from what_breaks(old, new, f"a part of {subject}")
        if "record" in before:
            yield from _broken_fields(before["fields"], now["fields"], subject)


def _same_writing(before: Schema, now: Schema) -> bool:
    """Is the encoding the same? Records encoded without field names must have the same fields."""
    alike = all(before[what] == now[what] for what in ("by", "tag"))
    alike = alike and len(before["args"]) == len(now["args"])
    return alike and (now["by"] == "name" or list(before["fields"]) == list(now["fields"]))


def _broken_fields(before: dict[str, Any], now: dict[str, Any], subject: str) -> Iterator[str]:
    for name, field in now.items():
        if name not in before:
            if field["required"]:
                yield f"field '{name}' of {subject} is new and has no default"
        elif field["required"] and not before[name]["required"]:
            yield f"field '{name}' of {subject} had a default and has none"
    for name, field in before.items():
        if name in now:
            yield from what_breaks(field["type"], now[name]["type"], f"field '{name}' of {subject}")
        else:
            yield f"field '{name}' of {subject} was removed"
