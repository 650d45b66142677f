"""The states of one segment in one bucket while an epoch works on them.

A state is decoded when it is first needed and encoded once at the end. What is blank is deleted;
keys for which a watermark can matter are noted, so that a watermark visits no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cutwater.codec import UNENCODABLE, Codec
from cutwater.errors import InputError, StepError
from cutwater.flow.fusing import Part, Segment
from cutwater.flow.state_snapshots import form_of, not_kept
from cutwater.flow.steps import Step
from cutwater.round_trip import round_trip
from cutwater.spark.state.bucket import BUSY, BucketStates

__all__ = ["KEY", "LiveStates", "Storage", "encode_states", "storage_of"]

KEY = "\x00key "
"""Before the name of a step: the keys of its segment, where they are needed."""
_GONE = object()


@dataclass(frozen=True)
class _Kept:
    """How the state of one step is kept."""

    number: int
    """Its place in the segment."""
    name: str
    encode: Callable[[Any], bytes | None]
    decode: Callable[[bytes], Any]
    is_nothing: Callable[[Any], bool]
    """Need this state not be kept, though the segment has another one?"""


@dataclass(frozen=True)
class Storage:
    """How the states of a segment are kept: worked out once for a job."""

    segment: Segment
    kept: tuple[_Kept, ...]
    key: Codec | None
    """How keys are encoded, if they are kept."""
    time: Codec | None
    """How times are encoded, if watermarks come to the segment and matter to it."""

    @property
    def name(self) -> str:
        """The step by which what belongs to the whole segment is kept."""
        return self.kept[0].name


def storage_of(segment: Segment, key: Codec | None, time: Codec | None) -> Storage:
    """How the states of a stateful segment are kept."""
    found = (_kept(i, part) for i, part in enumerate(segment.parts))
    return Storage(segment, tuple(kept for kept in found if kept), key, time)


def _kept(number: int, part: Part) -> _Kept | None:
    form = form_of(part.step, part.given)
    if form is None:
        return None
    codec, freeze, thaw = Codec(form.type), form.freeze, form.thaw
    never = part.operator.start is not None  # it would begin anew with another key

    def encode(state: Any) -> bytes | None:
        return encode_states(part.step, codec, [freeze(state)])[0]

    return _Kept(
        number,
        part.step.name,
        encode,
        lambda data: thaw(codec.decode(data)),
        (lambda _state: False) if never else part.operator.is_blank,
    )


def encode_states(step: Step, codec: Codec, states: Sequence[Any]) -> list[bytes | None]:
    """States as bytes, None as none; each is decoded once.

    What could not be read again would be there for ever, in this snapshot and every later one.
    """
    encode, decode = codec.encode, codec.decode
    try:
        encoded = [None if state is None else encode(state) for state in states]
        for data in encoded:
            if data is not None:
                decode(data)
    except (TypeError, ValueError, AttributeError, InputError, *UNENCODABLE):
        losses = (round_trip(s, codec)[1] for s in states if s is not None)
        found = next(loss for loss in losses if loss is not None and loss.reason)
        raise StepError(not_kept(step, codec.type, found)) from None
    return encoded


class LiveStates:
    """The states of the keys an epoch touches, as the segment's operator takes them."""

    def __init__(self, storage: Storage, bucket: BucketStates) -> None:
        self._storage = storage
        self._bucket = bucket
        self._operator = storage.segment.operator
        self._is_single = len(storage.segment.parts) == 1
        self._must_start = self._operator.start is not None
        self.states: dict[bytes, Any] = {}
        """What the epoch has touched; to be changed by `put`, save where there are no keys."""
        self._keys: dict[bytes, Any] = {}

    def get(self, key_bytes: bytes, key: Any) -> Any:
        """The state of a key, or the one it begins with."""
        if key_bytes in self.states:
            state = self.states[key_bytes]
            return self._operator.start_for(key) if state is _GONE else state
        return self._load(key_bytes, key)

    def put(self, key_bytes: bytes, key: Any, state: Any) -> None:
        """Change the state of a key."""
        if self._must_start and self._operator.is_blank(state):
            state = _GONE
        self.states[key_bytes] = state
        if self._storage.key:
            self._keys[key_bytes] = key

    def key(self, key_bytes: bytes) -> Any:
        """The key itself, as it came last; None where nobody needs it."""
        if self._storage.key is None or key_bytes in self._keys:
            return self._keys.get(key_bytes)
        encoded = self._bucket.get(KEY + self._storage.name, key_bytes)
        return None if encoded is None else self._storage.key.decode(encoded)

    def touched(self) -> Iterable[bytes]:
        """The keys that this epoch gave a state, in order."""
        return sorted(key for key in self.states if not self._is_blank(key))

    def due(self, time: Any) -> Iterable[bytes]:
        """The keys for which a watermark can matter, in order."""
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
        before = {key for kept in self._storage.kept for key in self._bucket.keys(kept.name)}
        return sorted([*before.difference(self.states), *self.touched()])

    def write_back(self) -> None:
        """Give the bucket what became of the states."""
        for key_bytes in self.states:
            is_blank = self._is_blank(key_bytes)
            self._put_parts(key_bytes, is_blank)
            if self._storage.key:
                encoded = self._storage.key.encode(self._keys[key_bytes])
                self._bucket.put(KEY + self._storage.name, key_bytes, None if is_blank else encoded)
            if self._storage.time:
                self._bucket.put(BUSY + self._storage.name, key_bytes, self._note(key_bytes))

    def _put_parts(self, key_bytes: bytes, is_blank: bool) -> None:
        state = self.states[key_bytes]
        parts = (state,) if self._is_single else state
        for kept in self._storage.kept:
            is_nothing = is_blank or kept.is_nothing(parts[kept.number])
            encoded = None if is_nothing else kept.encode(parts[kept.number])
            self._bucket.put(kept.name, key_bytes, encoded)

    def _load(self, key_bytes: bytes, key: Any) -> Any:
        state = self._operator.start_for(key)
        parts = [state] if self._is_single else list(state)
        for kept in self._storage.kept:
            encoded = self._bucket.get(kept.name, key_bytes)
            if encoded is not None:
                parts[kept.number] = kept.decode(encoded)
        return parts[0] if self._is_single else tuple(parts)

    def _is_blank(self, key_bytes: bytes) -> bool:
        state = self.states[key_bytes]
        return state is _GONE or self._operator.is_blank(state)

    def _due(self, key_bytes: bytes) -> Any | None:
        return self._operator.due(self.states[key_bytes]) if self._operator.due else None

    def _is_due(self, key_bytes: bytes, time: Any) -> bool:
        if not self._is_busy(key_bytes):
            return False
        due = self._due(key_bytes)
        return due is None or bool(due <= time)

    def _note(self, key_bytes: bytes) -> bytes | None:
        """What is noted of a key for the watermarks to come; None: nothing waits there."""
        if not self._is_busy(key_bytes):
            return None
        due = self._due(key_bytes)
        return b"" if due is None or self._storage.time is None else self._storage.time.encode(due)

    def _is_busy(self, key_bytes: bytes) -> bool:
        return not self._is_blank(key_bytes) and not self._operator.is_idle(self.states[key_bytes])
