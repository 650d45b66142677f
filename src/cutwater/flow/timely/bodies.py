"""The steps of a flow, including those in the bodies of its loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cutwater.flow.steps import Iterate, Step

__all__ = ["with_bodies"]


def with_bodies(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, each loop followed by those of its body."""
    for step in steps:
        yield step
        if isinstance(step, Iterate):
            yield from with_bodies(step.body)
