"""The paper's operators as it prints them: functions that make their own successors (P4, 3 to 5).

Each is compared with the library's operator on the same streams. `random_operators` are finite
state machines with random tables, for laws about all operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from hypothesis import strategies as st
from support.operators.paper import Pairs, S_coll, maximal_antichain_list, producible

from cutwater.events import Data, Event, Watermark
from cutwater.operators import Operator
from cutwater.times import Left, Right


@dataclass(frozen=True)
class Logic:
    """``codatatype op = Logic (apply: i ⇒ op × o list) (exit: o llist)``."""

    apply: Callable[[Any], tuple[Logic, list[Any]]]
    exit: Iterable[Any] = ()


def logic(op: Operator) -> Logic:
    """An operator of the library as one of the paper."""

    def apply(event: Any) -> tuple[Logic, list[Any]]:
        state, outputs = op.step(op.initial, event)
        return logic(op.at(state)), list(outputs)

    return Logic(apply, op.finish(op.initial))


def produce1(op: Logic, lxs: Iterator[Any], depth: int) -> Any:
    """``None`` stands for an input that goes on for ever and causes no output."""
    for _ in range(depth):
        try:
            h = next(lxs)
        except StopIteration:
            return ("Inr", op)
        op, out = op.apply(h)
        if out:
            return ("Inl", op, out[0], out[1:], lxs)
    return None


def produce(op: Logic, lxs: Iterable[Any], depth: int = 1000) -> Iterator[Any]:
    """The paper's ``produce``: it ends where `depth` inputs cause no output."""
    match produce1(op, iter(lxs), depth):
        case None:
            return
        case ("Inr", last):
            yield from last.exit
        case ("Inl", later, x, xs, rest):
            yield x
            yield from xs
            yield from produce(later, rest, depth)


def fproduce(op: Logic, xs: Iterable[Any]) -> tuple[Logic, list[Any]]:
    out: list[Any] = []
    for e in xs:
        op, more = op.apply(e)
        out = out + more
    return op, out


def bulk_op(f: Callable[[Sequence[Any]], Sequence[Any]], n: int, buf: list[Any]) -> Logic:
    def apply(e: Any) -> tuple[Logic, list[Any]]:
        if len([e, *buf]) < n:
            return bulk_op(f, n, [e, *buf]), []
        return bulk_op(f, n, []), list(f([e, *buf]))

    return Logic(apply, list(f(buf)))


def comp_op(op1: Logic, op2: Logic) -> Logic:
    def apply(ev: Any) -> tuple[Logic, list[Any]]:
        later1, out = op1.apply(ev)
        later2, out2 = fproduce(op2, out)
        return comp_op(later1, later2), out2

    return Logic(apply, produce(op2, op1.exit))


def skip_op(op: Logic, n: int) -> Logic:
    def apply(ev: Any) -> tuple[Logic, list[Any]]:
        later, out = op.apply(ev)
        if len(out) < n:
            return skip_op(later, n - len(out)), []
        return later, out[n:]

    return Logic(apply, islice(op.exit, n, None))


def batches(wms: list[Any], tds: Pairs) -> tuple[list[Data], Pairs]:
    if not wms:
        return [], tds
    wm, *others = wms
    bs, rest = batches(others, [(t, d) for t, d in tds if not t <= wm])
    return [Data(wm, tuple((t, d) for t, d in tds if t <= wm)), *bs], rest


def batch_op(tds: Pairs) -> Logic:
    def apply(ev: Event) -> tuple[Logic, list[Any]]:
        if isinstance(ev, Data):
            return batch_op([*tds, (ev.time, ev.value)]), []
        out, rest = batches([ev.time], tds)
        return batch_op(rest), [*(x for x in out if x.value), ev]

    return Logic(apply, batches(maximal_antichain_list(t for t, _ in tds), tds)[0])


def remdups(xs: Iterable[Any]) -> list[Any]:
    """In order of first occurrence, as in the artifact."""
    return list(dict.fromkeys(xs))


def incr_op(abs_: Pairs) -> Logic:
    def apply(ev: Event) -> tuple[Logic, list[Any]]:
        if isinstance(ev, Watermark):
            return incr_op(abs_), [ev]
        whole = (*abs_, *ev.value)
        return incr_op(whole), [Data(t, whole) for t in remdups(t for t, _ in ev.value)]

    return Logic(apply)


def incr_batch_op(tds: Pairs, abs_: Pairs) -> Logic:
    return comp_op(batch_op(tds), incr_op(abs_))


def map_op(f: Callable[[Any, Any], Any]) -> Logic:
    def apply(ev: Event) -> tuple[Logic, list[Any]]:
        if isinstance(ev, Watermark):
            return map_op(f), [ev]
        return map_op(f), [Data(ev.time, f(ev.time, ev.value))]

    return Logic(apply)


def ihist_op(tds: Pairs, abs_: Pairs) -> Logic:
    return comp_op(incr_batch_op(tds, abs_), map_op(S_coll))


def ihist_op_total(H: Counter[Any], buf: Pairs) -> Logic:
    """``ihist_op'`` (Fig. 7), with the watermark in the else-branch."""

    def counts(out: Pairs) -> list[Data]:
        return [
            Data(t, H + Counter(d for t_, d in out if t_ <= t)) for t in remdups(t for t, _ in out)
        ]

    def apply(ev: Event) -> tuple[Logic, list[Any]]:
        if isinstance(ev, Data):
            return ihist_op_total(H, [*buf, (ev.time, ev.value)]), []
        out = [(t, d) for t, d in buf if t <= ev.time]
        rest = [(t, d) for t, d in buf if not t <= ev.time]
        if not out:
            return ihist_op_total(H, buf), [ev]
        return ihist_op_total(H + Counter(d for _, d in out), rest), [*counts(out), ev]

    return Logic(apply, counts(buf))


def flatten_op() -> Logic:
    def apply(ev: Event) -> tuple[Logic, list[Any]]:
        if isinstance(ev, Watermark):
            return flatten_op(), [ev]
        return flatten_op(), [Data(ev.time, d) for d in ev.value]

    return Logic(apply)


def union_op(wms: list[Any], MA: set[Any]) -> Logic:
    def apply(ev: Event) -> tuple[Logic, list[Any]]:
        if isinstance(ev, Data):
            return union_op(wms, MA), [Data(ev.time.time, ev.value)]
        MA_ = set(maximal_antichain_list([*MA, ev.time]))
        prds = {wm for wm in [ev.time, *wms] if producible(wm, MA_)}
        later = union_op([wm for wm in [ev.time, *wms] if wm not in prds], MA_)
        return later, [Watermark(wm.time) for wm in [ev.time, *wms] if wm in prds]

    return Logic(apply)


def join_list(join: Callable[[Any, Any], Any]) -> Callable[[Any, Pairs], list[Any]]:
    def joined(st_: Any, xs: Pairs) -> list[Any]:
        lefts = [d for v, d in xs if v == Left(st_.time)]
        rights = [d for v, d in xs if v == Right(st_.time)]
        found = [join(d1, d2) for d1 in lefts for d2 in rights]
        return [d for d in found if d is not None]

    return joined


def join_op(tds: Pairs, abs_: Pairs, wms: list[Any], MA: set[Any], join: Any) -> Logic:
    joined = comp_op(map_op(join_list(join)), flatten_op())
    return comp_op(comp_op(incr_batch_op(tds, abs_), joined), union_op(wms, MA))


def is_silent_at_exit(op: Operator, states: Iterable[Any]) -> bool:
    """``∀xs. exit (fst (fproduce op xs)) = [#]``, for an operator with finitely many states."""
    return not list(chain.from_iterable(op.finish(state) for state in states))


SYMBOLS = "ab"


@st.composite
def random_operators(draw: Any, states: int = 3) -> Operator:
    """A finite state machine over SYMBOLS with a random table."""
    words = st.text(SYMBOLS, max_size=2)
    target = st.integers(0, states - 1)
    table = {
        (state, symbol): draw(st.tuples(target, words))
        for state in range(states)
        for symbol in SYMBOLS
    }
    ends = [draw(words) for _ in range(states)]
    return Operator(0, lambda state, symbol: table[state, symbol], lambda state: ends[state])
