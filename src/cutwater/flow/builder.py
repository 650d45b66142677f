"""The flow builder. Building is pure: nothing runs and nothing is checked before `validate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from cutwater.flow import steps as s
from cutwater.flow.tasks import Task
from cutwater.flow.timely.bodies import with_bodies
from cutwater.flow.validation import checked
from cutwater.flow.watermarks import BoundedDelay, LatePolicy
from cutwater.flow.where import here
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.operator import Operator
from cutwater.operators.windows import Window

__all__ = ["Flow", "Stream", "WindowedStream"]


class Flow:
    """A dataflow as inert data: steps in the order of their definition.

    Examples
    --------
    >>> flow = Flow("lengths")
    >>> words = flow.source("words", str)
    >>> _ = flow.sink("lengths", words.map(len))
    >>> [step.name for step in flow.steps]
    ['words', 'len', 'lengths']
    """

    def __init__(self, name: str, steps: Iterable[s.Step] = ()) -> None:
        self.name = name
        self._steps: list[s.Step] = list(steps)
        self._outer: Flow | None = None
        """For the body of a loop: the flow or body that contains the loop; None: not a body."""

    @property
    def steps(self) -> tuple[s.Step, ...]:
        """The steps, indexed by their numbers."""
        return tuple(self._steps)

    def source(
        self,
        name: str,
        type: Any,
        *,
        time: str | None = None,
        watermark: BoundedDelay | None = None,
        late: LatePolicy = "keep",
    ) -> Stream:
        """Add a source: a stream of records, bound to data when the flow runs.

        Parameters
        ----------
        name
            The name that data is bound to.
        type
            A dataclass or a builtin type.
        time
            The field that holds the event time. Without it, plain values are numbered 0, 1, 2, …
            and each epoch completes the numbers it assigned; events carry their own times.
        watermark
            How far an event may lag behind the newest one, see `bounded_delay`. Without it nothing
            is complete before the end of the input, unless the events include watermarks.
        late
            The policy for an event that arrives after its time is complete: it is excluded, counted
            and kept in a side output (``"keep"``), only counted (``"drop"``), or fails the run
            (``"fail"``).
        """
        return self._add(
            s.Source(name=name, where=here(), type=type, time=time, watermark=watermark, late=late)
        )

    def sink(self, name: str, stream: Stream) -> Stream:
        """Add a sink, bound to a destination when the flow runs; returns the stream."""
        inputs = self._numbers([stream])
        self._add(s.Sink(name=name, where=here(), inputs=inputs))
        return stream

    def validate(self) -> None:
        """Raise one `FlowError` that lists every problem of the flow."""
        checked(self.steps, flow=self.name)

    def _add(self, step: s.Step) -> Stream:
        self._steps.append(step)
        return Stream(self, len(self._steps) - 1)

    def _numbers(self, streams: Iterable[Any]) -> tuple[int, ...]:
        """The numbers of streams; -1 for anything else, which `validate` then reports."""
        return tuple(
            stream.number if isinstance(stream, Stream) and stream.flow is self else -1
            for stream in streams
        )

    def _free_name(self, wanted: str) -> str:
        taken = self._names()
        if wanted not in taken:
            return wanted
        number = 2
        while f"{wanted}_{number}" in taken:
            number += 1
        return f"{wanted}_{number}"

    def _names(self) -> set[str]:
        """All names in use, including those inside loops and around them."""
        outer = self._outer._names() if self._outer else set()
        return outer | {step.name for step in with_bodies(self._steps)}

    def __repr__(self) -> str:
        return f"<Flow {self.name!r} of {len(self._steps)} steps>"


class Stream:
    """The output of a step; its methods add steps. Several steps may read the same stream."""

    def __init__(self, flow: Flow, number: int) -> None:
        self.flow = flow
        self.number = number

    def map(self, f: Callable[[Any], Any], *, name: str | None = None) -> Stream:
        """Emit ``f(value)`` for each value, at the same time."""
        return self._stateless(s.Map, f, name)

    def flat_map(self, f: Callable[[Any], Iterable[Any]], *, name: str | None = None) -> Stream:
        """Emit each element of ``f(value)``, at the same time."""
        return self._stateless(s.FlatMap, f, name)

    def filter(self, f: Callable[[Any], Any], *, name: str | None = None) -> Stream:
        """Keep the values for which ``f(value)`` is true."""
        return self._stateless(s.Filter, f, name)

    def map_values(self, f: Callable[[Any, Any], Any], *, name: str | None = None) -> Stream:
        """Emit ``f(time, value)`` for each value, at the same time (P4)."""
        return self._stateless(s.MapValues, f, name)

    def flatten(self, *, name: str | None = None) -> Stream:
        """Emit each element of each value, at the same time (P4)."""
        return self._then(s.Flatten, name or self.flow._free_name("flatten"))

    def key_by(self, *fields: str | Callable[[Any], Any], name: str | None = None) -> Stream:
        """Partition by the fields or a function: later steps keep one state per key.

        This is an exchange (a shuffle). The stream stays keyed until the next `key_by`.
        """
        f = fields[0] if len(fields) == 1 and callable(fields[0]) else None
        names = () if f else tuple(fields)
        label = "_".join(field for field in names if isinstance(field, str)) or _name_of(f)
        free = self.flow._free_name(f"by_{label}")
        return self._then(s.KeyBy, name or free, fields=names, f=f)

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """Merge this stream with others, in the order of the run; the types may differ.

        Within an epoch, sources come one after another by name, not by event time. A time is
        complete once all inputs have completed it.
        """
        return self._then(s.Merge, name or self.flow._free_name("merge"), others)

    def union(self, other: Stream, *, name: str | None = None) -> Stream:
        """Merge this stream with another of the same type (P4's union)."""
        return self._then(s.Union, name or self.flow._free_name("union"), [other])

    def apply(self, task: Task, *, name: str | None = None, expire_after: Any = None) -> Stream:
        """Run a task on each event, with one state per key (a single state if there is no key).

        With `expire_after`, the state of a key is dropped once event time is complete up to that
        long after its last event.
        """
        label = name or str(getattr(task, "name", "task"))
        return self._then(s.Apply, label, task=task, expire_after=expire_after)

    def skip(self, n: int, *, name: str | None = None) -> Stream:
        """Drop the first `n` values, of each key if the stream is keyed (P4).

        Keeps one counter per key.
        """
        return self._then(s.Skip, name or "skip", n=n)

    def bulk(
        self,
        f: Callable[[list[Any]], Iterable[Any]],
        n: int,
        *,
        buffer: Iterable[tuple[Any, Any]] = (),
        name: str | None = None,
    ) -> Stream:
        """Emit each element of ``f(values)`` for every run of `n` values, newest first (P4).

        An output has the time of the newest value of its run. A run is cut short if that time
        completes before the run is full, or at the end of the input. `buffer` holds pairs of a
        time and a value that are buffered from the start, newest first; only allowed where the
        stream has no key. Keeps fewer than `n` values per key.
        """
        return self._then(s.Bulk, name or "bulk", f=f, n=n, buffer=_pairs(buffer))

    def operator(
        self, op: Operator, *, state: Any = None, emits: Any = None, name: str | None = None
    ) -> Stream:
        """Run a custom `Operator` on the events of each key (P4's ``Logic``).

        ``op.step(state, event)`` receives every `Data` of a key and, after the first, every
        `Watermark` that all inputs have passed (``is_awake=True``, only without a key: those
        before the first too); ``op.finish(state)`` is called at the end of the input. The `Data`
        they return is emitted at its own times; watermarks they return are dropped, since
        watermarks are forwarded for all keys together. Never emit at a time that is complete:
        ``check_operator`` tests for that.

        `state` and `emits` are the types of the state and of the emitted values. The operators of
        this package, and compositions of them, know both.
        """
        return self._then(s.Operate, name or "operator", op=op, state=state, emits=emits)

    def batch(self, *, pending: Iterable[tuple[Any, Any]] = (), name: str | None = None) -> Stream:
        """Emit, for each watermark, all it completes as a tuple of ``(time, value)`` pairs (P4).

        Keeps a value until its time is complete. `pending` holds pairs of a time and a value that
        are buffered from the start; only allowed where the stream has no key.
        """
        return self._then(s.Batch, name or "batch", pending=_pairs(pending))

    def accumulate(
        self,
        *,
        batches: Iterable[tuple[Any, Any]] = (),
        unbounded: bool = False,
        name: str | None = None,
    ) -> Stream:
        """Append each batch to all earlier ones; emits for each time of the newest batch (P4).

        Keeps every value for ever, so it requires ``unbounded=True``. `batches` holds pairs of a
        time and a value that every key starts with.
        """
        return self._then(
            s.Accumulate, name or "accumulate", unbounded=unbounded, batches=_pairs(batches)
        )

    def histogram(
        self,
        *,
        paths: bool = False,
        unbounded: bool = False,
        pending: Iterable[tuple[Any, Any]] = (),
        name: str | None = None,
    ) -> Stream:
        """Emit, for each completed time, how often each value occurred up to then (P4).

        Over numbers and other totally ordered times it keeps one running count. Over times whose
        order may be partial, and with ``paths=True`` (a value counts once for every path to a
        time), it keeps every value for ever, so it requires ``unbounded=True``. `pending` holds
        pairs of a time and a value that are buffered from the start; only allowed where the
        stream has no key.
        """
        label, held = name or "histogram", _pairs(pending)
        return self._then(s.Histogram, label, paths=paths, unbounded=unbounded, pending=held)

    def join(
        self, other: Stream, f: Callable[[Any, Any], Any], *, name: str | None = None
    ) -> Stream:
        """Emit ``f(left, right)`` for each pair with equal key and time; None is dropped (P4).

        Keeps a value until its time is complete on both sides.
        """
        return self._then(s.Join, name or "join", [other], f=f)

    def join_clocks(
        self,
        other: Stream,
        f: Callable[[Any, Any], Any],
        *,
        unbounded: bool = False,
        name: str | None = None,
    ) -> Stream:
        """Emit ``f(left, right)`` for each pair of a key, at ``Product(left's time, right's)``.

        For two streams whose times mean different things, such as when something happened and the
        version that reports it. ``Product(t, v)`` is complete when this stream has completed
        ``t`` and the other ``v``. None is dropped. Keeps every value for ever, so it requires
        ``unbounded=True``.
        """
        label = name or self.flow._free_name("join_clocks")
        return self._then(s.JoinClocks, label, [other], f=f, unbounded=unbounded)

    def aggregate(
        self,
        *,
        emit: str = "event",
        unbounded: bool = False,
        name: str | None = None,
        **by: Aggregate,
    ) -> Stream:
        """Running aggregates per key: ``stream.aggregate(orders=agg.count())``.

        Emits a record of the key and the aggregates after each event, or with ``emit="epoch"``
        once per epoch for each key that changed. Keeps one value per aggregate and key;
        `agg.collect` keeps every value for ever, so it requires ``unbounded=True``.
        """
        label, aggregates = name or "aggregate", tuple(by.items())
        return self._then(
            s.AggregateAll, label, aggregates=aggregates, emit=emit, unbounded=unbounded
        )

    def window(self, window: Window) -> WindowedStream:
        """Assign values to `tumbling`, `sliding` or `session` windows; `aggregate` comes next."""
        return WindowedStream(self, window)

    def on_complete(
        self,
        receive: Callable[[Any, Any, Any], Any],
        complete: Callable[[Any, Any], Any],
        *,
        initial: Any,
        requests: Iterable[Any] = (),
        name: str | None = None,
    ) -> Stream:
        """A step that requests notifications when times are complete (P3's notification).

        ``receive(state, time, value)`` and ``complete(state, time)`` return a state and a list
        of outputs; a `Notify` among them requests one call of ``complete``, after all events at
        or before that time, minimal times first. `requests` are times requested from the start,
        whether or not an event arrives; only allowed where the stream has no key.
        """
        label = name or _name_of(complete)
        return self._then(
            s.OnComplete,
            label,
            receive=receive,
            complete=complete,
            initial=initial,
            requests=tuple(requests),
        )

    def iterate(
        self,
        body: Callable[[Stream], Stream | tuple[Stream, Stream]],
        *,
        max_rounds: int | None = None,
        state_per_epoch: bool = False,
        plan: Literal["epoch", "log"] | None = None,
        name: str | None = None,
    ) -> Stream:
        """A loop (P3): what the body feeds back enters it again, one round later.

        ``body(stream)`` is called once, here, and returns two streams derived from its argument:
        the feedback and the output of the loop; or one stream that is both. Inside, a time ``t``
        is ``Product(t, rounds)``, with one round counter per enclosing loop. A time leaves the loop
        when nothing of it circulates any more.

        The loop iterates at the end of each epoch: the epoch's input is round 0, and what a round
        feeds back is the next, in the order of its causes. If the stream is keyed and the body has
        no `key_by`, each key iterates by itself and the result stays keyed. Otherwise the whole
        loop iterates in one place.

        With `max_rounds` a run fails where more rounds would be needed.

        The steps of the body keep their states from one input epoch to the next, so an input epoch
        must finish before the next begins. With `state_per_epoch` each starts from fresh state:
        input epochs are then independent, and several may be in flight at once.

        On Spark a body without `key_by` runs all its rounds inside one epoch. One with a `key_by`
        feeds back through a durable log, one round per epoch, in all buckets, provided nothing can
        observe the difference; ``plan="epoch"`` keeps it in one bucket inside one epoch, which is
        faster for few values, and ``plan="log"`` rejects a loop that cannot use a log. The result
        is the same. With a log, input epochs overlap if the body keeps no state between them.
        """
        inner = Flow(self.flow.name, [s.Enter(name="enter", where=here())])
        inner._outer = self.flow
        made = body(Stream(inner, 0))
        again, out = made if isinstance(made, tuple) and len(made) == 2 else (made, made)
        number_again, number_out = inner._numbers([again, out])
        return self._then(
            s.Iterate,
            name or inner._free_name("iterate"),
            body=inner.steps,
            again=number_again,
            out=number_out,
            max_rounds=max_rounds,
            state_per_epoch=state_per_epoch,
            plan=plan,
        )

    def sink(self, name: str) -> Stream:
        """The same as ``flow.sink(name, stream)``."""
        return self.flow.sink(name, self)

    def _stateless(self, kind: type[s.Step], f: Callable[..., Any], name: str | None) -> Stream:
        return self._then(kind, name or self.flow._free_name(_name_of(f)), f=f)

    def _then(
        self, kind: type[s.Step], name: str, others: Iterable[Any] = (), **settings: Any
    ) -> Stream:
        inputs = self.flow._numbers([self, *others])
        return self.flow._add(kind(name=name, where=here(), inputs=inputs, **settings))

    def __repr__(self) -> str:
        return f"<Stream {self.flow.steps[self.number].name!r} of flow {self.flow.name!r}>"


class WindowedStream:
    """A stream assigned to windows, to be aggregated."""

    def __init__(self, stream: Stream, window: Window) -> None:
        self._stream = stream
        self._window = window

    def aggregate(self, *, name: str | None = None, **by: Aggregate) -> Stream:
        """Emit a record of key, ``window_start``, ``window_end`` and aggregates per window.

        It is emitted once, when the window is complete. Keeps one value per aggregate, key and
        open window.
        """
        label = name or "window"
        return self._stream._then(
            s.AggregateWindows, label, window=self._window, aggregates=tuple(by.items())
        )


def _name_of(f: Any) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    return "function" if name == "<lambda>" else str(name)


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, ...]:
    return tuple(tuple(pair) if isinstance(pair, list) else pair for pair in pairs)
