"""States of a bucket that are decoded on demand."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from cutwater.spark.state.bucket import BucketStates

if TYPE_CHECKING:  # which imports this module
    from cutwater.spark.state.storage import Storage

__all__ = ["KEY", "LazyStates"]

KEY = "\x00key "
"""Prefix of a step's name: stores the keys of its segment, if they are needed."""


class LazyStates(MutableMapping[bytes, tuple[Any, Any]]):
    """Key and state by the key's canonical bytes, as `operators.keyed` expects them.

    Changes are buffered here until they are written to the bucket.
    """

    def __init__(self, storage: Storage, bucket: BucketStates) -> None:
        self._storage = storage
        self._bucket = bucket
        self._met: dict[bytes, tuple[Any, Any] | None] = {}
        """What was read or changed; None: no state."""

    def get(self, key_bytes: bytes, default: Any = None) -> Any:
        """Key and state; `default` if there are none."""
        if key_bytes not in self._met:
            self._met[key_bytes] = self._read(key_bytes)
        found = self._met[key_bytes]
        return default if found is None else found

    def __contains__(self, key_bytes: object) -> bool:
        return isinstance(key_bytes, bytes) and self.get(key_bytes) is not None

    def __getitem__(self, key_bytes: bytes) -> tuple[Any, Any]:
        found: tuple[Any, Any] | None = self.get(key_bytes)
        if found is None:
            raise KeyError(key_bytes)
        return found

    def __setitem__(self, key_bytes: bytes, kept: tuple[Any, Any]) -> None:
        self._met[key_bytes] = kept

    def __delitem__(self, key_bytes: bytes) -> None:
        self[key_bytes]
        self._met[key_bytes] = None

    def __iter__(self) -> Iterator[bytes]:
        yield from (key for key, kept in self._met.items() if kept is not None)
        yield from (key for key in self._storage.keys(self._bucket) if key not in self._met)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def _read(self, key_bytes: bytes) -> tuple[Any, Any] | None:
        if not any(key_bytes in self._bucket.keys(kept.name) for kept in self._storage.kept):
            return None
        key = self._key(key_bytes)
        return key, self._storage.read(self._bucket, key_bytes, key)

    def _key(self, key_bytes: bytes) -> Any:
        """The key itself; None if only its bytes are known, until an event carries it."""
        if self._storage.key is None:
            return None
        encoded = self._bucket.get(KEY + self._storage.name, key_bytes)
        return None if encoded is None else self._storage.key.decode(encoded)
