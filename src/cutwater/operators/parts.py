"""State snapshots and output types of operators that are composed of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cutwater.annotations import union_of
from cutwater.operators.operator import Operator
from cutwater.operators.snapshot import SnapshotCodec, row_of
from cutwater.operators.stateless import keeps_nothing

__all__ = ["chain_snapshot", "emitted", "emitted_by_all", "part_snapshot"]


def emitted(op: Operator, time: Any, value: Any) -> Any:
    """The type of the values that an operator emits; `Any` if it declares none."""
    return op.emits(time, value) if op.emits else Any


def emitted_by_all(operators: Sequence[Operator]) -> Callable[[Any, Any], Any]:
    """The type that the last operator of a chain emits."""

    def emits(time: Any, value: Any) -> Any:
        for op in operators:
            value = emitted(op, time, value)
        return value

    return emits


def chain_snapshot(operators: Sequence[Operator]) -> Callable[[Any, Any], SnapshotCodec]:
    """The snapshot codec of a chain: a row of the snapshot codecs of its parts."""

    def snapshot(time: Any, value: Any) -> SnapshotCodec:
        codecs = []
        for op in operators:
            codecs.append(part_snapshot(op, time, value))
            value = emitted(op, time, value)
        return SnapshotCodec(
            row_of(*(part.type for part in codecs)),
            lambda state: tuple(
                part.freeze(inner) for part, inner in zip(codecs, state, strict=True)
            ),
            lambda kept: tuple(part.thaw(inner) for part, inner in zip(codecs, kept, strict=True)),
        )

    return snapshot


def part_snapshot(op: Operator, time: Any, value: Any) -> SnapshotCodec:
    """The snapshot codec of an operator inside another one; its state may be blank on its own.

    A blank state is saved as None, unless it was started with a key, which is no longer known on
    restore.
    """
    if op.is_blank is keeps_nothing:
        return SnapshotCodec(type(None), lambda _state: None, lambda _kept: op.initial)
    inner = op.snapshot(time, value) if op.snapshot else SnapshotCodec(Any)
    if op.start is not None:
        return inner

    def freeze(state: Any) -> Any:
        return None if op.is_blank(state) else inner.freeze(state)

    def thaw(kept: Any) -> Any:
        return op.initial if kept is None else inner.thaw(kept)

    return SnapshotCodec(union_of([inner.type, type(None)]), freeze, thaw)
