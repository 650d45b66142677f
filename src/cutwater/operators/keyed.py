"""One operator for many keys: the states of all keys, visited only when necessary."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any

from cutwater.annotations import is_immutable
from cutwater.events import Data, Event, Watermark
from cutwater.operators.operator import Operator
from cutwater.ordering import NO_KEY

__all__ = ["Emitted", "Keyed"]

Emitted = tuple[bytes, Any, Sequence[Event]]
"""The canonical bytes of the key, the key, and its outputs."""


class Keyed:
    """The states of one operator, one for each key.

    A watermark visits only the keys that it can affect, a barrier only those touched in its
    epoch, both in the order of the canonical bytes of the keys. Watermarks that the operator emits
    are dropped here: the owner forwards a watermark for all keys together.

    >>> from cutwater.operators import batch
    >>> from cutwater.ordering import canonical
    >>> held = Keyed(batch())
    >>> _ = held.data("k", canonical("k"), Data(1, "a"))
    >>> [outputs for _, _, outputs in held.watermarks([1])]
    [[Data(time=1, value=((1, 'a'),))]]
    """

    def __init__(
        self,
        op: Operator,
        states: MutableMapping[bytes, tuple[Any, Any]] | None = None,
        busy: Iterable[bytes] = (),
    ) -> None:
        self.op = op
        self.states = {} if states is None else states
        """Key and state, indexed by the canonical bytes of the key."""
        self._busy = set(busy)
        self._touched: set[bytes] = set()
        self._changed: set[bytes] = set()
        if op.is_awake and NO_KEY not in self.states:
            self._keep(None, NO_KEY, op.start_for(None))

    def copy(self) -> Keyed:
        """A deep copy; changing a state in place affects only one of the two."""
        other = Keyed(self.op)
        other.states = {
            key_bytes: (key, state if is_immutable(state) else copy.deepcopy(state))
            for key_bytes, (key, state) in self.states.items()
        }
        other._busy, other._touched = set(self._busy), set(self._touched)
        other._changed = set(self._changed)
        return other

    @property
    def is_idle(self) -> bool:
        """Would a watermark change nothing and emit nothing?"""
        return not self._busy

    def awaited(self) -> Iterable[Any]:
        """The times whose completion some key awaits."""
        awaits = self.op.awaits
        if awaits is not None:
            for key_bytes in self._busy:
                yield from awaits(self.states[key_bytes][1])

    def put(self, key: Any, key_bytes: bytes, state: Any) -> None:
        """Restore the state of a key."""
        self._keep(key, key_bytes, state)

    @property
    def touched(self) -> frozenset[bytes]:
        """The keys that the epoch's barrier will visit."""
        return frozenset(self._touched)

    def changed(self) -> Sequence[bytes]:
        """The keys whose states changed since the last snapshot, in order."""
        return sorted(self._changed)

    def is_waiting(self, key_bytes: bytes) -> bool:
        """Can a watermark affect this key?"""
        return key_bytes in self._busy

    def data(self, key: Any, key_bytes: bytes, event: Data) -> Sequence[Event]:
        """The outputs of an event of a key."""
        kept = self.states.get(key_bytes)
        state = self.op.start_for(key) if kept is None else kept[1]
        state, outputs = self.op.step(state, event)
        self._keep(key, key_bytes, state)
        if self.op.barrier:
            self._touched.add(key_bytes)
        return outputs

    def watermarks(self, times: Sequence[Any]) -> Iterable[Emitted]:
        """The outputs of watermarks, key by key."""
        for key_bytes in sorted(self._busy) if times else ():
            key, state = self.states[key_bytes]
            emitted: list[Event] = []
            for time in times:
                state, outputs = self.op.step(state, Watermark(time))
                emitted += [event for event in outputs if isinstance(event, Data)]
            self._keep(key, key_bytes, state)
            yield key_bytes, key, emitted

    def barrier(self) -> Iterable[Emitted]:
        """The outputs of the end of an epoch, key by key."""
        touched, self._touched = sorted(self._touched), set()
        for key_bytes in touched:
            if self.op.barrier and key_bytes in self.states:
                key, state = self.states[key_bytes]
                state, outputs = self.op.barrier(state)
                self._keep(key, key_bytes, state)
                yield key_bytes, key, outputs

    def finish(self) -> Iterable[Emitted]:
        """The outputs of the end of the input, key by key."""
        for key_bytes in sorted(self.states):
            key, state = self.states[key_bytes]
            yield key_bytes, key, [e for e in self.op.finish(state) if isinstance(e, Data)]

    def snapshot(self, kept: Callable[[Any], Any]) -> None:
        """Replace each state that changed since the last snapshot by ``kept(state)``."""
        changed, self._changed = self._changed, set()
        for key_bytes in sorted(changed):
            if key_bytes in self.states:
                key, state = self.states[key_bytes]
                self.states[key_bytes] = (key, kept(state))

    def _keep(self, key: Any, key_bytes: bytes, state: Any) -> None:
        self._changed.add(key_bytes)
        if self.op.is_blank(state):
            self.states.pop(key_bytes, None)
            self._busy.discard(key_bytes)
            return
        self.states[key_bytes] = (key, state)
        if self.op.is_idle(state):
            self._busy.discard(key_bytes)
        else:
            self._busy.add(key_bytes)
