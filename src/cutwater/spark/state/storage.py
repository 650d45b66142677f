"""How the states of a segment's steps are stored in a bucket: determined once per job.

The state of a step is stored under its name and key. A loop that runs in one place has no state of
its own: each step of its body is stored under its own name and keys, so that an epoch reads and
writes only the keys that have events, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from cutwater.codec import UNENCODABLE, Codec
from cutwater.errors import InputError, StepError
from cutwater.flow.fusing import Part, Segment, body_of
from cutwater.flow.state_snapshots import key_kept_as, not_kept, snapshot_codec
from cutwater.flow.steps import Iterate, Step
from cutwater.operators.keyed import Keyed
from cutwater.operators.loop import LoopState
from cutwater.round_trip import round_trip
from cutwater.spark.state.bucket import BUSY, BucketStates
from cutwater.spark.state.lazy_states import KEY, LazyStates
from cutwater.times import Product

__all__ = ["Storage", "encode_states", "storage_of"]

_IS_THERE = b"\xc3"
"""Stored under the name of a loop if a step of its body has state: true, in msgpack."""


class _Kept(Protocol):
    """How the state of one step is stored."""

    @property
    def number(self) -> int:
        """The position of the step in the segment."""

    @property
    def name(self) -> str:
        """The name of the step."""

    def read(self, bucket: BucketStates, key: bytes) -> Any | None:
        """The state of a key; None if none is stored."""

    def write(self, bucket: BucketStates, key: bytes, state: Any, is_blank: bool) -> None:
        """Store the state of a key; delete it if it is blank."""


@dataclass(frozen=True)
class _Whole:
    """A state that is stored as one value."""

    number: int
    name: str
    encode: Callable[[Any], bytes | None]
    decode: Callable[[bytes], Any]
    is_nothing: Callable[[Any], bool]
    """Can this state be omitted, even if another step of the segment has one?"""

    def read(self, bucket: BucketStates, key: bytes) -> Any | None:
        encoded = bucket.get(self.name, key)
        return None if encoded is None else self.decode(encoded)

    def write(self, bucket: BucketStates, key: bytes, state: Any, is_blank: bool) -> None:
        is_nothing = is_blank or self.is_nothing(state)
        bucket.put(self.name, key, None if is_nothing else self.encode(state))


@dataclass(frozen=True)
class _Spread:
    """A loop that runs in one place: one state per step of its body and per key of that step."""

    number: int
    name: str
    nodes: tuple[Storage, ...]

    def read(self, bucket: BucketStates, _key: bytes) -> LoopState:
        return LoopState(None, [_opened(node, bucket) for node in self.nodes])

    def write(self, bucket: BucketStates, key: bytes, state: LoopState, is_blank: bool) -> None:
        for node, held in zip(self.nodes, state.held, strict=True):
            _save(node, bucket, held)
        bucket.put(self.name, key, None if is_blank else _IS_THERE)


@dataclass(frozen=True)
class Storage:
    """How the states of a segment are stored."""

    segment: Segment
    kept: tuple[_Kept, ...]
    key: Codec | None
    """The codec of keys; None if keys are not stored."""
    time: Codec | None
    """The codec of times; None if the segment does not need watermarks."""

    @property
    def name(self) -> str:
        """The step under whose name is stored what belongs to the whole segment."""
        return self.kept[0].name

    @cached_property
    def has_least_times(self) -> bool:
        """Are its times totally ordered, so that there is a least time to wait for?"""
        streams = (stream for part in self.segment.parts for stream in part.input_types)
        return not any(stream.time is Product for stream in (*streams, self.segment.output))

    @property
    def _is_single(self) -> bool:
        return len(self.segment.parts) == 1

    def read(self, bucket: BucketStates, key_bytes: bytes, key: Any) -> Any:
        """The state of a key, or its initial state if none is stored."""
        state = self.segment.operator.start_for(key)
        parts = [state] if self._is_single else list(state)
        for kept in self.kept:
            found = kept.read(bucket, key_bytes)
            if found is not None:
                parts[kept.number] = found
        return parts[0] if self._is_single else tuple(parts)

    def write(self, bucket: BucketStates, key_bytes: bytes, state: Any, is_blank: bool) -> None:
        """Store the state of a key; `state` may be None if it is blank."""
        parts = (state,) if self._is_single else state
        for kept in self.kept:
            part = None if state is None else parts[kept.number]
            kept.write(bucket, key_bytes, part, is_blank)

    def keys(self, bucket: BucketStates) -> Collection[bytes]:
        """The keys that have a state."""
        if len(self.kept) == 1:
            return bucket.keys(self.name)
        return {key for kept in self.kept for key in bucket.keys(kept.name)}

    def parts(self) -> Iterator[tuple[Storage, Part]]:
        """The steps with state, each with its storage; a loop is followed by those of its body."""
        for kept in self.kept:
            yield self, self.segment.parts[kept.number]
            for node in kept.nodes if isinstance(kept, _Spread) else ():
                yield from node.parts()

    def is_spread(self, step: Step) -> bool:
        """Is it a loop whose state consists of the states of the steps of its body?"""
        return any(kept.name == step.name and isinstance(kept, _Spread) for kept in self.kept)


def storage_of(segment: Segment, key: Codec | None, time: Codec | None) -> Storage:
    """How the states of a segment are stored."""
    found = (_kept(i, part) for i, part in enumerate(segment.parts))
    return Storage(segment, tuple(kept for kept in found if kept), key, time)


def _kept(number: int, part: Part) -> _Kept | None:
    if isinstance(part.step, Iterate):
        body, segments = body_of(part.step, part.input_types[0])
        if not body.is_keyed:
            return _Spread(number, part.step.name, tuple(map(_node_storage, segments)))
    snapshot = snapshot_codec(part.step, part.input_types)
    if snapshot is None:
        return None
    codec, freeze, thaw = Codec(snapshot.type), snapshot.freeze, snapshot.thaw
    never = part.operator.start is not None  # its initial state depends on the key

    def encode(state: Any) -> bytes | None:
        return encode_states(part.step, codec, [freeze(state)])[0]

    return _Whole(
        number,
        part.step.name,
        encode,
        lambda data: thaw(codec.decode(data)),
        (lambda _state: False) if never else part.operator.is_blank,
    )


def encode_states(step: Step, codec: Codec, states: Sequence[Any]) -> list[bytes | None]:
    """Encode states, None as None; raises `StepError` if one does not survive the round trip.

    Each is decoded once as a check: a state that cannot be decoded would remain in this snapshot
    and every later one.
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


# --- the nodes of a body -----------------------------------------------------------------------


def _node_storage(segment: Segment) -> Storage:
    key = Codec(key_kept_as([segment.output])) if segment.placement == "by key" else None
    return storage_of(segment, key, None)


def _opened(node: Storage, bucket: BucketStates) -> Keyed:
    if not node.kept:
        return Keyed(node.segment.operator)
    return Keyed(
        node.segment.operator, LazyStates(node, bucket), set(bucket.keys(BUSY + node.name))
    )


def _save(node: Storage, bucket: BucketStates, held: Keyed) -> None:
    """Write what changed, and note the keys that wait: only these are visited without an event."""
    for key_bytes in held.changed() if node.kept else ():
        is_blank = key_bytes not in held.states
        key, state = (None, None) if is_blank else held.states[key_bytes]
        node.write(bucket, key_bytes, state, is_blank)
        is_waiting = held.is_waiting(key_bytes)
        bucket.put(BUSY + node.name, key_bytes, b"" if is_waiting else None)
        if node.key:
            bucket.put(KEY + node.name, key_bytes, node.key.encode(key) if is_waiting else None)
