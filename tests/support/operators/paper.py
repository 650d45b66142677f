"""The paper's definitions as it prints them (P4, section 4.1, Fig. 5, sections 4.3, 5.1 and 5.2).

They are the oracles of the laws and share nothing with the library but events and times. A lazy
list is a finite sequence here; laws about infinite streams use prefixes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from itertools import takewhile
from operator import add
from typing import Any

from cutwater.events import Data, Event, Watermark
from cutwater.times import Left, Right

Pairs = Sequence[tuple[Any, Any]]


def mono(lxs: Sequence[Event], W: Collection[Any]) -> bool:
    match lxs:
        case []:
            return True
        case [Watermark(wm), *rest]:
            return mono(rest, {wm, *W})
        case [Data(t, _), *rest]:
            return all(not t <= wm for wm in W) and mono(rest, W)
    raise AssertionError(lxs)


def maximal_antichain_list(xs: Iterable[Any]) -> list[Any]:
    """Distinct, maximal and incomparable; in order of first occurrence."""
    distinct = list(dict.fromkeys(xs))
    return [t for t in distinct if not any(t <= u and t != u for u in distinct)]


def data(lxs: Iterable[Event]) -> list[Data]:
    """Every ``DT t d ∈ lset lxs``."""
    return [event for event in lxs if isinstance(event, Data)]


def watermarks(lxs: Sequence[Event]) -> set[Any]:
    """``vimage WM (lset lxs)``."""
    return {event.time for event in lxs if isinstance(event, Watermark)}


def DTs(lxs: Sequence[Event], t: Any) -> list[Any]:
    return [event.value for event in lxs if isinstance(event, Data) and event.time == t]


def lcoll(lxs: Sequence[Event], t: Any) -> Counter[Any]:
    return Counter(DTs(lxs, t))


def coll(xs: Pairs, t: Any) -> Counter[Any]:
    return Counter(d for t_, d in xs if t_ == t)


def set_t(xs: Pairs) -> set[Any]:
    return {t for t, _ in xs}


def ts(lxs: Sequence[Event], t: Any) -> set[Any]:
    return {event.time for event in lxs if isinstance(event, Data) and event.time <= t}


def ws(lxs: Sequence[Event], wm: Any) -> set[Any]:
    return watermarks(list(takewhile(lambda event: event != Watermark(wm), lxs)))


def incompletes(lxs: Sequence[Event]) -> list[Any]:
    marks = watermarks(lxs)
    return maximal_antichain_list(
        event.time
        for event in lxs
        if isinstance(event, Data) and not any(event.time <= wm for wm in marks)
    )


def ws2(lxs: Sequence[Event], wm: Any) -> set[Any]:
    return set(takewhile(lambda t: t != wm, incompletes(lxs)))


def batch_ts(lxs: Sequence[Event], wm: Any) -> set[Any]:
    if wm in watermarks(lxs):
        return {t for t in ts(lxs, wm) if not any(t <= wm_ for wm_ in ws(lxs, wm))}
    earlier = ws2(lxs, wm) | watermarks(lxs)
    return {t for t in ts(lxs, wm) if not any(t <= wm_ for wm_ in earlier)}


def as_events(tds: Pairs) -> list[Event]:
    """``map (λ(t, d). DT t d) tds``."""
    return [Data(t, d) for t, d in tds]


def ltake_DT(n: int, lxs: Sequence[Event]) -> list[tuple[Any, Any]]:
    """The data among the first n events: a watermark uses up a step, too."""
    match lxs:
        case [Watermark(), *rest] if n:
            return ltake_DT(n - 1, rest)
        case [Data(t, b), *rest] if n:
            return [(t, b), *ltake_DT(n - 1, rest)]
    return []


def acc_batches(n: int, lxs: Sequence[Event]) -> list[tuple[Any, Any]]:
    return [pair for _, b in ltake_DT(n, lxs) for pair in b]


def total(domain: Iterable[Any], f: Callable[[Any], Counter[Any]]) -> Counter[Any]:
    """The paper's ``sum`` over a set, in the monoid of multisets."""
    return reduce(add, map(f, domain), Counter())


def S_lcoll(lxs: Sequence[Event], t: Any) -> Counter[Any]:
    return total(ts(lxs, t), lambda t_: lcoll(lxs, t_))


def S_coll(t: Any, xs: Pairs) -> Counter[Any]:
    return total({t_ for t_ in set_t(xs) if t_ <= t}, lambda t_: coll(xs, t_))


def H(lxs: Sequence[Event], t: Any) -> Counter[Any]:
    """Section 5.1's other specification: ``H_t = C_t + Σ H_s`` over immediate predecessors s."""
    before = {s for s in ts(lxs, t) if s != t}
    return lcoll(lxs, t) + total(maximal_antichain_list(before), lambda s: H(lxs, s))


def chains(lxs: Sequence[Event], t: Any) -> Counter[Any]:
    """What the artifact counts instead: ``C_t`` and all of every maximal chain below t."""

    def maximal_chains(top: Any) -> list[list[Any]]:
        before = {s for s in ts(lxs, top) if s != top}
        steps = maximal_antichain_list(before)
        return [[s, *chain] for s in steps for chain in maximal_chains(s)] if steps else [[]]

    return lcoll(lxs, t) + total(
        (s for chain in maximal_chains(t) for s in chain), lambda s: lcoll(lxs, s)
    )


def case_sum(wm: Left | Right) -> Left | Right:
    """``case_sum Inr Inl``: the same time on the other side."""
    return Right(wm.time) if isinstance(wm, Left) else Left(wm.time)


def producible(wm: Any, MA: Iterable[Any]) -> bool:
    return any(wm <= case_sum(wm_) for wm_ in MA)
