"""Defining a flow. Building is pure: nothing runs, nothing is checked before `validate`."""

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
        """For the body of a loop: the flow, or the body, that the loop is in."""

    @property
    def steps(self) -> tuple[s.Step, ...]:
        """The steps, each at its number."""
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
        """A stream of records, bound to data when the flow runs.

        Parameters
        ----------
        name
            What the data are bound by.
        type
            A dataclass or a builtin type.
        time
            The field that holds the event time. Without it, plain values are numbered 0, 1, 2, …
            and each epoch completes what it numbered; events bring their own times.
        watermark
            How far behind the newest an event may be, see `bounded_delay`. Without it nothing is
            complete before the end of the input, unless watermarks come with the events.
        late
            What becomes of an event whose time was complete when it came: it is left out, counted
            and kept beside the output (``"keep"``), only counted (``"drop"``), or ends the run
            (``"fail"``).
        """
        return self._add(
            s.Source(name=name, where=here(), type=type, time=time, watermark=watermark, late=late)
        )

    def sink(self, name: str, stream: Stream) -> Stream:
        """An end of the flow, bound to a place when it runs; gives the stream back."""
        inputs = self._numbers([stream])
        self._add(s.Sink(name=name, where=here(), inputs=inputs))
        return stream

    def validate(self) -> None:
        """Raise `FlowError` with every problem the flow has."""
        checked(self.steps, flow=self.name)

    def _add(self, step: s.Step) -> Stream:
        self._steps.append(step)
        return Stream(self, len(self._steps) - 1)

    def _numbers(self, streams: Iterable[Any]) -> tuple[int, ...]:
        """The numbers of streams; -1 for what is no stream of this flow, for `validate` to say."""
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
        """The names that are taken, in loops and around them too."""
        outer = self._outer._names() if self._outer else set()
        return outer | {step.name for step in with_bodies(self._steps)}

    def __repr__(self) -> str:
        return f"<Flow {self.name!r} of {len(self._steps)} steps>"


class Stream:
    """The output of a step; its methods add further steps. A stream may be read many times."""

    def __init__(self, flow: Flow, number: int) -> None:
        self.flow = flow
        self.number = number

    def map(self, f: Callable[[Any], Any], *, name: str | None = None) -> Stream:
        """``f(value)`` for each value; the time stays."""
        return self._stateless(s.Map, f, name)

    def flat_map(self, f: Callable[[Any], Iterable[Any]], *, name: str | None = None) -> Stream:
        """Each element of ``f(value)``; the time stays."""
        return self._stateless(s.FlatMap, f, name)

    def filter(self, f: Callable[[Any], Any], *, name: str | None = None) -> Stream:
        """The values for which ``f(value)`` is true."""
        return self._stateless(s.Filter, f, name)

    def map_values(self, f: Callable[[Any, Any], Any], *, name: str | None = None) -> Stream:
        """``f(time, value)`` for each value; the time stays (P4)."""
        return self._stateless(s.MapValues, f, name)

    def flatten(self, *, name: str | None = None) -> Stream:
        """Each element of each value; the time stays (P4)."""
        return self._then(s.Flatten, name or self.flow._free_name("flatten"))

    def key_by(self, *fields: str | Callable[[Any], Any], name: str | None = None) -> Stream:
        """An exchange: what follows keeps a state for each value of the fields, or of a function.

        The stream stays keyed through later steps until it is keyed anew.
        """
        f = fields[0] if len(fields) == 1 and callable(fields[0]) else None
        names = () if f else tuple(fields)
        label = "_".join(field for field in names if isinstance(field, str)) or _name_of(f)
        free = self.flow._free_name(f"by_{label}")
        return self._then(s.KeyBy, name or free, fields=names, f=f)

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """This stream and others as one, in the order of the run; the types may differ.

        Within an epoch sources follow one another by name, not by event time. What all inputs
        have completed is complete.
        """
        return self._then(s.Merge, name or self.flow._free_name("merge"), others)

    def union(self, other: Stream, *, name: str | None = None) -> Stream:
        """This stream and another of the same type as one (P4's union)."""
        return self._then(s.Union, name or self.flow._free_name("union"), [other])

    def apply(self, task: Task, *, name: str | None = None, expire_after: Any = None) -> Stream:
        """A task on each event, with a state for each key (one for all if there is no key).

        With `expire_after` the state of a key goes away once that much event time is complete
        after its last event.
        """
        label = name or str(getattr(task, "name", "task"))
        return self._then(s.Apply, label, task=task, expire_after=expire_after)

    def skip(self, n: int, *, name: str | None = None) -> Stream:
        """All values but the first `n`, of each key if the stream is keyed (P4).

        Keeps a number for each key.
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
        """Each element of ``f(values)`` for each run of `n` values, newest first (P4).

        An output has the time of the newest value of its run. A run is shorter if that time is
        complete before it is full, or at the end. `buffer` are pairs of a time and a value that
        are there from the start, newest first; only where the stream has no key. Keeps fewer than
        `n` values for each key.
        """
        return self._then(s.Bulk, name or "bulk", f=f, n=n, buffer=_pairs(buffer))

    def operator(
        self, op: Operator, *, state: Any = None, emits: Any = None, name: str | None = None
    ) -> Stream:
        """A step of one's own: an `Operator` on the events of each key (P4's ``Logic``).

        ``op.step(state, event)`` is given every `Data` of a key and, after the first, every
        `Watermark` that all inputs have passed (``is_awake=True``, where there is no key: before
        the first too); ``op.finish(state)`` is called at the end of the input. `Data` that they
        return are emitted, with their own times; watermarks that they return are not, since they
        are passed on for all keys together. Emit no time that is complete: ``check_operator``
        looks for that.

        `state` and `emits` are the types of its state and of what it emits. The operators of this
        package, and what `compose` makes of them, know both.
        """
        return self._then(s.Operate, name or "operator", op=op, state=state, emits=emits)

    def batch(self, *, pending: Iterable[tuple[Any, Any]] = (), name: str | None = None) -> Stream:
        """For each watermark, what it completes: a tuple of ``(time, value)`` (P4).

        Keeps a value until it is complete. `pending` are pairs of a time and a value that are
        held from the start; only where the stream has no key.
        """
        return self._then(s.Batch, name or "batch", pending=_pairs(pending))

    def accumulate(
        self,
        *,
        batches: Iterable[tuple[Any, Any]] = (),
        unbounded: bool = False,
        name: str | None = None,
    ) -> Stream:
        """Batches that include all earlier ones, for each time of the newest (P4).

        Keeps every value for ever, so it asks for ``unbounded=True``. `batches` are pairs of a
        time and a value that every key begins with.
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
        """For each completed time, how often each value occurred up to then (P4).

        Over numbers and other totally ordered fields it keeps one count. Over times whose order
        may be partial, and with ``paths=True`` (a value counts once for every path to a time),
        it keeps every value for ever, so it asks for ``unbounded=True``. `pending` are pairs of a
        time and a value that are held from the start; only where the stream has no key.
        """
        label, held = name or "histogram", _pairs(pending)
        return self._then(s.Histogram, label, paths=paths, unbounded=unbounded, pending=held)

    def join(
        self, other: Stream, f: Callable[[Any, Any], Any], *, name: str | None = None
    ) -> Stream:
        """``f(left, right)`` for each pair of one key and one time; None is left out (P4).

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
        """``f(left, right)`` for each pair of one key, at ``Product(left's time, right's)``.

        For two streams whose times mean different things, such as when something happened and in
        which version it is told. ``Product(t, v)`` is complete when this stream has completed
        ``t`` and the other ``v``. None is left out. Keeps every value for ever, so it asks for
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
        """Running aggregates: ``stream.aggregate(orders=agg.count())``.

        Emits a record of the key and the aggregates after each event, or with ``emit="epoch"``
        once for each key that an epoch touched. Keeps one value per aggregate and key;
        `agg.collect` keeps every value for ever, so it asks for ``unbounded=True``.
        """
        label, aggregates = name or "aggregate", tuple(by.items())
        return self._then(
            s.AggregateAll, label, aggregates=aggregates, emit=emit, unbounded=unbounded
        )

    def window(self, window: Window) -> WindowedStream:
        """`tumbling`, `sliding` or `session` windows, to be aggregated."""
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
        """A step that asks to be told when times are complete (P3's notification).

        ``receive(state, time, value)`` and ``complete(state, time)`` return a state and a list
        of outputs; a `Notify` among them asks for ``complete`` to be called, once, after all
        events at or before that time, minimal times first. `requests` are times that are asked
        for from the start, whether an event comes or not; only where the stream has no key.
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
        plan: Literal["epoch", "log"] | None = None,
        name: str | None = None,
    ) -> Stream:
        """A loop (P3): what the body feeds back comes to it again, one round later.

        ``body(stream)`` is called once, here, and returns two streams that it made of its own:
        what goes round again, and what leaves the loop; or one stream that does both. A time ``t``
        is ``Product(t, rounds)`` inside, with a counter for each loop around. It leaves when
        nothing of it goes round any more.

        A loop turns at the end of each epoch: all that came in the epoch is round 0, what is fed
        back is the next round, each in the order of its causes. If the stream is keyed and the
        body has no `key_by`, each key turns by itself and the result stays keyed. Else all turns in
        one place.

        With `max_rounds` a run ends with an error where more rounds would be needed.

        On Spark a body without `key_by` runs all its rounds inside one epoch. One with a `key_by`
        feeds back through a durable log, a round an epoch, in all buckets, if nothing can tell the
        difference; ``plan="epoch"`` keeps it in one bucket inside one epoch, which is quicker for
        few values, and ``plan="log"`` refuses a loop that cannot use a log. The result is the same.
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
            plan=plan,
        )

    def sink(self, name: str) -> Stream:
        """``flow.sink(name, stream)``, the other way round."""
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
    """A stream in windows, waiting for its aggregates."""

    def __init__(self, stream: Stream, window: Window) -> None:
        self._stream = stream
        self._window = window

    def aggregate(self, *, name: str | None = None, **by: Aggregate) -> Stream:
        """A record of the key, ``window_start``, ``window_end`` and the aggregates, per window.

        Emitted once, when the window is complete. Keeps one value per aggregate, key and open
        window.
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
