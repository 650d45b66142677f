"""The states of one input epoch in a loop that processes several at once.

They are stored in the bucket like others, under names of their own, until the input epoch is over.
"""

from __future__ import annotations

from cutwater.spark.state.bucket import INPUT, BucketStates
from cutwater.spark.state.map import StateMap
from cutwater.spark.state.table import Convert, StateColumns, StateTable

__all__ = ["StatesOfInput", "input_of"]


class StatesOfInput(BucketStates):
    """The view of a bucket for the steps of a loop that process one input epoch."""

    def __init__(self, bucket: BucketStates, number: int) -> None:
        self._whole = bucket
        self._prefix = f"{INPUT}{number} "
        self.label = bucket.label

    def table(self, step: str, columns: StateColumns, convert: Convert | None = None) -> StateTable:
        """Never called: `forget` could not delete a table without knowing its columns."""
        raise AssertionError(f"'{step}' keeps a table in a loop")

    def forget(self) -> None:
        """Delete all states of the input epoch in this bucket."""
        for name in self._whole.names(self._prefix):
            keys = list(self._whole.keys(name))
            self._whole.put_many(name, keys, [None] * len(keys))

    def _map(self, step: str) -> StateMap:
        return self._whole._map(self._prefix + step)


def input_of(name: str) -> tuple[int | None, str]:
    """The input epoch of states with this name, or None if they belong to none; and their step."""
    if not name.startswith(INPUT):
        return None, name
    number, _, step = name.removeprefix(INPUT).partition(" ")
    return int(number), step
