"""Counting every path once (P4, section 5.1: the more complex specification)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from cutwater.operators.accumulate import incr_batch
from cutwater.operators.compose import compose
from cutwater.operators.map_values import map_values
from cutwater.operators.operator import Operator
from cutwater.times import maximal

__all__ = ["count_paths", "histogram_paths"]


def count_paths(time: Any, pairs: Iterable[tuple[Any, Any]]) -> Counter[Any]:
    """``H_t = C_t + Σ H_s`` over the immediate predecessors `s` of `t` among the times that occur.

    >>> from cutwater.times import Product
    >>> corners = [Product(0, 0), Product(0, 1), Product(1, 0), Product(1, 1)]
    >>> count_paths(Product(1, 1), [(corner, "x") for corner in corners])
    Counter({'x': 5})
    """
    collections: dict[Any, Counter[Any]] = {}
    for at, value in pairs:
        if at <= time:
            collections.setdefault(at, Counter())[value] += 1
    counts: dict[Any, Counter[Any]] = {}
    remaining = dict.fromkeys(collections)
    while remaining:
        ready = [t for t in remaining if not any(s <= t and s != t for s in remaining)]
        for at in ready:
            counts[at] = collections[at].copy()
            for before in maximal(s for s in collections if s <= at and s != at):
                counts[at] += counts[before]
            del remaining[at]
    return counts.get(time, Counter())


def histogram_paths(
    pending: Iterable[tuple[Any, Any]] = (), batches: Iterable[tuple[Any, Any]] = ()
) -> Operator:
    """Like `histogram`, but a collection counts once for every path that leads to the time.

    Keeps every value for ever.

    Laws
    ----
    An output at `t` is ``C_t + Σ H_s`` over the immediate predecessors `s` of `t`; on total
    orders it equals `histogram`.

    Examples
    --------
    >>> from cutwater.events import Data, Watermark
    >>> from cutwater.operators import produce
    >>> from cutwater.times import Product
    >>> corners = [Product(0, 0), Product(0, 1), Product(1, 0), Product(1, 1)]
    >>> stream = [*(Data(corner, "x") for corner in corners), Watermark(Product(1, 1))]
    >>> list(produce(histogram_paths(), stream))[3].value
    Counter({'x': 5})
    """
    return compose(incr_batch(pending, batches), map_values(count_paths))
