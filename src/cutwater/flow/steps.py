"""The steps of a flow: inert data, one class per verb.

`inputs` are the numbers of earlier steps; a step's own number is its position in the flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cutwater.annotations import signature_of
from cutwater.flow.tasks import Task
from cutwater.flow.vector_tasks import VectorisedTask
from cutwater.flow.watermarks import BoundedDelay, LatePolicy
from cutwater.flow.where import Where
from cutwater.operators.aggregates import Aggregate
from cutwater.operators.batch import Pairs
from cutwater.operators.operator import Operator
from cutwater.operators.windows import Window

__all__ = [
    "Accumulate",
    "AggregateAll",
    "AggregateWindows",
    "Apply",
    "Batch",
    "Bulk",
    "Enter",
    "Filter",
    "FlatMap",
    "Flatten",
    "FromLog",
    "Histogram",
    "Iterate",
    "Join",
    "JoinClocks",
    "KeyBy",
    "Map",
    "MapValues",
    "Merge",
    "OnComplete",
    "Operate",
    "Sink",
    "Skip",
    "Source",
    "Step",
    "ToLog",
    "Union",
]


@dataclass(frozen=True, kw_only=True)
class Step:
    """The fields that every step has."""

    name: str
    """Unique among steps of its sort; identifies its state in a checkpoint."""
    where: Where
    """Where the user defined it."""
    inputs: tuple[int, ...] = ()
    """Numbers of the steps it reads."""

    verb: ClassVar[str] = "step"
    is_stateful: ClassVar[bool] = False
    waits: ClassVar[bool] = False
    """Does it emit when times are complete?"""
    reads_times: ClassVar[bool] = False
    """Does it look at event times, but not at watermarks?"""

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"{self.verb} '{self.name}' ({self.where})"


@dataclass(frozen=True, kw_only=True)
class Source(Step):
    """Where records enter; bound to data by name when the flow runs."""

    verb: ClassVar[str] = "source"
    type: Any
    time: str | None = None
    """The field that holds the time; None: values are numbered, or events carry their times."""
    watermark: BoundedDelay | None = None
    late: LatePolicy = "keep"
    """The policy for late events."""


@dataclass(frozen=True, kw_only=True)
class Map(Step):
    """One output for each value."""

    verb: ClassVar[str] = "map"
    f: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class FlatMap(Step):
    """Any number of outputs for each value."""

    verb: ClassVar[str] = "flat_map"
    f: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Filter(Step):
    """Only the values for which a condition holds."""

    verb: ClassVar[str] = "filter"
    f: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class MapValues(Step):
    """One output for each value, by a function that also receives the time (P4's map)."""

    verb: ClassVar[str] = "map_values"
    reads_times: ClassVar[bool] = True
    f: Callable[[Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class Flatten(Step):
    """Each element of each value (P4)."""

    verb: ClassVar[str] = "flatten"


@dataclass(frozen=True, kw_only=True)
class Skip(Step):
    """All but the first values (P4)."""

    verb: ClassVar[str] = "skip"
    is_stateful: ClassVar[bool] = True
    n: int


@dataclass(frozen=True, kw_only=True)
class Bulk(Step):
    """A function applied to runs of values (P4)."""

    verb: ClassVar[str] = "bulk"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    f: Callable[[list[Any]], Any]
    n: int
    buffer: Pairs = ()
    """What is buffered before the first event, newest first."""


@dataclass(frozen=True, kw_only=True)
class Operate(Step):
    """A user's own operator (P4's ``Logic``)."""

    verb: ClassVar[str] = "operator"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    op: Operator
    state: Any = None
    """The type of its state; None: as the operator or its annotations say."""
    emits: Any = None
    """The type it emits; None: as the operator says."""


@dataclass(frozen=True, kw_only=True)
class KeyBy(Step):
    """An exchange: from here on each key has a state of its own."""

    verb: ClassVar[str] = "key_by"
    fields: tuple[str, ...] = ()
    f: Callable[[Any], Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Merge(Step):
    """Several streams merged into one, in the order of the run."""

    verb: ClassVar[str] = "merge"


@dataclass(frozen=True, kw_only=True)
class Union(Step):
    """Two streams of one type merged into one (P4's union)."""

    verb: ClassVar[str] = "union"


@dataclass(frozen=True, kw_only=True)
class Apply(Step):
    """A task (P1)."""

    verb: ClassVar[str] = "apply"
    is_stateful: ClassVar[bool] = True
    task: Task
    expire_after: Any | None = None

    @property
    def state_type(self) -> Any:
        """The type of a key's state."""
        return self.task.state_type

    @property
    def is_vectorised(self) -> bool:
        """Does the task receive whole batches, where the engine has them?"""
        return isinstance(self.task, VectorisedTask) and self.expire_after is None


@dataclass(frozen=True, kw_only=True)
class Batch(Step):
    """What each watermark completes, as one value (P4)."""

    verb: ClassVar[str] = "batch"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    pending: Pairs = ()
    """What is held before the first event."""


@dataclass(frozen=True, kw_only=True)
class Accumulate(Step):
    """Batches that include all earlier ones (P4)."""

    verb: ClassVar[str] = "accumulate"
    is_stateful: ClassVar[bool] = True
    unbounded: bool = False
    batches: Pairs = ()
    """What was completed before the first event."""


@dataclass(frozen=True, kw_only=True)
class Histogram(Step):
    """How often each value occurred up to each completed time (P4)."""

    verb: ClassVar[str] = "histogram"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    paths: bool = False
    unbounded: bool = False
    pending: Pairs = ()
    """What is held before the first event."""


@dataclass(frozen=True, kw_only=True)
class Join(Step):
    """Pairs with equal key and time from two streams (P4)."""

    verb: ClassVar[str] = "join"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    f: Callable[[Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class JoinClocks(Step):
    """Pairs with equal key from two streams with separate clocks, at products of their times."""

    verb: ClassVar[str] = "join_clocks"
    is_stateful: ClassVar[bool] = True
    reads_times: ClassVar[bool] = True
    f: Callable[[Any, Any], Any]
    unbounded: bool = False


@dataclass(frozen=True, kw_only=True)
class AggregateAll(Step):
    """Running aggregates."""

    verb: ClassVar[str] = "aggregate"
    is_stateful: ClassVar[bool] = True
    aggregates: tuple[tuple[str, Aggregate], ...]
    emit: str = "event"
    unbounded: bool = False


@dataclass(frozen=True, kw_only=True)
class AggregateWindows(Step):
    """Aggregates over windows in event time."""

    verb: ClassVar[str] = "window"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    window: Window
    aggregates: tuple[tuple[str, Aggregate], ...]


@dataclass(frozen=True, kw_only=True)
class OnComplete(Step):
    """A step that requests notifications when times are complete (P3)."""

    verb: ClassVar[str] = "on_complete"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    receive: Callable[[Any, Any, Any], Any]
    complete: Callable[[Any, Any], Any]
    initial: Any
    requests: tuple[Any, ...] = ()
    """The times requested before the first event."""

    @property
    def state_type(self) -> Any:
        """The type of the state: annotated, or else the type of the initial state."""
        for function in (self.receive, self.complete):
            annotated = signature_of(function).parameters[:1]
            if annotated and annotated[0] is not Any:
                return annotated[0]
        return type(self.initial)


@dataclass(frozen=True, kw_only=True)
class Enter(Step):
    """The first step of a loop's body: what enters the loop, and what is fed back."""

    verb: ClassVar[str] = "enter"


@dataclass(frozen=True, kw_only=True)
class Iterate(Step):
    """A loop (P3)."""

    verb: ClassVar[str] = "iterate"
    is_stateful: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    body: tuple[Step, ...]
    """Its own steps, the first of them `Enter`; their inputs are numbers within the body."""
    again: int
    """The step whose output is fed back; -1 if the body returned no stream of its own."""
    out: int
    """The step whose output leaves the loop; -1 likewise."""
    max_rounds: int | None = None
    plan: Literal["epoch", "log"] | None = None
    """On Spark: all rounds in one epoch, or one round per epoch; None: the planner decides."""
    state_per_epoch: bool = False
    """Do the states of its body start afresh with each input epoch?"""

    @property
    def keeps_state(self) -> bool:
        """Does its body keep state from one input epoch to the next?"""
        return not self.state_per_epoch and any(
            step.keeps_state if isinstance(step, Iterate) else step.is_stateful
            for step in self.body
        )

    @property
    def has_exchange(self) -> bool:
        """Does its body contain a key_by?"""
        return any(
            isinstance(step, KeyBy) or (isinstance(step, Iterate) and step.has_exchange)
            for step in self.body
        )


@dataclass(frozen=True, kw_only=True)
class Sink(Step):
    """Where results leave; bound to a destination by name when the flow runs."""

    verb: ClassVar[str] = "sink"


@dataclass(frozen=True, kw_only=True)
class FromLog(Source):
    """Reads the log at which a loop is cut."""

    verb: ClassVar[str] = "from log"
    stream: Any
    """The inferred type of the stream."""
    loop: str
    max_rounds: int | None = None
    is_again: bool
    """Is it the feedback? Otherwise it is what leaves the loop."""
    origins: tuple[str, ...] = ()
    """The sources that lead to the loop."""
    has_watermarks: bool = False
    """Do all of them have watermarks?"""
    overlaps: bool = False
    """May several input epochs be in flight at once?"""


@dataclass(frozen=True, kw_only=True)
class ToLog(Sink):
    """Writes the log at which a loop is cut."""

    verb: ClassVar[str] = "to log"
    loop: str
    is_again: bool
