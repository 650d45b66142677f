"""Random bodies of recursive dataflows, and their relation as a closure."""

from __future__ import annotations

from itertools import product
from random import Random

from hypothesis import strategies as st

from cutwater.errors import FlowError
from cutwater.semantics.timely.recursion import Recursion, Stack

DEPTH = 3
"""Stacks up to this length are compared."""


def stacks(recursion: Recursion, depth: int) -> list[Stack]:
    return [f for n in range(depth + 1) for f in product(recursion.calls, repeat=n)]


def closure(recursion: Recursion, depth: int) -> dict[tuple[str, Stack], set[tuple[str, Stack]]]:
    """The least reflexive, transitive relation, on stacks up to a depth."""
    pairs = [(p, f) for p in recursion.nodes for f in stacks(recursion, depth)]
    step = {a: [b for b in recursion.steps(*a) if len(b[1]) <= depth] for a in pairs}
    found = {}
    for a in pairs:
        reached, todo = {a}, [a]
        while todo:
            for b in step[todo.pop()]:
                if b not in reached:
                    reached.add(b)
                    todo.append(b)
        found[a] = reached
    return found


def drawn(seed: int, *, cyclic: bool, depth: int = 2) -> Recursion:
    """A body of one to three calls and up to two other nodes."""
    random = Random(seed)
    while True:
        calls = ["c", "d", "e"][: random.randint(1, 3 if depth < 3 else 2)]
        inner = [*calls, *["a", "b"][: random.randint(0, 2)]]
        pairs = [(p, q) for p in ["in", *inner] for q in [*inner, "out"] if p != q]
        edges = [
            (p, q)
            for p, q in pairs
            if random.random() < 0.35
            and (cyclic or p == "in" or q == "out" or inner.index(p) < inner.index(q))
        ]
        try:
            return Recursion(edges, calls)
        except FlowError:
            continue


def recursions(depth: int = 2) -> st.SearchStrategy[Recursion]:
    return st.builds(
        lambda seed, cyclic: drawn(seed, cyclic=cyclic, depth=depth),
        st.integers(0, 2**32),
        st.booleans(),
    )
