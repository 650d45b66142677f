"""The inputs of a simulated run: values and events by source, cut into epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cutwater.annotations import fits, is_known, members, typename
from cutwater.codec import Codec, codec_of
from cutwater.errors import FlowError, InputError, Problem, RunError, did_you_mean
from cutwater.events import Data, Event, Watermark
from cutwater.flow.steps import Source
from cutwater.round_trip import exactness, round_trip
from cutwater.times import maximal

__all__ = [
    "BARRIER",
    "CRASH",
    "Barrier",
    "Crash",
    "SourceReader",
    "as_lists",
    "crash",
    "epochs_of",
    "split",
]


class Barrier:
    """The type of `BARRIER`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "BARRIER"


BARRIER = Barrier()
"""In the input of a source: the end of an epoch."""


@dataclass(frozen=True, slots=True)
class Crash:
    """In the input of a source: when it is reached, one step or all crash; then they recover.

    It takes effect once: the replay after the recovery ignores it.
    """

    step: str | None = None
    """The name of the step; None: all of them."""

    def __repr__(self) -> str:
        return f"crash({self.step!r})" if self.step else "CRASH"


CRASH = Crash()
"""In the input of a source: everything crashes and recovers when the source reaches it."""


def crash(step: str) -> Crash:
    """In the input of a source: one step crashes when the source reaches it, and all recover."""
    return Crash(step)


def epochs_of(
    sources: Sequence[Source], inputs: Mapping[str, Iterable[Any]], epoch_size: int | None
) -> list[dict[str, list[Any]]]:
    """The items of each source in each epoch; the end of the input is a barrier.

    A source with fewer epochs than the others has nothing in the later ones.
    """
    _check_names(sources, inputs)
    if epoch_size is not None and epoch_size < 1:
        message = f"epoch_size is {epoch_size}; an epoch has at least one event"
        raise InputError(Problem("epoch-size", message, "use 1"))
    cut = {source.name: _cut(list(inputs[source.name]), epoch_size) for source in sources}
    count = max((len(epochs) for epochs in cut.values()), default=0)
    return [
        {name: epochs[i] if i < len(epochs) else [] for name, epochs in cut.items()}
        for i in range(count)
    ]


def as_lists(inputs: Any) -> dict[str, list[Any]]:
    """The inputs as lists; raises `InputError` if they are no dict from source to values."""
    is_dict = isinstance(inputs, Mapping)
    if is_dict and all(isinstance(items, Iterable) for items in inputs.values()):
        return {name: list(items) for name, items in inputs.items()}
    shown = repr(inputs)[:200] if is_dict else f"a {type(inputs).__name__}"
    raise InputError(
        Problem(
            "not-inputs",
            f"the inputs are {shown}; inputs are a dict from source to values",
            "for example {'words': ['a', 'b']}",
        )
    )


def _check_names(sources: Sequence[Source], inputs: Mapping[str, Any]) -> None:
    names = [source.name for source in sources]
    problems = []
    for name in inputs:
        if name not in names:
            hint = did_you_mean(str(name), names) or f"its sources: {', '.join(names)}"
            message = f"there is an input for '{name}', which is not a source of this flow"
            problems.append(Problem("unknown-source", message, hint))
    for source in sources:
        if source.name not in inputs:
            problems.append(
                Problem(
                    "missing-input",
                    f"{source.title} has no input; every source needs one",
                    f"pass {{'{source.name}': []}} for an empty source",
                )
            )
    if problems:
        raise InputError(problems)


def split(
    inputs: Mapping[str, Iterable[Any]], epoch_size: int | None
) -> tuple[dict[str, list[Any]], dict[str, list[tuple[int, int, Crash]]]]:
    """The inputs without crashes; and for each source its crashes: epoch, index in it, crash.

    Epochs count from 0; a crash comes before the item at its index.
    """
    plain: dict[str, list[Any]] = {}
    crashes: dict[str, list[tuple[int, int, Crash]]] = {}
    for name, listed in inputs.items():
        items = list(listed)
        plain[name] = [item for item in items if not isinstance(item, Crash)]
        size = None if any(item is BARRIER for item in items) else epoch_size
        epoch = index = 0
        for item in items:
            if isinstance(item, Crash):
                is_full = size is not None and index == size
                place = (epoch + 1, 0) if is_full else (epoch, index)
                crashes.setdefault(name, []).append((*place, item))
                continue
            if item is BARRIER:
                epoch, index = epoch + 1, 0
                continue
            if size is not None and index == size:
                epoch, index = epoch + 1, 0
            index += 1
    return plain, crashes


def _cut(items: list[Any], epoch_size: int | None) -> list[list[Any]]:
    epochs: list[list[Any]] = [[]]
    has_barriers = any(item is BARRIER for item in items)
    size = None if has_barriers else epoch_size
    for item in items:
        if item is BARRIER:
            epochs.append([])
            continue
        if size is not None and len(epochs[-1]) == size:
            epochs.append([])
        epochs[-1].append(item)
    if has_barriers and not epochs[-1]:
        epochs.pop()
    return epochs


@dataclass
class SourceReader:
    """Turns the items of one source into events with times; counts the late ones."""

    source: Source
    late: int = 0
    """The number of events dropped because a watermark had completed their time."""
    late_events: list[Any] = field(default_factory=list)
    """Their values, if the late policy keeps them."""
    _numbered: int = 0
    _newest: Any = None
    _announced: list[Any] = field(default_factory=list)

    def read(self, items: Iterable[Any]) -> list[tuple[int, Event]]:
        """The events of an epoch with their positions, without late ones."""
        events = []
        for position, item in enumerate(items):
            event = self._event(item)
            try:
                if self._take(event, is_by_rule=not self._brings_times(item)):
                    events.append((position, event))
            except TypeError as error:
                raise self._no_time(event.time, str(error)) from None
        return events

    def _take(self, event: Event, is_by_rule: bool) -> bool:
        """Record the time of an event; False if it is late."""
        if not event.time <= event.time:
            raise self._no_time(event.time, "it is not <= itself")
        if isinstance(event, Watermark):
            self._announced = maximal([*self._announced, event.time])
        elif any(event.time <= time for time in self._announced):
            self._leave_out(event)
            return False
        elif self.source.watermark or is_by_rule:
            is_newest = self._newest is None or self._newest <= event.time
            self._newest = event.time if is_newest else self._newest
        return True

    def _leave_out(self, event: Data) -> None:
        if self.source.late == "fail":
            raise RunError(
                Problem(
                    "late-event",
                    f"{self.source.title} was given {event.value!r} at time {event.time!r}, which "
                    "was complete; late events fail a run of this source",
                    "allow a longer delay, or declare late='keep' or late='drop'",
                )
            )
        self.late += 1
        if self.source.late == "keep":
            self.late_events.append(event.value)

    def watermark(self) -> Any | None:
        """The watermark after the epoch just read, by the source's rule; None if unchanged."""
        if self._newest is None:
            return None
        rule = self.source.watermark
        if rule is None and self.source.time is not None:
            return None
        time = rule.watermark(self._newest) if rule else self._newest
        if any(time <= announced for announced in self._announced):
            return None
        self._announced = maximal([*self._announced, time])
        return time

    def _brings_times(self, item: Any) -> bool:
        return isinstance(item, Data) or self.source.time is not None

    def _event(self, item: Any) -> Event:
        if isinstance(item, Watermark):
            return item
        raw = item.value if isinstance(item, Data) else item
        self._check(raw)
        value = self._as_read(raw)
        if isinstance(item, Data):
            return item if value is raw else Data(item.time, value)
        if self.source.time is not None:
            return Data(getattr(value, self.source.time), value)
        self._numbered += 1
        return Data(self._numbered - 1, value)

    @cached_property
    def _codec(self) -> Codec | None:
        """The codec of the source's records; None: unknown type."""
        try:
            return codec_of(self.source.type) if is_known(self.source.type) else None
        except FlowError:
            return None

    def _as_read(self, value: Any) -> Any:
        """The record as a source reads it: a field declared as float is read as one.

        A record that no source could read is left unchanged; an exchange will reject it.
        """
        if self._codec is None or exactness(self.source.type)(value):
            return value
        back, loss = round_trip(value, self._codec)
        return value if loss is None or loss.reason else back

    def _no_time(self, time: Any, reason: str) -> InputError:
        return InputError(
            Problem(
                "not-a-time",
                f"{self.source.title} was given the time {time!r}, which cannot be ordered: "
                f"{reason}",
                "times of a source are of one kind and have <=; correct the input",
            )
        )

    def _check(self, value: Any) -> None:
        wanted = self.source.type
        if any(_is_of(value, member) for member in members(wanted)):
            return
        raise InputError(
            Problem(
                "record-type",
                f"{self.source.title} was given {value!r}, a {type(value).__name__}; "
                f"it carries {typename(wanted)}",
                "correct the input, or the type of the source",
            )
        )


def _is_of(value: Any, tp: Any) -> bool:
    return tp is Any or fits(type(value), tp)
