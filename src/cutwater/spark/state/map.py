"""The states of one step in one bucket, encoded, by key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add, eq

from cutwater.spark.state.changelog import ROW_COST, EntryWriter, StatesPart, cuts

__all__ = ["KEY_OVERHEAD", "StateMap"]

KEY_OVERHEAD = 170
"""Bytes of memory per key beyond key and state: two objects, and entries in two dictionaries.
Measured: 140 to 200."""


class StateMap:
    """States by key, which of them changed, and the log entry of each."""

    def __init__(self, step: str) -> None:
        self._step = step
        self.states: dict[bytes, bytes] = {}
        self.live = 0
        """The bytes of keys and states."""
        self._newer_entry_of: dict[bytes, int] = {}
        """The entry with the current state of a key; not for keys that are new or were filled in.
        """
        self._filled: list[tuple[int, tuple[bytes, ...]]] = []
        """The keys of the entries that filled the map. In tuples: the garbage collector traverses
        lists over and over, which for millions of keys takes longer than the epoch itself."""
        self._changed: dict[bytes, bytes | None] = {}

    def __len__(self) -> int:
        return len(self.states)

    @property
    def memory(self) -> int:
        """The approximate memory in bytes."""
        return self.live + KEY_OVERHEAD * len(self.states)

    @property
    def has_changes(self) -> bool:
        """Is there anything to write?"""
        return bool(self._changed)

    @property
    def changed_bytes(self) -> int:
        """The approximate number of bytes to write."""
        return _size(self._changed, self._changed.values())

    def put(self, key: bytes, state: bytes | None) -> None:
        """Change a state; None deletes it."""
        old = self.states.get(key)
        if old == state:
            return
        self._changed[key] = state
        if state is None:
            self._delete(key)
            return
        self.live += len(state) - len(old) if old is not None else _size((key,), (state,))
        self.states[key] = state

    def put_many(self, keys: Sequence[bytes], states: Sequence[bytes | None]) -> None:
        """Change the states of many keys, like `put` for each."""
        fresh = self._without_deleted(dict(zip(keys, states, strict=True)), self._changed)
        old = list(map(self.states.get, fresh))
        if any(map(eq, old, fresh.values())):
            pairs = zip(fresh.items(), old, strict=True)
            fresh = {key: state for (key, state), before in pairs if state != before}
            old = list(map(self.states.get, fresh))
        self._changed.update(fresh)
        self._set(fresh, old)

    def fill(self, part: StatesPart, sequence: int) -> None:
        """Apply one entry after the other in bulk; call `filled` at the end."""
        self._filled.append((sequence, tuple(part.keys)))
        if None not in part.states:
            self.states.update(zip(part.keys, part.states, strict=True))  # type: ignore[arg-type]
            return
        for key, state in zip(part.keys, part.states, strict=True):
            if state is None:
                self.states.pop(key, None)
            else:
                self.states[key] = state

    def filled(self) -> None:
        """End the filling."""
        self.live = _size(self.states, self.states.values())

    @property
    def _entry_of(self) -> dict[bytes, int]:
        """The entry with the current state of a key; may include keys that are deleted."""
        if self._filled:  # lazily: costs as much as filling the map, and is seldom needed
            found: dict[bytes, int] = {}
            for sequence, keys in self._filled:
                found.update(dict.fromkeys(keys, sequence))
            found.update(self._newer_entry_of)
            self._newer_entry_of, self._filled = found, []
        return self._newer_entry_of

    def apply(self, part: StatesPart, sequence: int) -> None:
        """Apply a part of an entry."""
        fresh = self._without_deleted(dict(zip(part.keys, part.states, strict=True)))
        self._set(fresh, list(map(self.states.get, fresh)))
        self._newer_entry_of.update(dict.fromkeys(fresh, sequence))

    def keep(self, part: StatesPart, sequence: int) -> None:
        """Mark what is current in an entry to be written again: the entry will be removed."""
        entry_of, states, changed = self._entry_of, self.states, self._changed
        for key in part.keys:
            if entry_of.get(key) == sequence and key not in changed and key in states:
                changed[key] = states[key]

    def keep_all(self) -> None:
        """Mark everything to be written again."""
        self._changed = {**self.states, **self._changed}

    def write_to(self, writer: EntryWriter) -> None:
        """Write what changed to entries."""
        if not self._changed:
            return
        keys, states = list(self._changed), list(self._changed.values())
        sizes = map(add, map(len, keys), (len(state or b"") + ROW_COST for state in states))
        for cut, size in cuts(_size(keys, states), sizes, len(keys)):
            sequence = writer.add(StatesPart(self._step, keys[cut], states[cut]), size)
            self._newer_entry_of.update(dict.fromkeys(keys[cut], sequence))
        if None in states:
            for key, state in self._changed.items():
                if state is None:
                    del self._newer_entry_of[key]
        self._changed = {}

    def _set(self, fresh: dict[bytes, bytes], old: list[bytes | None]) -> None:
        self.live += sum(map(len, fresh.values())) - sum(map(len, filter(None, old)))
        if None in old:
            new = [key for key, state in zip(fresh, old, strict=True) if state is None]
            self.live += _size(new, ())
        self.states.update(fresh)

    def _without_deleted(
        self, fresh: dict[bytes, bytes | None], note: dict[bytes, bytes | None] | None = None
    ) -> dict[bytes, bytes]:
        """Delete the keys whose state is None; returns the others."""
        if None in fresh.values():
            for key in [key for key, state in fresh.items() if state is None]:
                del fresh[key]
                if key in self.states:
                    self._delete(key)
                    if note is not None:
                        note[key] = None
        return fresh  # type: ignore[return-value]

    def _delete(self, key: bytes) -> None:
        self.live -= _size((key,), (self.states.pop(key),))
        self._newer_entry_of.pop(key, None)


def _size(keys: Iterable[bytes], states: Iterable[bytes | None]) -> int:
    lengths = list(map(len, keys))
    return sum(lengths) + ROW_COST * len(lengths) + sum(map(len, filter(None, states)))
