"""Small inputs for a flow, generated from the types of its sources, reproducible by seed.

Not by hypothesis: `check` runs without it, and a seed in a report must give these inputs again.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import random
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from cutwater.annotations import fields_of, members, plain_type, typename
from cutwater.errors import CutwaterError, InputError, Problem
from cutwater.flow.builder import Flow
from cutwater.flow.steps import Source
from cutwater.semantics.inputs import BARRIER, Crash, as_lists

__all__ = ["inputs_to_try", "sample_inputs", "sample_value"]

_DAY = dt.datetime(2024, 1, 1)

_SIMPLE: dict[Any, Callable[[random.Random], Any]] = {
    bool: lambda drawn: drawn.random() < 0.5,
    int: lambda drawn: drawn.randint(0, 3),
    float: lambda drawn: drawn.choice([0.0, 1.0, 2.5, -1.0]),
    str: lambda drawn: drawn.choice("ab"),
    bytes: lambda drawn: drawn.choice([b"", b"a"]),
    Decimal: lambda drawn: Decimal(drawn.randint(0, 30)) / 10,
    dt.datetime: lambda drawn: _DAY + dt.timedelta(minutes=drawn.randint(0, 5)),
    dt.date: lambda drawn: _DAY.date() + dt.timedelta(days=drawn.randint(0, 2)),
    dt.timedelta: lambda drawn: dt.timedelta(minutes=drawn.randint(0, 5)),
    dt.time: lambda drawn: dt.time(drawn.randint(0, 2)),
    uuid.UUID: lambda drawn: uuid.UUID(int=drawn.randint(0, 3)),
    type(None): lambda _drawn: None,
    Any: lambda drawn: drawn.randint(0, 3),
    object: lambda drawn: drawn.randint(0, 3),
}

_MADE = (list, set, frozenset)

_TIMES: dict[Any, Callable[[int], Any]] = {
    int: int,
    float: float,
    Decimal: Decimal,
    dt.datetime: lambda n: _DAY + dt.timedelta(seconds=n),
    dt.date: lambda n: _DAY.date() + dt.timedelta(days=n),
}


def sample_inputs(
    flow: Flow, seed: int = 0, *, epochs: int = 2, size: int = 2
) -> dict[str, list[Any]]:
    """For each source a few values in a few epochs; times mostly increase."""
    drawn = random.Random(seed)
    inputs: dict[str, list[Any]] = {}
    for source in flow.steps:
        if isinstance(source, Source):
            items: list[Any] = []
            for epoch in range(epochs):
                items += [BARRIER] if epoch else []
                for _ in range(drawn.randint(0 if epoch else 1, size)):
                    items.append(_record(source, drawn, len(items)))
            inputs[source.name] = items
    return inputs


def inputs_to_try(
    flow: Flow, inputs: Mapping[str, Iterable[Any]] | None, count: int, seed: int
) -> list[dict[str, list[Any]]]:
    """The given inputs, without crashes; if None, generated ones."""
    if inputs is None:
        return [sample_inputs(flow, seed * 1_000 + n) for n in range(max(1, count))]
    inputs_as_lists = as_lists(inputs)
    if any(isinstance(item, Crash) for items in inputs_as_lists.values() for item in items):
        raise InputError(
            Problem(
                "crash-in-inputs",
                "the inputs contain a crash; check tries every crash itself",
                "leave it out, or use simulate",
            )
        )
    return [inputs_as_lists]


def _record(source: Source, drawn: random.Random, n: int) -> Any:
    try:
        value = sample_value(source.type, drawn)
        if source.time is None:
            return value
        make = _TIMES.get((fields_of(type(value)) or {}).get(source.time))
        return value if make is None else _with_time(value, source.time, make(n))
    except CutwaterError as error:
        message = f"{source.title}: {error.problems[0].message}"
        raise InputError(dataclasses.replace(error.problems[0], message=message)) from None


def _with_time(value: Any, field: str, time: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **{field: time})
    if isinstance(value, tuple) and hasattr(value, "_replace"):
        return value._replace(**{field: time})
    return dataclasses.replace(value, **{field: time})


def sample_value(tp: Any, drawn: random.Random) -> Any:
    """A small value of a type; `InputError` if none can be generated.

    >>> sample_value(tuple[int, str], random.Random(0))
    (3, 'b')
    """
    try:
        return _value(tp, drawn)
    except (RecursionError, IndexError):  # a type without a finite value, or without any
        raise _no_sample(tp) from None


def _value(tp: Any, drawn: random.Random) -> Any:
    tp = drawn.choice(members(tp))
    if get_origin(tp) is Literal:
        return drawn.choice(get_args(tp))
    tp = drawn.choice(members(plain_type(tp)))
    origin, args = get_origin(tp) or tp, get_args(tp)
    if tp in _SIMPLE:
        return _SIMPLE[tp](drawn)
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return drawn.choice(list(tp))
    if origin in (list, set, frozenset, Sequence, Iterable, Collection):
        made = (_value(args[0] if args else int, drawn) for _ in range(drawn.randint(0, 2)))
        return origin(made) if isinstance(origin, type) and origin in _MADE else list(made)
    if origin is tuple:
        kinds = args[:1] * drawn.randint(0, 2) if args[1:] == (...,) else args
        return tuple(_value(kind, drawn) for kind in kinds)
    if origin in (dict, Mapping):
        key, item = args or (str, int)
        return {_value(key, drawn): _value(item, drawn) for _ in range(drawn.randint(0, 2))}
    return _sample_record(tp, drawn)


def _sample_record(tp: Any, drawn: random.Random) -> Any:
    fields = get_type_hints(tp) if is_typeddict(tp) else fields_of(tp)
    if dataclasses.is_dataclass(tp):
        fields = {f.name: (fields or {})[f.name] for f in dataclasses.fields(tp) if f.init}
    if fields:
        for _ in range(20):
            values = {name: _value(kind, drawn) for name, kind in fields.items()}
            try:
                return tp(**values)
            except Exception:  # a record may reject some values, with any exception
                continue
    raise _no_sample(tp)


def _no_sample(tp: Any) -> InputError:
    return InputError(
        Problem(
            "no-sample",
            f"no {typename(tp)} can be generated as an input",
            "pass inputs",
        )
    )
