"""Round trips of states at barriers, and of events at exchanges, through their codecs.

An engine encodes the states in a snapshot and the events for a stateful step, by their declared
types, and what it writes to a sink. The model does the same: a value that comes back different, or
cannot be written, is a loss, reported with the name of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from cutwater.annotations import is_immutable, is_known, typename
from cutwater.codec import UNENCODABLE, Codec, Plain, codec_of
from cutwater.errors import FlowError, InputError, Problem, StepError
from cutwater.events import Data, Event
from cutwater.flow import steps as s
from cutwater.flow.fusing import Part, Segment, SegmentInput
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.lowering import not_as_annotated
from cutwater.flow.state_snapshots import key_kept_as, not_kept, snapshot_codec
from cutwater.operators.snapshot import SnapshotCodec
from cutwater.round_trip import exactness, first_misfit, round_trip, unencodable_part

__all__ = ["OnLoss", "SnapshotCodecs", "refuse"]

_json = msgspec.json.Encoder().encode

OnLoss = Callable[[Problem], None]
"""Called with the problem of a value that does not survive its round trip."""


def refuse(problem: Problem) -> None:
    """End the run with the problem."""
    raise StepError(problem)


class SnapshotCodecs:
    """The inputs and states of a segment, passed through the codecs of the declared types.

    Parameters
    ----------
    segment
        The segment.
    on_loss
        Called with the problem of a value that does not survive; if it returns, the value is kept
        unchanged.
    sinks
        The sinks that it feeds.
    """

    def __init__(
        self, segment: Segment, on_loss: OnLoss = refuse, sinks: Sequence[s.Sink] = ()
    ) -> None:
        self._on_loss = on_loss
        self._is_single = len(segment.parts) == 1
        self._events = [_Exchange(edge, segment, on_loss) for edge in segment.inputs]
        self._is_exchange = segment.is_stateful
        maker = segment.maker
        self._made = _Made(maker, segment.output.value, on_loss) if maker else None
        self._written = _Written(segment, sinks[0], on_loss) if sinks else None
        first, is_kept = segment.steps[0], segment.is_stateful or not sinks
        has_function = isinstance(first, s.KeyBy) and first.f is not None
        self.key = _Key(segment, on_loss).look if has_function and is_kept else None
        """Checks a key that a function made; None: no state is kept by such a key."""
        kept = (_kept(number, part, on_loss) for number, part in enumerate(segment.parts))
        self._states = [one for one in kept if one is not None]

    def event(self, port: int, event: Data) -> Data:
        """An event as it arrives; the input of a segment without state is not encoded."""
        if not self._is_exchange or not self._events:
            return event
        value = self._events[port].through(event.value)
        return event if value is event.value else Data(event.time, value)

    def emitted(self, event: Event) -> None:
        """Check the outputs: does the annotation allow them, and can a sink write them?"""
        if not isinstance(event, Data):
            return
        if self._made is not None:
            self._made.look(event.value)
        if self._written is not None:
            self._written.look(event.value)

    def state(self, state: Any) -> Any:
        """The state of a key as a snapshot restores it."""
        if not self._states:
            return state
        parts = [state] if self._is_single else list(state)
        for one in self._states:
            parts[one.number] = one.through(parts[one.number])
        return parts[0] if self._is_single else tuple(parts)


class _Codec:
    """A codec that is made when it is first needed; a type without one is reported once."""

    def __init__(self, tp: Any, problem: Callable[[str], Problem], on_loss: OnLoss) -> None:
        self._type, self._problem, self._on_loss = tp, problem, on_loss
        self._codec: Codec | None = None
        self._is_usable = is_known(tp)
        self._is_exact = exactness(tp)

    def through(self, value: Any) -> Any:
        if not self._is_usable or (self._is_exact(value) and is_immutable(value)):
            return value
        if self._codec is None:
            try:
                self._codec = codec_of(self._type)
            except FlowError as error:
                self._is_usable = False
                self._on_loss(self._problem(error.problems[0].message))
                return value
        if self._is_exact(value):  # encode anyway: a snapshot does not preserve shared parts
            return self._codec.decode(self._codec.encode(value))
        try:
            back, loss = round_trip(value, self._codec)
        except InputError:  # a time or a key without a declared type
            return value
        if loss is None:
            return back
        self._on_loss(self._problem(str(loss)))
        return value


class _Made:
    """Checks that the outputs of a function have the type that it declares."""

    def __init__(self, step: s.Step, tp: Any, on_loss: OnLoss) -> None:
        self._step, self._type, self._on_loss = step, tp, on_loss
        self._is_exact = exactness(tp) if is_known(tp) else None

    def look(self, value: Any) -> None:
        if self._is_exact is None or self._is_exact(value):
            return
        if found := first_misfit(value, self._type):
            self._on_loss(not_as_annotated(self._step, self._type, found))


class _Written:
    """Checks that a sink can write its input."""

    def __init__(self, segment: Segment, sink: s.Sink, on_loss: OnLoss) -> None:
        self._step, self._sink, self._on_loss = segment.steps[-1], sink, on_loss
        tp = segment.output.value
        self._is_exact = exactness(tp) if is_known(tp) else None

    def look(self, value: Any) -> None:
        if self._is_exact is not None and self._is_exact(value):
            return
        try:
            _json(value)
        except UNENCODABLE:
            part = unencodable_part(value)
            found = f"{part.found}; {part.reason}" if part else "it is nested too deeply"
            self._on_loss(self._problem(found))
        except (TypeError, ValueError):  # no JSON: some sinks take it, others refuse it at once
            return

    def _problem(self, message: str) -> Problem:
        return Problem(
            "lost-in-a-sink",
            f"{self._step.title} sends what {self._sink.title} cannot write: {message}",
            "map it to valid Unicode text, and to values that are not nested too deeply",
        )


class _Key:
    """Checks that a checkpoint, which stores keys by their type, restores a key as it was made."""

    def __init__(self, segment: Segment, on_loss: OnLoss) -> None:
        self._step, self._on_loss = segment.steps[0], on_loss
        self._codec = codec_of(key_kept_as([segment.output]))
        self._is_exact = exactness(self._codec.type)

    def look(self, key: Any) -> None:
        if self._is_exact(key):
            return
        try:
            _, loss = round_trip(key, self._codec)
        except InputError as error:
            problem = error.problems[0]
            message = f"{self._step.title}: {problem.message}"
            self._on_loss(replace(problem, message=message))
            return
        if loss is not None:
            self._on_loss(self._problem(str(loss)))

    def _problem(self, message: str) -> Problem:
        return Problem(
            "not-as-annotated",
            f"{self._step.title} is annotated to make keys of {typename(self._codec.type)} and "
            f"makes something else: {message}",
            "correct what the function returns, or its annotation",
        )


class _Exchange:
    """How the events of one input arrive."""

    def __init__(self, edge: SegmentInput, segment: Segment, on_loss: OnLoss) -> None:
        sender, reader = edge.sender, segment.steps[0]

        def problem(message: str) -> Problem:
            return Problem(
                "lost-in-an-exchange",
                f"{sender.title} sends {typename(edge.value)} to {reader.title}, which does not "
                f"arrive unchanged: {message}",
                "correct what the step returns, or its annotation",
            )

        self.through = _Codec(edge.value, problem, on_loss).through


class _Kept:
    """How the state of one step comes back."""

    def __init__(self, number: int, part: Part, snapshot: SnapshotCodec, on_loss: OnLoss) -> None:
        self.number = number
        self._is_blank, self._codec_of_state = part.operator.is_blank, snapshot

        def problem(message: str) -> Problem:
            return not_kept(part.step, snapshot.type, message)

        self._codec = _Codec(snapshot.type, problem, on_loss)

    def through(self, state: Any) -> Any:
        if self._is_blank(state):
            return state
        frozen = self._codec_of_state.freeze(state)
        back = self._codec.through(frozen)
        return state if back is frozen else self._codec_of_state.thaw(back)


class _KeptBeside(_Kept):
    """The same, for a state that is kept together with times."""

    def through(self, state: Any) -> Any:
        if self._is_blank(state) or state[0] is None:
            return state
        return (self._codec.through(state[0]), *state[1:])


def _kept(number: int, part: Part, on_loss: OnLoss) -> _Kept | None:
    step, input_types = part.step, tuple(map(_with_times, part.input_types))
    if isinstance(step, (s.Apply, s.OnComplete)):
        is_beside = isinstance(step, s.OnComplete) or step.expire_after is not None
        kind = _KeptBeside if is_beside else _Kept
        return kind(number, part, SnapshotCodec(step.state_type), on_loss)
    snapshot = snapshot_codec(step, input_types)
    return None if snapshot is None else _Kept(number, part, snapshot, on_loss)


def _with_times(stream: StreamType) -> StreamType:
    """Times of unknown type are encoded self-describing."""
    return replace(stream, time=Plain) if stream.time is Any else stream
