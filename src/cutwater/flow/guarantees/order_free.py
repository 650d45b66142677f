"""Which steps give the same result whatever the order of events in an epoch, decided statically.

The same result means equal states at the end of the epoch, and the same bag of outputs in it. It
is decided by the step and its types, never by trial; a step not known to be order-free is assumed
to depend on order. A task is order-free if it claims so (``commutative=True``), and ``check``
tests that claim.

A value carries a time. A step whose outputs take the time of the event that caused them may emit
the same values at other times; that matters where a later step looks at times.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cutwater.annotations import fields_of, members, plain_type, typename
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.inference import infer
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.operators.aggregates import Aggregate

__all__ = ["Order", "Reason", "order_at", "orders_of", "steps_before", "why_order_matters"]

_ONE_WAY = (int, bool, str, bytes, dt.date, dt.timedelta, uuid.UUID, type(None))
"""Types whose equal values are indistinguishable, unlike 0.0 and -0.0, or 1 and True."""


@dataclass(frozen=True)
class Reason:
    """Why the order of events matters at a step."""

    step: str
    why: str
    """Completes "``totals`` …": "adds floats, which round differently in another order"."""

    def __str__(self) -> str:
        return f"`{self.step}` {self.why}"


@dataclass(frozen=True)
class Order:
    """Whether a step's output in an epoch may depend on the order of the epoch's events."""

    step: str
    reasons: tuple[Reason, ...]
    """Where it may; empty: it does not depend on order."""
    claims: tuple[str, ...]
    """The steps assumed commutative because they claim to be."""

    @property
    def is_free(self) -> bool:
        """Is the output the same in any order of events, provided the claims are true?"""
        return not self.reasons


def orders_of(flow: Flow, refuted: Collection[str] = ()) -> dict[str, Order]:
    """For each sink of a valid flow, whether order matters; claims of refuted steps are ignored.

    Examples
    --------
    >>> from cutwater.operators import aggregates as agg
    >>> flow = Flow("words")
    >>> words = flow.source("words", str)
    >>> _ = words.aggregate(n=agg.count()).sink("counts")
    >>> _ = words.aggregate(word=agg.last()).sink("newest")
    >>> {name: order.is_free for name, order in orders_of(flow).items()}
    {'counts': True, 'newest': False}
    """
    sinks = [(n, step) for n, step in enumerate(flow.steps) if isinstance(step, s.Sink)]
    return {sink.name: order_at(flow, number, refuted) for number, sink in sinks}


def steps_before(flow: Flow, number: int) -> list[int]:
    """The numbers of the steps that lead to a step, including itself, in the order of the flow."""
    found, waiting = {number}, [number]
    while waiting:
        new = set(flow.steps[waiting.pop()].inputs) - found
        found |= new
        waiting += new
    return sorted(found)


def order_at(flow: Flow, number: int, refuted: Collection[str] = ()) -> Order:
    """Whether order matters anywhere from the sources up to and including a step."""
    types = infer(flow.steps)[0]
    before = steps_before(flow, number)
    reasons, claims = [], []
    for n in before:
        step = flow.steps[n]
        stream = types[step.inputs[0]] if step.inputs else StreamType()
        why = why_order_matters(step, stream)
        if isinstance(step, s.Apply) and why is None:
            claims.append(step.name)
            if step.name in refuted:
                why = "claims to be commutative, and is not"
        if why is not None:
            reasons.append(Reason(step.name, why))
    reasons += _by_time(flow, before)
    return Order(flow.steps[number].name, tuple(reasons), tuple(claims))


def _by_time(flow: Flow, before: Sequence[int]) -> Iterator[Reason]:
    """Steps whose output times depend on order, where a later step looks at times."""
    timed = [n for n in before if _looks_at_times(flow.steps[n])]
    for n in before:
        why = _why_times_vary(flow.steps[n])
        later = [flow.steps[t].name for t in timed if t != n and n in steps_before(flow, t)]
        if why and later:
            yield Reason(flow.steps[n].name, f"{why}, and `{later[0]}` looks at times")


def _looks_at_times(step: s.Step) -> bool:
    is_expiring = isinstance(step, s.Apply) and step.expire_after is not None
    return step.waits or step.reads_times or is_expiring or isinstance(step, s.Accumulate)


def _why_times_vary(step: s.Step) -> str | None:
    match step:
        case s.Source() if step.time is None:
            return "numbers its events as they come"
        case s.Apply() | s.AggregateAll() | s.Bulk() | s.Operate():
            return "emits at the time of the event that happened to cause it"
    return None


def why_order_matters(step: s.Step, stream: StreamType) -> str | None:
    """Why a step may expose the order of its events; None: it does not.

    A task that claims to be commutative is trusted here.
    """
    match step:
        case s.Apply():
            return None if step.task.commutative else "does not claim to be commutative"
        case s.AggregateAll():
            return _why_running(step) or _why_aggregates(step.aggregates, stream)
        case s.AggregateWindows():
            return _why_aggregates(step.aggregates, stream)
        case s.Histogram():  # counts are equal, but later functions see their listing order
            return "lists values in arrival order"
        case s.Batch() | s.Accumulate():
            return "collects values in arrival order"
        case s.Skip():
            return "drops the values that came first"
        case s.Bulk():
            return "groups values in arrival order"
        case s.OnComplete() | s.Operate():
            return "runs functions about which nothing is known"
        case s.Iterate():
            return "is a loop"
    return None


def _why_running(step: s.AggregateAll) -> str | None:
    """Emitted per event, only a count is independent of which event came."""
    running = [name for name, a in step.aggregates if a.name != "count"]
    return f"shows `{running[0]}` after each event" if step.emit == "event" and running else None


def _why_aggregates(aggregates: Sequence[tuple[str, Aggregate]], stream: StreamType) -> str | None:
    key = next((tp for _, tp in stream.key or () if not _is_one_way(tp)), None)
    if key is not None:
        return f"shows a key as its first event wrote it, and equal keys of {_type(key)} differ"
    fields = fields_of(stream.value) or {}
    for name, aggregate in aggregates:
        tp = stream.value if aggregate.field is None else fields.get(aggregate.field, Any)
        why = _why_aggregate(aggregate.name, tp)
        if why is not None:
            return f"shows `{name}`, {why}"
    return None


def _why_aggregate(verb: str, tp: Any) -> str | None:
    if verb == "count":
        return None
    if verb in ("sum", "mean"):
        kinds = set(members(plain_type(tp)))
        if kinds <= {int, bool}:
            return None
        return f"a {verb} of {_type(tp)}, which may round differently in another order"
    if verb in ("min", "max"):
        if _is_one_way(tp):
            return None
        return f"a {verb} of {_type(tp)}, whose equal values may look different"
    return f"a {verb}, which is the order of events"


def _is_one_way(tp: Any) -> bool:
    """Has each value one representation only, so that it does not matter which copy is kept?"""
    kinds = set(members(plain_type(tp)))
    return kinds <= set(_ONE_WAY) and not kinds >= {int, bool}


def _type(tp: Any) -> str:
    return "an unknown type" if tp is Any else typename(tp)
