"""Counting, over any partial order (P4, section 5.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from cutwater.operators.accumulate import incr_batch, incr_batch_snapshot
from cutwater.operators.compose import compose
from cutwater.operators.map_values import map_values
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec

__all__ = ["count_up_to", "histogram", "histogram_snapshot"]


def count_up_to(time: Any, pairs: Iterable[tuple[Any, Any]]) -> Counter[Any]:
    """How often each value occurs at times ``<=`` the given one (P4: ``S_coll``)."""
    return Counter(value for at, value in pairs if at <= time)


def histogram(
    pending: Iterable[tuple[Any, Any]] = (), batches: Iterable[tuple[Any, Any]] = ()
) -> Operator:
    """For each completed time, how often each value occurred at or before it (P4: ``ihist_op``).

    Works over any partial order, counts each collection once, and recomputes from everything it
    ever saw: `histogram_total` is the efficient version for total orders.

    Keeps every value for ever.

    Laws
    ----
    (22) an output at `t` counts the collections of all times ``<= t``; (23) every input's time
    gets an output; monotone and productive streams stay so.

    Examples
    --------
    >>> from cutwater.events import Data, Watermark
    >>> from cutwater.operators import produce
    >>> list(produce(histogram(), [Data(1, "a"), Data(2, "a"), Watermark(2)]))[:2]
    [Data(time=1, value=Counter({'a': 1})), Data(time=2, value=Counter({'a': 2}))]
    """
    return compose(incr_batch(pending, batches), map_values(count_up_to))


def histogram_snapshot(time: Any, value: Any) -> SnapshotCodec:
    """The state of `incr_batch`; `histogram_paths` uses it too."""
    inner = incr_batch_snapshot(time, value)
    return SnapshotCodec(
        inner.type, lambda state: inner.freeze(state[0]), lambda kept: (inner.thaw(kept), None)
    )
