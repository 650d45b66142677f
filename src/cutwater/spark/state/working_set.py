"""The states of one segment in one bucket during an epoch.

A state is decoded when it is first needed and encoded once at the end. Blank states are deleted.
Keys for which a watermark can matter are noted, so that a watermark visits no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cutwater.spark.state.bucket import BUSY, BucketStates
from cutwater.spark.state.lazy_states import KEY
from cutwater.spark.state.storage import Storage

__all__ = ["WorkingSet"]

_GONE = object()


class WorkingSet:
    """The decoded states of the keys that an epoch touches."""

    def __init__(self, storage: Storage, bucket: BucketStates) -> None:
        self._storage = storage
        self._bucket = bucket
        self._operator = storage.segment.operator
        is_by_key = storage.segment.placement == "by key"
        self._must_start = is_by_key and self._operator.start is not None
        self.states: dict[bytes, Any] = {}
        """The states that the epoch has touched; change them with `put`, unless there are no keys.
        """
        self._keys: dict[bytes, Any] = {}

    def get(self, key_bytes: bytes, key: Any) -> Any:
        """The state of a key, or its initial state."""
        if key_bytes in self.states:
            state = self.states[key_bytes]
            return self._operator.start_for(key) if state is _GONE else state
        return self._storage.read(self._bucket, key_bytes, key)

    def put(self, key_bytes: bytes, key: Any, state: Any) -> None:
        """Change the state of a key."""
        if self._must_start and self._operator.is_blank(state):
            state = _GONE
        self.states[key_bytes] = state
        if self._storage.key:
            self._keys[key_bytes] = key

    def key(self, key_bytes: bytes) -> Any:
        """The key itself, as it last arrived; None if the segment does not need it."""
        if self._storage.key is None or key_bytes in self._keys:
            return self._keys.get(key_bytes)
        encoded = self._bucket.get(KEY + self._storage.name, key_bytes)
        return None if encoded is None else self._storage.key.decode(encoded)

    def touched(self) -> Iterable[bytes]:
        """The keys to which this epoch gave a state, in order."""
        return sorted(key for key in self.states if not self._is_blank(key))

    def due(self, time: Any) -> Iterable[bytes]:
        """The keys for which a watermark at this time can matter, in order."""
        assert self._storage.time is not None
        decode = self._storage.time.decode
        noted = (
            key
            for key, due in self._bucket.items(BUSY + self._storage.name)
            if key not in self.states and (not due or decode(due) <= time)
        )
        return sorted([*noted, *(key for key in self.states if self._is_due(key, time))])

    def all(self) -> Iterable[bytes]:
        """The keys that have a state, in order."""
        before = set(self._storage.keys(self._bucket))
        return sorted([*before.difference(self.states), *self.touched()])

    def write_back(self) -> None:
        """Write the touched states to the bucket."""
        for key_bytes in self.states:
            is_blank = self._is_blank(key_bytes)
            state = self.states[key_bytes]
            known = None if state is _GONE else state
            self._storage.write(self._bucket, key_bytes, known, is_blank)
            if self._storage.key:
                encoded = self._storage.key.encode(self._keys[key_bytes])
                self._bucket.put(KEY + self._storage.name, key_bytes, None if is_blank else encoded)
            if self._storage.time:
                self._bucket.put(BUSY + self._storage.name, key_bytes, self._note(key_bytes))

    def _is_blank(self, key_bytes: bytes) -> bool:
        state = self.states[key_bytes]
        return state is _GONE or self._operator.is_blank(state)

    def _due(self, key_bytes: bytes) -> Any | None:
        due = self._operator.due if self._storage.has_least_times else None
        return due(self.states[key_bytes]) if due else None

    def _is_due(self, key_bytes: bytes, time: Any) -> bool:
        if not self._is_busy(key_bytes):
            return False
        due = self._due(key_bytes)
        return due is None or bool(due <= time)

    def _note(self, key_bytes: bytes) -> bytes | None:
        """The note on a key for later watermarks; None: the key waits for none."""
        if not self._is_busy(key_bytes):
            return None
        due = self._due(key_bytes)
        return b"" if due is None or self._storage.time is None else self._storage.time.encode(due)

    def _is_busy(self, key_bytes: bytes) -> bool:
        return not self._is_blank(key_bytes) and not self._operator.is_idle(self.states[key_bytes])
