"""Dropping the first outputs (P4, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from cutwater.operators.operator import Operator
from cutwater.operators.parts import emitted, part_snapshot
from cutwater.operators.snapshot import SnapshotCodec, row_of

__all__ = ["skip"]


def skip(op: Operator, n: int) -> Operator:
    """Drops the first `n` outputs of an operator without altering its evolution.

    Laws
    ----
    (5)  ``produce(skip(op, n), xs) == islice(produce(op, xs), n, None)``

    Examples
    --------
    >>> from cutwater.operators import identity, produce
    >>> list(produce(skip(identity(), 2), "abcd"))
    ['c', 'd']
    """

    def step(state: Any, event: Any) -> tuple[Any, Sequence[Any]]:
        inner, left = state
        inner, outputs = op.step(inner, event)
        return (inner, max(left - len(outputs), 0)), outputs[left:]

    def finish(state: Any) -> Iterable[Any]:
        inner, left = state
        return islice(op.finish(inner), left, None)

    def snapshot(time: Any, value: Any) -> SnapshotCodec:
        inner = part_snapshot(op, time, value)
        return SnapshotCodec(
            row_of(inner.type, int),
            lambda state: (inner.freeze(state[0]), state[1]),
            lambda kept: (inner.thaw(kept[0]), kept[1]),
        )

    return Operator(
        (op.initial, n),
        step,
        finish,
        is_awake=op.is_awake,
        snapshot=snapshot,
        emits=lambda time, value: emitted(op, time, value),
    )
