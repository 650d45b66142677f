"""A change as a script: flows that follow one another over one checkpoint."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from support.spark.agreement import parts_of
from support.spark.toy_spark import Killed, ToySpark, make_job

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.spark import runner
from cutwater.spark.checkpoint.compatibility import continued, identity_of
from cutwater.spark.checkpoint.sink_records import remember_sinks
from cutwater.spark.checkpoint.store import Checkpoint

ANEW = "start with a new checkpoint and an empty output"

Line = dict[str, Any]


class Flows:
    """A checkpoint, its input and its output, over which flows follow one another."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch):
        self.root, self._patch, self._files = root, patch, 0
        self._toy: ToySpark | None = None
        self.checkpoint = Checkpoint(root / "checkpoint")

    def run(self, flow, lines=(), forget=(), kill_at=None, **settings):
        """Read further lines with a flow; the rows of each sink that this run showed.

        With `kill_at` the run is killed in its first epoch.
        """
        job = make_job(flow, self.root, max_bytes_per_epoch=1 << 20)
        with pytest.raises(LookupError):
            self.start(job, forget, **settings)
        wanted = replace(identity_of(job, 2), query_id="toy")
        self.checkpoint.save(continued(self.checkpoint.identity() or wanted, wanted, forget))
        self._write(job, lines)
        if self._toy is None:
            self._toy = ToySpark(job, self._patch, seed=1)
        else:
            self._toy.go_on(job)
        remember_sinks(self.checkpoint.root, self._toy.job)
        first = self._toy.committed
        if kill_at:
            with pytest.raises(Killed):
                self._toy.run(kill_at)
        else:
            self._toy.run_to_the_end([])
        self._log_offsets()
        return {name: rows_from(first, sink.root) for name, sink in job.sinks.items()}

    def refused(self, flow, forget=(), **settings):
        """What a run is refused with; nothing is written."""
        job = make_job(flow, self.root)
        before = self._files_and_contents()
        with pytest.raises(RunError) as error:
            self.start(job, forget, **settings)
        assert self._files_and_contents() == before
        return "\n".join(map(str, error.value.problems))

    def start(self, job, forget=(), **settings):
        """Start a run that ends where its session would begin: a `LookupError`."""

        def embedded_session(*args, **kwargs):
            raise LookupError("a session would begin here")

        self._patch.setattr(runner, "embedded_session", embedded_session)
        sinks = {n: s for n, s in job.sinks.items() if not n.startswith("late events: ")}
        bound = {"sources": job.sources, "sinks": sinks, "checkpoint": self.checkpoint.root}
        cutwater_spark.run(job.flow, forget=forget, **{**bound, **settings})

    def _write(self, job, lines):
        self._files += 1
        text = "".join(json.dumps(line) + "\n" for line in lines)
        for source in job.sources.values():
            (self.root / source.path / f"{self._files:04}.jsonl").write_text(text)

    def _log_offsets(self):
        logs = {"offsets": len(self._toy.offsets), "commits": self._toy.committed}
        for log, epochs in logs.items():
            folder = self.checkpoint.spark / log
            folder.mkdir(parents=True, exist_ok=True)
            for epoch in range(epochs):
                (folder / str(epoch)).touch()

    def _files_and_contents(self):
        return {p: p.read_bytes() for p in self.root.rglob("*") if p.is_file()}


def rows_from(epoch: int, folder: Path) -> list[Any]:
    """The rows that a sink shows from an epoch on."""
    parts = [
        part for number, parts in parts_of(folder).items() if number >= epoch for part in parts
    ]
    return [json.loads(line) for part in parts for line in part]


# --- what a script is made of ------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """A flow reads lines, and its sinks show what is expected of them."""

    flow: cw.Flow
    lines: Sequence[Line]
    shows: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, flows: Flows) -> None:
        shown = flows.run(self.flow, self.lines, **self.options)
        assert {sink: shown[sink] for sink in self.shows} == self.shows


@dataclass(frozen=True)
class Refused:
    """A flow is refused in these words; FOLDER in them is the folder of all."""

    flow: cw.Flow
    words: str
    options: Callable[[Path], dict[str, Any]] = lambda _root: {}
    is_whole: bool = True
    """Are these all the words?"""

    def __call__(self, flows: Flows) -> None:
        message = flows.refused(self.flow, **self.options(flows.root))
        message = message.replace(str(flows.root), "FOLDER")
        assert message == self.words if self.is_whole else self.words in message


def runs(flow: cw.Flow, *lines: Line, shows: Any = None, **options: Any) -> Runs:
    """A run; `shows` is what its sink ``out`` does, or what each sink does."""
    shown = shows if isinstance(shows, dict) else {} if shows is None else {"out": shows}
    return Runs(flow, lines, shown, options)


def refused(flow: cw.Flow, words: str, **options: Any) -> Refused:
    return Refused(flow, words, lambda _root: options)


def refused_somehow(flow: cw.Flow, words: str, **options: Any) -> Refused:
    """A refusal of which only a part is looked at."""
    return Refused(flow, words, lambda _root: options, is_whole=False)


# --- the words of refusals ----------------------------------------------------------------------


def changed(words: str, hint: str = f"put it back as it was, or {ANEW}") -> str:
    """What a start says of a flow that is not the one that wrote the checkpoint."""
    return f"[changed-flow] the checkpoint was written with another flow: {words}\n  hint: {hint}"


def changed_step(step: str, words: str) -> str:
    """The same of a step whose state could be begun anew."""
    return changed(
        words,
        f"put it back as it was, or give the step another name and forget '{step}' "
        f"(--forget {step}), which starts with empty state, or {ANEW}",
    )


def gone(step: str) -> str:
    return changed(
        f"step '{step}' was removed, and its state would be lost",
        f"keep the step and its name, or forget '{step}' (--forget {step}), or {ANEW}",
    )


# --- the flows that most begin with -------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    name: str
    size: int = 0
    at: int = 0


@dataclass(frozen=True)
class Count:
    name: str
    count: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Count]]:
    return seen + 1, [Count(item.name, seen + 1)]


@cw.task(initial=0)
def total(seen: int, item: Item) -> tuple[int, list[Count]]:
    return seen + item.size, [Count(item.name, seen + item.size)]


@cw.task(initial=0)
def tally(seen: int, item: Count) -> tuple[int, list[Count]]:
    return seen + 1, [Count(item.name, seen + 1)]


def is_large(item: Item) -> bool:
    return item.size > 1


def doubled(item: Item) -> Item:
    return replace(item, size=2 * item.size)


A: Line = {"name": "a", "size": 1}
B: Line = {"name": "b", "size": 2}


def a(number: int) -> Line:
    return {"name": "a", "count": number}


def b(number: int) -> Line:
    return {"name": "b", "count": number}


def counting(
    before=(), task=count, key="name", flow="flow", source="items", type=Item, step=None, sink="out"
) -> cw.Flow:
    """A source, stateless steps, a key and a task, a sink."""
    made = cw.Flow(flow)
    stream = made.source(source, type)
    for verb, f in before:
        stream = getattr(stream, verb)(f)
    stream = stream.key_by(*(key if isinstance(key, tuple) else (key,)))
    made.sink(sink, stream.apply(task, name=step))
    return made


def chain(*tasks, source=None, end=lambda stream: stream, between=None) -> cw.Flow:
    """Tasks behind one another, all keyed by name."""
    flow = cw.Flow("flow")
    stream = flow.source("items", Item, **(source or {})).key_by("name")
    for number, task in enumerate(tasks):
        stream = stream.apply(task)
        if between and number == 0:
            flow.sink(between, stream)
    flow.sink("out", end(stream))
    return flow
