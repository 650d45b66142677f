"""Type inference for aggregations, over all events or over windows: the records they emit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import make_dataclass, replace
from functools import cache
from typing import Any, cast

from cutwater.annotations import fields_of, fits, typename
from cutwater.errors import Problem
from cutwater.flow import steps as s
from cutwater.flow.inferred.problems import (
    check_length,
    needs_numbers,
    never_frees,
    type_of_field,
)
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.lengths import has_predecessors, time_of_bounds
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.windows import Session, Window

__all__ = ["type_of_aggregation", "type_of_windows"]


def type_of_aggregation(
    step: s.AggregateAll, stream: StreamType, problems: list[Problem]
) -> StreamType:
    """The output of an aggregation over all events."""
    if step.emit not in ("event", "epoch"):
        problems.append(
            Problem(
                "unknown-emit",
                f"{step.title} has emit={step.emit!r}; it emits per 'event' or per 'epoch'",
                "use emit='event' or emit='epoch'",
            )
        )
    if not step.unbounded and any(getattr(a, "keeps_all", False) for _, a in step.aggregates):
        problems.append(never_frees(step))
    return replace(stream, value=_record(step, step.aggregates, stream, [], problems))


def type_of_windows(
    step: s.AggregateWindows, stream: StreamType, problems: list[Problem]
) -> StreamType:
    """The output of an aggregation over windows: one record per key and window."""
    if not isinstance(cast(object, step.window), Window):
        problems.append(
            Problem(
                "not-a-window",
                f"{step.title} has windows of {step.window!r}; a window is tumbling, sliding or "
                "a session",
                "for example window(cw.tumbling(10))",
            )
        )
    elif not has_predecessors(stream.time):
        problems.append(needs_numbers(step, "a window", stream.time))
    else:
        _check_window(step, step.window, stream.time, problems)
    time = time_of_bounds(step.window, stream.time)
    bounds = [("window_start", time), ("window_end", time)]
    value = _record(step, step.aggregates, stream, bounds, problems)
    return replace(stream, value=value, time=time)


def _check_window(step: s.Step, window: Window, time: Any, problems: list[Problem]) -> None:
    lengths = ["gap"] if isinstance(window, Session) else ["size", "every"]
    if not isinstance(window, Session) and window.size == window.every:
        lengths = ["size"]
    for name in lengths:
        check_length(step, name, getattr(window, name), time, problems, least=None)
    offset = None if isinstance(window, Session) else window.offset
    if offset is not None and not fits(type(offset), time):
        problems.append(
            Problem(
                "window-offset",
                f"{step.title} has offset={offset!r}; an offset is a time at which a window "
                f"begins, here {typename(time)}",
                "give a time, not a distance",
            )
        )


def _record(
    step: s.Step,
    aggregates: Sequence[tuple[str, Aggregate]],
    stream: StreamType,
    bounds: list[tuple[str, Any]],
    problems: list[Problem],
) -> Any:
    fields = fields_of(stream.value)
    results: list[tuple[str, Any]] = []
    for name, aggregate in aggregates:
        if not isinstance(cast(object, aggregate), Aggregate):
            problems.append(
                Problem(
                    "not-an-aggregate",
                    f"{step.title} has {name}={aggregate!r}; it takes aggregates",
                    f"for example {name}=agg.count()",
                )
            )
            results.append((name, Any))
            continue
        read = stream.value
        if aggregate.field is not None:
            read = (
                Any
                if fields is None
                else type_of_field(step, aggregate.field, fields, stream.value, problems)
            )
        results.append((name, aggregate.type_of(read)))
    columns = [*(stream.key or ()), *bounds, *results]
    twice = [name for name, n in Counter(name for name, _ in columns).items() if n > 1]
    if twice or not results:
        message = f"has the column '{twice[0]}' twice" if twice else "has no aggregates"
        problems.append(
            Problem(
                "aggregate-columns",
                f"{step.title} {message}; key, window bounds and aggregates are columns of one "
                "record",
                "give each aggregate a name of its own: total=agg.sum('amount')",
            )
        )
        return Any
    return _record_class("".join(map(str.capitalize, step.name.split("_"))), tuple(columns))


@cache
def _record_class(title: str, columns: tuple[tuple[str, Any], ...]) -> Any:
    """Cached, so that records of two runs are of one class and compare equal."""
    return make_dataclass(title, columns, frozen=True)
