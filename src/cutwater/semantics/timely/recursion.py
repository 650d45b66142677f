"""Dataflow that calls itself: stacks of calls as times (P3, section 3.4).

=====================================  =====================================================
P3                                     here
=====================================  =====================================================
body, call nodes, in, out              `Recursion`, validated
call-c, ret-c                          ``Recursion.split``: the nodes ``call-c`` and ``ret-c``
(p, f) ⤳ (p', f'), rules 1 to 3        ``Recursion.steps``; their closure is the relation
alternative modified graph             ``Recursion.has_path``
decision by the first difference       ``Recursion.first_difference``: the paper's test, word by
                                       word; ``Recursion.could_result_in``: the correct one
⪯_p, T_p, [f]_p                        `CallTime`: tagged, equivalent stacks are equal
Clock                                  `CallClock`, conservatively
=====================================  =====================================================

Where we differ from the paper (2026-11-18): it decides (p, f) ⤳ (p', f') by a path from l to l' at
the *first* call in which the stacks differ. That is sound, and it is complete if no call lies on a
cycle of the body. If ret-c leads back to call-c and c is in the common part of the stacks, the call
may return and be made again, with the same stack, so everything inside of c could result in
everything inside of c: the test must be made at every common call too, not only behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import msgspec

from cutwater.errors import FlowError, Problem
from cutwater.semantics.timely.actions import Configuration, Pointstamp, pointstamps
from cutwater.semantics.timely.dataflow import Dataflow

__all__ = ["CallClock", "CallTime", "Recursion", "Stack"]

Stack = tuple[str, ...]
"""A finite sequence of call nodes, the outermost first."""


@dataclass(frozen=True, eq=False)
class Recursion:
    """The body of a dataflow that calls itself.

    Raises `FlowError` with everything that P3 asks of a body and this one does not have.

    Examples
    --------
    >>> body = Recursion(
    ...     [("in", "leaf"), ("leaf", "out"), ("in", "l"), ("in", "r"), ("l", "add"), ("r", "add"),
    ...      ("add", "out")],
    ...     calls=["l", "r"],
    ... )
    >>> body.could_result_in("add", ("l",), "add", ())
    True
    >>> left, right = body.time("add", ("l",)), body.time("add", ("r",))
    >>> left <= right, right <= left
    (False, False)
    """

    edges: Iterable[tuple[str, str]]
    """The edges of the body, with calls as nodes."""
    calls: Iterable[str]
    """The nodes that call the whole body."""
    entry: str = "in"
    exit: str = "out"

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(self.edges))
        object.__setattr__(self, "calls", tuple(self.calls))
        if problems := list(self._problems()):
            raise FlowError(problems)

    def _problems(self) -> Iterator[Problem]:
        if any(target == self.entry for _, target in self.edges):
            yield _problem(f"an edge of the body leads to {self.entry!r}; only calls do")
        if any(source == self.exit for source, _ in self.edges):
            yield _problem(f"an edge of the body leaves {self.exit!r}; only returns do")
        for node in self.nodes:
            if not self.has_path(self.entry, node):
                yield _problem(f"{node!r} cannot be reached from {self.entry!r}")
            if not self.has_path(node, self.exit):
                yield _problem(f"{self.exit!r} cannot be reached from {node!r}")
        if self.exit not in _reached({self.entry}, self.split):
            yield _problem("every path through the body calls it; no call would ever return")

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes after each call c is split into ``call-c`` and ``ret-c``."""
        ends = [end for edge in self.split for end in edge]
        halves = [half for c in self.calls for half in (f"call-{c}", f"ret-{c}")]
        return tuple(dict.fromkeys([self.entry, *ends, *halves, self.exit]))

    @cached_property
    def split(self) -> tuple[tuple[str, str], ...]:
        """The edges of the body between split nodes."""
        return tuple(
            (f"ret-{p}" if p in self.calls else p, f"call-{q}" if q in self.calls else q)
            for p, q in self.edges
        )

    @cached_property
    def graph_edges(self) -> tuple[tuple[str, str], ...]:
        """All edges of the dataflow: those of the body, and back edges for calls and returns."""
        made = [(f"call-{c}", self.entry) for c in self.calls]
        returned = [(self.exit, f"ret-{c}") for c in self.calls]
        return (*self.split, *made, *returned)

    def steps(self, node: str, stack: Stack) -> Iterator[tuple[str, Stack]]:
        """Rules 1 to 3: where one step leads."""
        for source, target in self.split:
            if source == node:
                yield target, stack
        for call in self.calls:
            if node == f"call-{call}":
                yield self.entry, (*stack, call)
        if node == self.exit and stack:
            yield f"ret-{stack[-1]}", stack[:-1]

    def origin(self, source: str, target: str, stack: Stack) -> Stack | None:
        """The stack at which a node sends what is at a stack on an edge; None if it cannot."""
        if (source, target) in self.split:
            return stack
        if target == self.entry:
            is_call = bool(stack) and source == f"call-{stack[-1]}"
            return stack[:-1] if is_call else None
        return (*stack, target.removeprefix("ret-"))

    def has_path(self, node: str, other: str) -> bool:
        """Is there a path in the alternative graph, where a call leads straight to its return?"""
        return other in self._paths.get(node, {node})

    @cached_property
    def _paths(self) -> dict[str, set[str]]:
        nodes = {end for edge in self._short for end in edge}
        return {node: _reached({node}, self._short) for node in nodes}

    @cached_property
    def _short(self) -> list[tuple[str, str]]:
        return [*self.split, *((f"call-{c}", f"ret-{c}") for c in self.calls)]

    def could_result_in(self, p: str, f: Stack, q: str, g: Stack) -> bool:
        """Is (p, f) ⤳ (q, g)? By the first difference, or a common call that may be made again."""
        common = _common(f, g)
        return self.first_difference(p, f, q, g) or any(map(self.is_repeated, common))

    def could_send(self, p: str, f: Stack, edge: tuple[str, str], g: Stack) -> bool:
        """Could (p, f) result in a message on an edge at a stack that is ⪯ g at its target?

        Such a stack is found near the two: a call beside them is as good as any inside of it.
        """
        source, target = edge
        for stack in self._nearby(f, g):
            before = self.origin(source, target, stack)
            if (
                before is not None
                and self.could_result_in(p, f, source, before)
                and self.could_result_in(target, stack, target, g)
            ):
                return True
        return False

    def _nearby(self, f: Stack, g: Stack) -> Iterator[Stack]:
        beginnings = dict.fromkeys(h[:n] for h in (f, g) for n in range(len(h) + 1))
        further = [(), *((c,) for c in self.calls), *product(self.calls, repeat=2)]
        for h in beginnings:
            yield from ((*h, *calls) for calls in further)

    def first_difference(self, p: str, f: Stack, q: str, g: Stack) -> bool:
        """P3's test: a path from l to l' at the first call in which two stacks differ."""
        at = len(_common(f, g))
        l1 = f"ret-{f[at]}" if at < len(f) else p
        l2 = f"call-{g[at]}" if at < len(g) else q
        return self.has_path(l1, l2)

    def is_repeated(self, call: str) -> bool:
        """Does a call lie on a cycle of the body?"""
        return self.has_path(f"ret-{call}", f"call-{call}")

    def canonical(self, node: str, stack: Stack) -> Stack:
        """One stack for each class [f]_p.

        Stacks are equivalent only by calls on a cycle: behind one nothing matters, calls on one
        cycle are alike, and so is being on that cycle without a call.
        """
        for i, call in enumerate(stack):
            if self.is_repeated(call):
                alike = [c for c in self.calls if self._is_around(f"call-{c}", f"ret-{call}")]
                here = self._is_around(node, f"ret-{call}")
                return stack[:i] if here else (*stack[:i], min(alike))
        return stack

    def _is_around(self, node: str, other: str) -> bool:
        return self.has_path(node, other) and self.has_path(other, node)

    def time(self, node: str, stack: Stack) -> CallTime:
        """[f]_p: the time of a stack at a node."""
        return CallTime(node, self.canonical(node, stack), self)


class CallTime(msgspec.Struct, frozen=True, cache_hash=True):
    """[f]_p: a class of stacks, tagged with a node; times of two nodes are not compared."""

    node: str
    stack: Stack
    """The canonical stack of the class."""
    recursion: Recursion
    """What orders the stacks."""

    def __repr__(self) -> str:
        return f"[{'·'.join(self.stack)}]_{self.node}"

    def __le__(self, other: CallTime) -> bool:
        return self.node == other.node and self.recursion.could_result_in(
            self.node, self.stack, other.node, other.stack
        )


class CallClock:
    """Where work may remain in a dataflow whose times are stacks: `Recursion.could_result_in`.

    Conservative, and decided stack by stack, so that neither times nor local states need be finite.
    """

    def __init__(self, dataflow: Dataflow, recursion: Recursion) -> None:
        self.dataflow, self.recursion = dataflow, recursion
        self._known: dict[tuple[Pointstamp, object], bool] = {}

    def __call__(self, c: Configuration) -> _CallWork:
        """What the messages and requests of a configuration could result in."""
        return _CallWork(self, frozenset(pointstamps(self.dataflow, c)))

    def leads(self, a: Pointstamp, b: object) -> bool:
        """Could one pointstamp result in another?"""
        if (a, b) not in self._known:
            self._known[a, b] = self._decided(*a, *b)  # type: ignore[misc]
        return self._known[a, b]

    def _decided(self, x: str, t: CallTime, y: str, u: CallTime) -> bool:
        if x == y:
            return t <= u
        dataflow, recursion = self.dataflow, self.recursion
        if y in dataflow.number:
            return u.node == y and recursion.could_result_in(t.node, t.stack, y, u.stack)
        edge = dataflow.edges[dataflow.edge_number[y]]
        if edge.source is None or edge.target != u.node:
            return False
        return recursion.could_send(t.node, t.stack, (edge.source, edge.target), u.stack)


@dataclass(frozen=True)
class _CallWork:
    clock: CallClock
    live: frozenset[Pointstamp]

    def __contains__(self, stamp: object) -> bool:
        return any(self.clock.leads(live, stamp) for live in self.live)


def _common(f: Stack, g: Stack) -> Stack:
    """The longest common beginning of two stacks."""
    at = 0
    while at < min(len(f), len(g)) and f[at] == g[at]:
        at += 1
    return f[:at]


def _reached(found: set[str], edges: Iterable[tuple[str, str]]) -> set[str]:
    todo = list(found)
    while todo:
        node = todo.pop()
        for source, target in edges:
            if source == node and target not in found:
                found.add(target)
                todo.append(target)
    return found


def _problem(message: str) -> Problem:
    return Problem(
        "recursive-body", message, "a body leads from in to out, also by a path without calls"
    )
