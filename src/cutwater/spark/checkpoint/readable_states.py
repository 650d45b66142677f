"""Makes states readable for people, from their bytes and the schema stored in the checkpoint.

It needs no flow, and executes nothing of what it reads.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cutwater.schema import Schema

__all__ = ["column_of", "state_of"]

_NUMBERS = {"int": "<i8", "float": "<f8", "bool": "?"}


def state_of(data: bytes, schema: Schema) -> Any:
    """Decode a state to JSON values: records become dicts of their fields."""
    try:
        return _shaped(msgspec.msgpack.decode(data), schema)
    except msgspec.DecodeError:
        alternatives = _args(schema, "|")  # the first byte is the number of the alternative
        if data and data[0] < len(alternatives):
            return state_of(data[1:], alternatives[data[0]])
        raise


def column_of(kind: str, data: bytes, schema: Schema) -> list[Any]:
    """Decode a column of states; `schema` is that of one state."""
    if kind == "object":
        return [_shaped(value, schema) for value in msgspec.msgpack.decode(data)]
    import numpy as np

    values: list[Any] = np.frombuffer(data, _NUMBERS[kind]).tolist()
    return values


def _shaped(value: Any, schema: Schema) -> Any:
    """A msgpack value with its field names; parts that were encoded separately are decoded."""
    if isinstance(value, bytes) and schema != "bytes" and not _may_be_bytes(schema):
        return state_of(value, schema)
    if isinstance(schema, dict) and "record" in schema:
        return _record(value, schema["fields"])
    args = schema.get("args", []) if isinstance(schema, dict) else []
    if isinstance(value, list) and args and _of(schema) == "tuple" and args[-1:] != ["..."]:
        if len(args) == len(value):
            return [_shaped(v, arg) for v, arg in zip(value, args, strict=True)]
        return value
    if isinstance(value, list) and args and _of(schema) in ("dict", "Counter"):
        kinds = [*args, "int"][:2]
        return [[_shaped(v, kind) for v, kind in zip(pair, kinds, strict=True)] for pair in value]
    if isinstance(value, list) and args and _of(schema) != "|":
        return [_shaped(item, args[0]) for item in value]
    if isinstance(value, dict) and len(args) == 2:
        return {key: _shaped(item, args[1]) for key, item in value.items()}
    if _of(schema) == "|":
        records = [arg for arg in args if isinstance(arg, dict) and "record" in arg]
        if len(records) == 1 and isinstance(value, (dict, list)):
            return _shaped(value, records[0])
    return value


def _record(value: Any, fields: dict[str, Any]) -> Any:
    if isinstance(value, list) and len(value) == len(fields):
        pairs = zip(fields.items(), value, strict=True)
        return {name: _shaped(item, field["type"]) for (name, field), item in pairs}
    if isinstance(value, dict):
        return {
            name: _shaped(item, fields[name]["type"]) if name in fields else item
            for name, item in value.items()
        }
    return value


def _of(schema: Schema) -> str:
    return str(schema.get("of", "")) if isinstance(schema, dict) else ""


def _args(schema: Schema, of: str) -> list[Schema]:
    return list(schema["args"]) if _of(schema) == of else []


def _may_be_bytes(schema: Schema) -> bool:
    return "bytes" in _args(schema, "|")
