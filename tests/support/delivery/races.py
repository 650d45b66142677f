"""A family of small systems for Theorem 1 of P2: all there are up to three elements below s."""

from collections.abc import Iterator
from itertools import chain, combinations, product

from cutwater.checking.guarantees.recoverability import Race


def races(most: int = 3) -> Iterator[Race]:
    """Every way to derive up to so many elements from s, to choose b₁, and to forget."""
    for count in range(1, most + 1):
        names = [f"n{i}" for i in range(1, count + 1)]
        for premises in product(*(list(_premises(i, names)) for i in range(count))):
            derivations = tuple(zip(premises, names, strict=True))
            for first in ["s", *names[:-1]]:
                for forgetful in _subsets(names):
                    yield Race(derivations, first, names[-1], frozenset(forgetful))


def _premises(i: int, names: list[str]) -> Iterator[frozenset[str]]:
    """One or two of the elements that come before the i-th."""
    before = ["s", *names[:i]]
    for count in (1, 2):
        yield from map(frozenset, combinations(before, count))


def _subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))
