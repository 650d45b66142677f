"""A job: a plan bound to real sources and sinks, as every Spark process needs it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

from pyspark import cloudpickle

from cutwater.errors import CutwaterError, embed
from cutwater.flow import Flow, Task
from cutwater.flow.fusing import Plan, Segment, plan
from cutwater.records import Codec
from cutwater.spark.folder import Folder
from cutwater.spark.labels import labels

__all__ = ["Job", "JsonLines", "load_job", "speaking"]


@dataclass(frozen=True)
class JsonLines:
    """A folder of JSON-lines files: each file appears whole, and does not change after."""

    path: str
    max_bytes_per_epoch: int = 32 << 20
    """How much one epoch reads at the most; a bucket's share of it is sorted in memory."""


@dataclass(frozen=True)
class Job:
    """A flow with its bindings. Travels to every process as bytes, never to a checkpoint."""

    flow: Flow
    sources: dict[str, JsonLines]
    sinks: dict[str, Folder]
    """Where each sink goes; bad records of a source go to the sink ``bad records: <source>``."""
    query_id: str
    generation: int
    buckets: int
    checkpoint: str
    parallelism: int = 2
    skip_bad_records: bool = False
    permute: int | None = None
    """A seed: buckets shuffle what they get before they sort it; no result may depend on it."""

    @cached_property
    def plan(self) -> Plan:
        """The flow as segments."""
        return plan(self.flow)

    @cached_property
    def labels(self) -> Sequence[int]:
        """The group label of each bucket."""
        return labels(self.buckets)

    @cached_property
    def source_ranks(self) -> dict[str, int]:
        """The place of each source in the order: by name."""
        return {name: rank for rank, name in enumerate(sorted(self.sources))}

    @cached_property
    def codecs(self) -> dict[int, Codec]:
        """How the events that come to each stateful segment are encoded."""
        return {seg.number: Codec(seg.given.value) for seg in self.plan.segments if seg.is_stateful}

    @cached_property
    def sink_names(self) -> list[str]:
        """Sinks in the order of their numbers."""
        return list(self.sinks)

    def target_of_sink(self, name: str) -> int:
        """The number by which rows are addressed to a sink; segments have the smaller ones."""
        return len(self.plan.segments) + self.sink_names.index(name)

    @cached_property
    def sinks_after(self) -> dict[int, list[int]]:
        """For each segment the sinks it feeds, as targets."""
        fed: dict[int, list[int]] = {segment.number: [] for segment in self.plan.segments}
        for sink, number in self.plan.sinks:
            fed[number].append(self.target_of_sink(sink.name))
        return fed

    @cached_property
    def levels(self) -> list[list[Segment]]:
        """The stateful segments by depth: level i reads only what lower levels and sources send."""
        depth: dict[int, int] = {}
        for segment in self.plan.segments:
            below = max((depth[edge.segment] for edge in segment.inputs), default=0)
            depth[segment.number] = below + segment.is_stateful
        found: list[list[Segment]] = [[] for _ in range(max(depth.values(), default=0))]
        for segment in self.plan.segments:
            if segment.is_stateful:
                found[depth[segment.number] - 1].append(segment)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Job, tuple(getattr(self, field.name) for field in fields(self))

    def to_bytes(self) -> bytes:
        """The job for another process, with the user's own modules by value.

        Other processes need not be able to import the file in which the flow is defined.
        """
        modules = [sys.modules[name] for name in _own_modules(self.flow)]
        for module in modules:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        try:
            buffer = io.BytesIO()
            _Pickler(buffer).dump(self)  # type: ignore[no-untyped-call]
            return buffer.getvalue()
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


class _Pickler(cloudpickle.Pickler):
    """Leaves out what msgspec remembers on a class, which cannot be pickled and is made anew."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and "__msgspec_cache__" in vars(obj):
            delattr(obj, "__msgspec_cache__")
        return super().reducer_override(obj)  # type: ignore[no-untyped-call]


def _own_modules(flow: Flow) -> set[str]:
    """The modules of the user's functions and types that are not installed packages."""
    things = [thing for step in flow.steps for thing in vars(step).values()]
    things += [thing.f for thing in things if isinstance(thing, Task)]
    names = {str(getattr(thing, "__module__", None)) for thing in things}
    return {name for name in names if name in sys.modules and not _is_installed(name)}


def _is_installed(module: str) -> bool:
    path = getattr(sys.modules[module], "__file__", None) or sys.base_prefix
    is_ours = module.split(".")[0] == __name__.split(".")[0]
    return is_ours or "site-packages" in path or path.startswith(sys.base_prefix)


@lru_cache(maxsize=4)
def load_job(data: bytes) -> Job:
    """The job that was sent; a process unpacks each job once."""
    job = cloudpickle.loads(data)
    assert isinstance(job, Job)
    return job


@contextmanager
def speaking() -> Iterator[None]:
    """Around what Spark calls: our errors reach the driver as sentences, not as stack traces."""
    try:
        yield
    except CutwaterError as error:
        raise RuntimeError(embed(error)) from error
