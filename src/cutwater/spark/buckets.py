"""The state of one bucket: all its keys together, as pages and a short log of changes.

State is kept per step and key, encoded. An epoch appends what it changed to the log; when the log
outgrows the pages, the whole is written as pages again. A worker keeps a copy between epochs and
catches up from the log; since workers take turns, and since a failed attempt may have changed a
copy that looks fresh by number, every log entry carries a random token and its predecessor's: a
copy is used only if its token is the newest, or is found in the log.

The head of a bucket is small and read alone: it tells what the bucket knows of the sources'
watermarks, and whether there is any key for which a watermark could matter. Which keys these are,
and from which time on, is kept like a state, so that a watermark does not look at all the others.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

__all__ = [
    "BUSY",
    "PAGE_BYTES",
    "SMALLEST_LOG",
    "BucketStates",
    "Change",
    "StateStore",
    "States",
]

PAGE_BYTES = 1 << 20
SMALLEST_LOG = 64 << 10
"""A log shorter than this is never folded into pages."""

BUSY = "\x00busy "
"""Before the name of a step: the keys of its segment for which a watermark can matter, each with
the least one that does, encoded; empty if any does."""

Change = tuple[str, bytes, bytes | None]
"""Step, canonical key, encoded state; None: deleted."""

_HEAD = StructType(
    [
        StructField("token", BinaryType()),
        StructField("base_bytes", LongType()),
        StructField("log_bytes", LongType()),
        StructField("busy", LongType()),
        StructField("marks", BinaryType()),
    ]
)
_PAGE = StructType([StructField("page", BinaryType())])
_LOG = StructType([StructField(name, BinaryType()) for name in ("token", "previous", "changes")])

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Change]).decode

_decode_marks = msgspec.msgpack.Decoder(dict[str, bytes]).decode
_NO_MARKS = _encode({})

States = dict[str, dict[bytes, bytes]]
"""Step -> canonical key -> encoded state."""

_NEW = (b"", 0, 0, 0, _NO_MARKS)

_copies: dict[tuple[str, int, int], tuple[bytes, States]] = {}
"""Copies held by this worker: (query, level, label) -> (token, states)."""


class StateStore:
    """The three state variables of a level, for whichever bucket is being worked on."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self.head = handle.getValueState("head", _HEAD)
        self.pages = handle.getListState("pages", _PAGE)
        self.log = handle.getListState("log", _LOG)


class BucketStates:
    """The states of one bucket during one epoch."""

    def __init__(self, store: StateStore, query_id: str, level: int, label: int) -> None:
        self._store = store
        self._place = (query_id, level, label)
        self.label = label
        head = store.head.get() if store.head.exists() else None
        token, self._base_bytes, self._log_bytes, self.busy, marks = head or _NEW
        self._token, self._marks = bytes(token), bytes(marks)
        self._loaded: States | None = None
        self._changes: list[Change] = []

    @property
    def marks(self) -> dict[str, bytes]:
        """What the bucket was told that each source completed, encoded."""
        return _decode_marks(self._marks)

    def get(self, step: str, key: bytes) -> bytes | None:
        """The encoded state of a key."""
        keys = self._states.get(step)
        return keys.get(key) if keys else None

    def keys(self, step: str) -> Collection[bytes]:
        """The keys that have a state."""
        return self._states.get(step, {}).keys()

    def items(self, step: str) -> Collection[tuple[bytes, bytes]]:
        """The keys that have a state, with it."""
        return self._states.get(step, {}).items()

    def put(self, step: str, key: bytes, state: bytes | None) -> None:
        """Change the encoded state of a key; None deletes it."""
        keys = self._states.setdefault(step, {})
        if keys.get(key) == state:
            return
        self._changes.append((step, key, state))
        if state is None:
            del keys[key]
        else:
            keys[key] = state

    def states_of(self, step: str) -> Mapping[bytes, bytes]:
        """The encoded states of a step, by key."""
        return self._states.get(step, {})

    def put_many(self, step: str, keys: Sequence[bytes], states: Sequence[bytes | None]) -> None:
        """Change the encoded states of many keys."""
        for key, state in zip(keys, states, strict=True):
            self.put(step, key, state)

    def save(self, marks: dict[str, bytes] | None = None) -> None:
        """Write what changed, as a log entry or, when the log is long, as new pages.

        `marks` are what the bucket now knows of the sources; None: what it knew before.
        """
        told = self._marks if marks is None else _encode(marks)
        if not self._changes:
            if self._loaded is not None:
                _copies[self._place] = (self._token, self._states)
            if told != self._marks:
                head = (self._token, self._base_bytes, self._log_bytes, self.busy, told)
                self._store.head.update(head)
            return
        token = os.urandom(16)
        changes = _encode(self._changes)
        log_bytes = self._log_bytes + len(changes)
        if log_bytes > max(self._base_bytes, SMALLEST_LOG):
            pages = [(page,) for page in _pages(self._states)]
            self._store.pages.put(pages)
            self._store.log.clear()
            self._base_bytes, log_bytes = sum(len(page) for (page,) in pages), 0
        else:
            self._store.log.appendValue((token, self._token, changes))
        busy = sum(len(keys) for step, keys in self._states.items() if step.startswith(BUSY))
        self._store.head.update((token, self._base_bytes, log_bytes, busy, told))
        _copies[self._place] = (token, self._states)

    @property
    def _states(self) -> States:
        """All states; read when the first of them is asked for."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> States:
        token, states = _copies.pop(self._place, (b"", {}))
        if token == self._token:
            return states
        log = [tuple(bytes(part) for part in entry) for entry in self._store.log.get()]
        known = {previous: i for i, (_, previous, _) in enumerate(log)}
        if token and token in known:
            return _replay(states, log[known[token] :])
        states = {}
        for (page,) in self._store.pages.get():
            _apply(states, bytes(page))
        return _replay(states, log)


def _replay(states: States, log: list[tuple[Any, ...]]) -> States:
    for _, _, changes in log:
        _apply(states, changes)
    return states


def _apply(states: States, changes: bytes) -> None:
    for step, key, state in _decode(changes):
        _set(states, step, key, state)


def _set(states: States, step: str, key: bytes, state: bytes | None) -> None:
    if state is not None:
        states.setdefault(step, {})[key] = state
    elif step in states:
        states[step].pop(key, None)


def _pages(states: States) -> Iterator[bytes]:
    page: list[Change] = []
    size = 0
    for step, keys in states.items():
        for key, state in keys.items():
            page.append((step, key, state))
            size += len(step) + len(key) + len(state)
            if size >= PAGE_BYTES:
                yield _encode(page)
                page, size = [], 0
    yield _encode(page)
