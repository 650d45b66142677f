"""What may change between two runs: a test for each row of the table in ``docs/operations.md``.

A flow runs on the toy Spark, then another one over the same checkpoint. Each start goes through
the real `run` up to where a session would begin, so what is refused is refused there.
"""

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from support.repo.package import ROOT
from support.spark.agreement import parts_of
from support.spark.toy_spark import Killed, ToySpark, make_job

import cutwater as cw
from cutwater import agg
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError, recover
from cutwater.flow.steps import Sink
from cutwater.spark import runner
from cutwater.spark.checkpoint.compatibility import FORMAT, continued, identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.storage.durable import read_json, write_json

OTHER = "the checkpoint was written with another flow: "
ANEW = "start with a new checkpoint and an empty output"


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


class Flows:
    """A checkpoint, its input and its output, over which flows follow one another."""

    def __init__(self, root, patch):
        self.root, self._patch, self._toy, self._files = root, patch, None, 0
        self.place = Checkpoint(root / "checkpoint")

    def run(self, flow, lines=(), forget=(), kill_at=None, **settings):
        """Read further lines with a flow; the rows of each sink that this run showed.

        With `kill_at` the run is killed in its first epoch.
        """
        job = make_job(flow, self.root, max_bytes_per_epoch=1 << 20)
        with pytest.raises(LookupError):
            self._start(job, forget, **settings)
        wanted = replace(identity_of(job, 2), query_id="toy")
        self.place.save(continued(self.place.identity() or wanted, wanted, forget))
        self._write(job, lines)
        if self._toy is None:
            self._toy = ToySpark(job, self._patch, seed=1)
        else:
            self._toy.go_on(job)
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
            self._start(job, forget, **settings)
        assert self._files_and_contents() == before
        return "\n".join(map(str, error.value.problems))

    def _start(self, job, forget, **settings):
        def embedded_session(*args, **kwargs):
            raise LookupError("a session would begin here")

        self._patch.setattr(runner, "embedded_session", embedded_session)
        sinks = {n: s for n, s in job.sinks.items() if not n.startswith("late events: ")}
        bound = {"sources": job.sources, "sinks": sinks, "checkpoint": self.place.root}
        cutwater_spark.run(job.flow, forget=forget, **{**bound, **settings})

    def _write(self, job, lines):
        self._files += 1
        text = "".join(json.dumps(line) + "\n" for line in lines)
        for source in job.sources.values():
            (self.root / source.path / f"{self._files:04}.jsonl").write_text(text)

    def _log_offsets(self):
        offsets = self.place.spark / "offsets"
        offsets.mkdir(parents=True, exist_ok=True)
        for epoch in range(len(self._toy.offsets)):
            (offsets / str(epoch)).touch()

    def _files_and_contents(self):
        return {p: p.read_bytes() for p in self.root.rglob("*") if p.is_file()}


def rows_from(epoch, folder):
    """The rows that a sink shows from an epoch on."""
    parts = [
        part for number, parts in parts_of(folder).items() if number >= epoch for part in parts
    ]
    return [json.loads(line) for part in parts for line in part]


@pytest.fixture
def flows(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        yield Flows(tmp_path, patch)


A = {"name": "a", "size": 1}
B = {"name": "b", "size": 2}


def counting(
    before=(), task=count, key="name", behind=(), flow="flow", source="items", type=Item, **names
):
    """A source, stateless steps, a key and a task, stateless steps, a sink."""
    made = cw.Flow(flow)
    stream = made.source(source, type)
    for verb, f in before:
        stream = getattr(stream, verb)(f)
    stream = stream.key_by(*(key if isinstance(key, tuple) else (key,)))
    stream = stream.apply(task, name=names.get("step"))
    for verb, f in behind:
        stream = getattr(stream, verb)(f)
    made.sink(names.get("sink", "out"), stream)
    return made


def a(number):
    return {"name": "a", "count": number}


def put_back(step):
    return (
        f"\n  hint: put it back as it was, or give the step another name and forget '{step}' "
        f"(--forget {step}), which begins its state anew, or {ANEW}"
    )


def refusal(words, hint=f"\n  hint: put it back as it was, or {ANEW}"):
    return f"[changed-flow] {OTHER}{words}{hint}"


# Steps without a state


def test_a_stateless_step_added(flows):
    assert flows.run(counting(), [A, A])["out"] == [a(1), a(2)]
    added = counting(before=[("filter", is_large), ("map", doubled)])
    assert flows.run(added, [A, {**A, "size": 2}])["out"] == [a(3)]


def test_a_stateless_step_removed(flows):
    flows.run(counting(before=[("filter", is_large)]), [A, {**A, "size": 2}])
    assert flows.run(counting(), [A])["out"] == [a(2)]


def test_a_stateless_step_changed(flows):
    def tripled(item: Item) -> Item:
        return replace(item, size=3 * item.size)

    flows.run(counting(before=[("map", doubled)], task=total), [B])
    changed = counting(before=[("map", tripled)], task=total)
    assert flows.run(changed, [B])["out"] == [{"name": "b", "count": 4 + 6}]


def test_a_stateless_step_renamed(flows):
    def named(name):
        flow = cw.Flow("flow")
        items = flow.source("items", Item).map(doubled, name=name).key_by("name", name=f"by {name}")
        flow.sink("out", items.apply(count))
        return flow

    flows.run(named("one"), [A])
    assert flows.run(named("two"), [A])["out"] == [a(2)]


# Sinks


def two_sinks(first="out", second="more"):
    flow = cw.Flow("flow")
    counts = flow.source("items", Item).key_by("name").apply(count)
    for name in filter(None, (first, second)):
        flow.sink(name, counts)
    return flow


def test_a_sink_added(flows):
    flows.run(counting(), [A])
    assert flows.run(two_sinks(), [A]) == {"out": [a(2)], "more": [a(2)]}


def test_a_sink_added_between_two_steps_that_keep_states(flows):
    """Both were one operator; with a reader in between the second is in a level of its own."""

    def chain(*, forked):
        flow = cw.Flow("flow")
        counts = flow.source("items", Item).key_by("name").apply(count)
        if forked:
            flow.sink("between", counts)
        flow.sink("out", counts.apply(tally))
        return flow

    flows.run(chain(forked=False), [A])
    assert flows.refused(chain(forked=True)) == "\n".join(
        [
            refusal("its levels of stateful steps were 1 and are 2"),
            refusal("step 'tally' was in level 1 and is in level 2", put_back("tally")),
        ]
    )


def test_a_sink_removed(flows):
    flows.run(two_sinks(), [A])
    assert flows.run(counting(), [A])["out"] == [a(2)]
    # one that comes back has a gap
    assert flows.run(two_sinks(), [A])["more"] == [a(3)]
    shown = parts_of(flows.root / "out" / "more")
    assert sorted(shown) == [0, 2]


def test_a_sink_renamed(flows):
    flows.run(counting(), [A])
    assert flows.run(counting(sink="results"), [A])["results"] == [a(2)]


def test_a_sink_renamed_with_its_folder(flows):
    flows.run(counting(), [A])
    folder = flows.root / "out" / "out"
    assert flows.refused(counting(sink="results"), sinks={"results": folder}) == (
        f"[another-sink] sink 'results' goes to {folder}, which belongs to sink 'out' of the same "
        "checkpoint\n  hint: bind 'results' to the folder it had before, or to an empty one"
    )


# Sources


def two_sources(*names):
    flow = cw.Flow("flow")
    first, *others = (flow.source(name, Item) for name in names)
    items = first.merge(*others) if others else first
    flow.sink("out", items.key_by("name").apply(count))
    return flow


def test_a_source_added(flows):
    flows.run(two_sources("items"), [A])
    assert flows.refused(two_sources("items", "more")) == refusal(
        "its sources were 'items' and are 'items', 'more'"
    )


def test_a_source_removed(flows):
    flows.run(two_sources("items", "more"), [A])
    assert flows.refused(two_sources("items")) == refusal(
        "its sources were 'items', 'more' and are 'items'"
    )


def test_a_source_renamed(flows):
    flows.run(two_sources("items"), [A])
    assert flows.refused(two_sources("things")) == refusal(
        "its sources were 'items' and are 'things'"
    )


def test_a_source_bound_to_another_kind(flows):
    flows.run(two_sources("items"), [A])
    csv = cutwater_spark.csv(str(flows.root / "in" / "items"))
    assert flows.refused(two_sources("items"), sources={"items": csv}) == refusal(
        "source 'items' was bound to JSON lines and is bound to CSV",
        f"\n  hint: bind it as it was, or {ANEW}",
    )


# Steps with a state


def beside(*tasks):
    """A task on each of several branches of one source."""
    flow = cw.Flow("flow")
    items = flow.source("items", Item)
    for number, task in enumerate(tasks):
        flow.sink(f"out{number}", items.key_by("name").apply(task))
    return flow


def test_a_stateful_step_added_within_a_level(flows):
    flows.run(beside(count), [B, B])
    rows = flows.run(beside(count, total), [B])
    assert rows["out0"] == [{"name": "b", "count": 3}]
    assert rows["out1"] == [{"name": "b", "count": 2}]


def test_a_stateful_step_added_behind_another_in_one_chain(flows):
    def chain(*tasks):
        flow = cw.Flow("flow")
        stream = flow.source("items", Item).key_by("name")
        for task in tasks:
            stream = stream.apply(task)
        flow.sink("out", stream)
        return flow

    flows.run(chain(count), [A, A])
    assert flows.run(chain(count, tally), [A, A])["out"] == [a(1), a(2)]
    assert flows.run(chain(count), [A], forget=["tally"])["out"] == [a(5)]


def test_a_stateful_step_added_across_levels(flows):
    flow = cw.Flow("flow")
    counts = flow.source("items", Item).key_by("name").apply(count)
    flow.sink("out", counts.key_by("count").apply(tally))
    flows.run(counting(), [A])
    assert flows.refused(flow) == refusal("its levels of stateful steps were 1 and are 2")


def test_a_stateful_step_added_in_front_of_one_that_waits(flows):
    """Which keys wait is noted with the first step of a chain, and would be looked for there."""

    @cw.task(initial=0)
    def large(seen: int, item: Item) -> tuple[int, list[Item]]:
        return seen + 1, [item]

    def waiting(*tasks):
        flow = cw.Flow("flow")
        items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
        stream = items.key_by("name")
        for task in tasks:
            stream = stream.apply(task)
        flow.sink("out", stream.batch())
        return flow

    flows.run(waiting(), [A])
    assert flows.refused(waiting(large)) == refusal(
        "what waits at step 'batch' was noted with 'batch', no keys, times as int | float | "
        "Decimal and is noted with 'large', no keys, times as int | float | Decimal",
        put_back("batch"),
    )


def test_a_stateful_step_removed(flows):
    flows.run(beside(count, total), [B])
    assert flows.refused(beside(count)) == refusal(
        "step 'total' is gone, and its state would be lost",
        f"\n  hint: keep the step and its name, or forget 'total' (--forget total), or {ANEW}",
    )


def test_a_stateful_step_removed_and_forgotten(flows):
    flows.run(beside(count, total), [B])
    for number in (2, 3):  # the same command again, too
        rows = flows.run(beside(count), [B], forget=["total"])
        assert rows["out0"] == [{"name": "b", "count": number}]
    assert flows.place.identity().forgotten == ["total"]


def test_a_stateful_step_that_was_forgotten_and_is_back(flows):
    flows.run(beside(count, total), [B])
    flows.run(beside(count), [B], forget=["total"])
    assert flows.refused(beside(count, total)) == refusal(
        "step 'total' was forgotten and is back; what it kept would be out of date",
        f"\n  hint: give the step another name, or {ANEW}",
    )


def test_what_is_not_there_cannot_be_forgotten(flows):
    flows.run(counting(), [A])
    assert flows.refused(counting(), forget=["total"]) == (
        "[cannot-forget] step 'total' is to be forgotten, but the checkpoint holds nothing of it\n"
        "  hint: steps that keep a state there: count"
    )
    assert flows.refused(counting(), forget=["count"]) == (
        "[cannot-forget] step 'count' is to be forgotten, but the flow has a step of that name; "
        "what the old one kept would be taken for its state\n"
        "  hint: give the step another name"
    )


def test_a_stateful_step_renamed(flows):
    flows.run(counting(), [A])
    assert flows.refused(counting(step="seen")) == refusal(
        "step 'count' is gone, and its state would be lost",
        f"\n  hint: keep the step and its name, or forget 'count' (--forget count), or {ANEW}",
    )
    assert flows.run(counting(step="seen"), [A], forget=["count"])["out"] == [a(1)]


def test_a_stateful_step_made_another_verb(flows):
    def aggregated():
        flow = cw.Flow("flow")
        items = flow.source("items", Item).key_by("name")
        flow.sink("out", items.aggregate(n=agg.count(), name="count"))
        return flow

    flows.run(counting(), [A])
    assert flows.refused(aggregated()) == refusal(
        "step 'count' was 'apply' and is 'aggregate'", put_back("count")
    )


def test_the_body_of_a_task_changed(flows):
    @cw.task(initial=0, name="count")
    def by_ten(seen: int, item: Item) -> tuple[int, list[Count]]:
        return seen + 10, [Count(item.name, seen + 10)]

    flows.run(counting(), [A])
    assert flows.run(counting(task=by_ten), [A])["out"] == [a(11)]


def test_expire_after_changed(flows):
    def expiring(after):
        flow = cw.Flow("flow")
        items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
        flow.sink("out", items.key_by("name").apply(count, expire_after=after))
        return flow

    flows.run(expiring(10), [{**A, "at": 5}])
    # it would have expired at 6 and still does at 15; what is seen from now on goes after 1
    flows.run(expiring(1), [{**B, "at": 9}])
    assert flows.run(expiring(1), [{**A, "at": 10}])["out"] == [a(2)]
    flows.run(expiring(1), [{**B, "at": 13}])
    assert flows.run(expiring(1), [{**A, "at": 14}])["out"] == [a(1)]
    # a longer time holds for what is there already
    flows.run(expiring(10), [{**B, "at": 20}])
    assert flows.run(expiring(10), [{**A, "at": 21}])["out"] == [a(2)]


# Keys


def test_the_fields_of_a_key_changed(flows):
    flows.run(counting(), [A])
    assert flows.refused(counting(key="size")) == refusal(
        "step 'count' was keyed by name and is keyed by size", put_back("count")
    )
    assert flows.refused(counting(key=("name", "size"))) == refusal(
        "step 'count' was keyed by name and is keyed by name, size", put_back("count")
    )


def test_the_key_removed(flows):
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", Item).apply(count))
    flows.run(counting(), [A])
    assert flows.refused(flow) == refusal(
        "step 'count' was keyed by name and is not keyed", put_back("count")
    )


def test_the_type_of_a_key_changed(flows):
    @dataclass(frozen=True)
    class Numbered:
        name: int
        size: int

    @cw.task(initial=0, name="count")
    def count_numbered(seen: int, item: Numbered) -> tuple[int, list[int]]:
        return seen + 1, [seen + 1]

    flows.run(counting(), [A])
    assert flows.refused(counting(type=Numbered, task=count_numbered)) == refusal(
        "the key of step 'count' was str and is int", put_back("count")
    )


def key_functions():
    """Three functions of one name, of which the first two do the same."""

    def make_first():
        def of(item: Item) -> str:
            return item.name.lower()

        return of

    def make_same():
        def of(thing: Item) -> str:
            """The same, in other words."""
            return thing.name.lower()  # with a comment

        return of

    def make_other():
        def of(item: Item) -> str:
            return item.name.upper()

        return of

    return make_first(), make_same(), make_other()


def test_the_function_of_a_key_changed(flows):
    first, same, other = key_functions()
    flows.run(counting(key=first), [A])
    assert flows.run(counting(key=same), [A])["out"] == [a(2)]
    assert flows.refused(counting(key=other)) == refusal(
        "function of, which makes the keys of step 'count', does something else", put_back("count")
    )
    assert flows.refused(counting(key="name")) == refusal(
        "step 'count' was keyed by function of and is keyed by name", put_back("count")
    )


def test_the_function_of_a_key_under_another_python(flows):
    """What functions are made of differs between versions, and says nothing."""
    first, _, other = key_functions()
    flows.run(counting(key=first), [A])
    found = flows.place.identity()
    step = found.steps["count"]
    elsewhere = replace(step.key, functions=(("of", "3.0", "0" * 16),))
    flows.place.save(replace(found, steps={"count": replace(step, key=elsewhere)}))
    assert flows.run(counting(key=other), [A])["out"] == [a(1)]


# The type of a state


@dataclass(frozen=True)
class Seen:
    count: int = 0
    name: str = ""


def keeping(state):
    """A task that keeps a dataclass with a count and a name."""

    def keep(seen: state, item: Item) -> tuple[state, list[Count]]:
        changed = replace(seen, count=seen.count + 1)
        return changed, [Count(item.name, changed.count)]

    return counting(task=cw.task(initial=state(), name="keep")(keep))


def state_refusal(words):
    return refusal(words, put_back("keep"))


def test_a_field_with_a_default_added_to_a_state(flows):
    @dataclass(frozen=True)
    class Longer:
        total: int = 100
        count: int = 0
        name: str = ""
        sizes: list[int] = field(default_factory=list)

    @cw.task(initial=Longer(0), name="keep")
    def keep(seen: Longer, item: Item) -> tuple[Longer, list[Count]]:
        changed = replace(seen, count=seen.count + 1, total=seen.total + item.size)
        return changed, [Count(item.name, changed.count), Count("total", changed.total)]

    flows.run(keeping(Seen), [A, A])
    rows = flows.run(counting(task=keep), [A, {**A, "name": "new"}])["out"]
    assert rows.index(a(3)) + 1 == rows.index({"name": "total", "count": 101})
    assert {"name": "total", "count": 1} in rows


def test_a_field_without_a_default_added_to_a_state(flows):
    @dataclass(frozen=True)
    class Longer:
        total: int
        count: int = 0
        name: str = ""

    def keep(seen: Longer, item: Item) -> tuple[Longer, list[Count]]:
        return seen, []

    flows.run(keeping(Seen), [A])
    assert flows.refused(
        counting(task=cw.task(initial=Longer(0), name="keep")(keep))
    ) == state_refusal("field 'total' of the state of step 'keep' is new and has no default")


def test_a_field_removed_from_a_state(flows):
    @dataclass(frozen=True)
    class Shorter:
        count: int = 0

    flows.run(keeping(Seen), [A])
    assert flows.refused(keeping(Shorter)) == state_refusal(
        "field 'name' of the state of step 'keep' is gone"
    )


def test_a_field_of_a_state_retyped(flows):
    @dataclass(frozen=True)
    class Retyped:
        count: float = 0
        name: str | None = ""

    flows.run(keeping(Seen), [A])
    assert flows.refused(keeping(Retyped)) == "\n".join(
        [
            state_refusal("field 'count' of the state of step 'keep' was int and is float"),
            state_refusal("field 'name' of the state of step 'keep' was str and is str | None"),
        ]
    )


def test_a_field_of_a_state_renamed(flows):
    @dataclass(frozen=True)
    class Renamed:
        count: int = 0
        title: str = ""

    flows.run(keeping(Seen), [A])
    assert flows.refused(keeping(Renamed)) == state_refusal(
        "field 'name' of the state of step 'keep' is gone"
    )


def test_the_default_of_a_field_of_a_state_changed(flows):
    @dataclass(frozen=True)
    class One:
        count: int = 0
        name: str = ""
        more: int = 1

    @dataclass(frozen=True)
    class Two:
        count: int = 0
        name: str = ""
        more: int = 2

    def telling(state):
        def keep(seen: state, item: Item) -> tuple[state, list[int]]:
            return replace(seen, count=seen.count + 1), [seen.more]

        return counting(task=cw.task(initial=state(), name="keep")(keep))

    flows.run(keeping(Seen), [A, B])
    assert flows.run(telling(One), [A])["out"] == [1]
    # a was kept anew since the field was added, b was not
    assert sorted(flows.run(telling(Two), [A, B])["out"]) == [1, 2]


def test_the_default_of_a_field_of_a_state_removed(flows):
    """What was kept before the field was added has none, however long ago."""

    @dataclass(frozen=True)
    class Strict:
        name: str
        count: int = 0

    def keep(seen: Strict, item: Item) -> tuple[Strict, list[Count]]:
        return seen, []

    flows.run(keeping(Seen), [A])
    assert flows.refused(
        counting(task=cw.task(initial=Strict(""), name="keep")(keep))
    ) == state_refusal("field 'name' of the state of step 'keep' had a default and has none")


def test_the_class_of_a_state_renamed(flows):
    @dataclass(frozen=True)
    class Known:
        name: str = ""
        count: int = 0

    flows.run(keeping(Seen), [A])
    assert flows.run(keeping(Known), [A])["out"] == [a(2)]


@dataclass(frozen=True)
class Left:
    x: int = 0


@dataclass(frozen=True)
class Right:
    x: int = 0


def test_a_field_added_to_a_state_that_is_written_without_names(flows):
    """Where msgspec cannot tell the parts of a union, fields are written one after the other."""

    @dataclass(frozen=True)
    class Either:
        count: int = 0
        side: Left | Right = Left()

    @dataclass(frozen=True)
    class Longer:
        count: int = 0
        side: Left | Right = Left()
        more: int = 0

    flows.run(keeping(Either), [A])
    assert flows.refused(keeping(Longer)) == state_refusal(
        "the state of step 'keep' was Either(count: int, side: Left(x: int) | Right(x: int)) and "
        "is Longer(count: int, side: Left(x: int) | Right(x: int), more: int)"
    )


# The type of records


@dataclass(frozen=True)
class Short:
    name: str


def whole(record) -> dict[str, Any]:
    return asdict(record)


def copying(type):
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", type).map(whole))
    return flow


def test_a_field_with_a_default_added_to_a_record(flows):
    @dataclass(frozen=True)
    class Longer:
        name: str
        more: int = 7

    flows.run(copying(Short), [A])
    rows = flows.run(copying(Longer), [A, {**A, "more": 1}])["out"]
    assert rows == [{"name": "a", "more": 7}, {"name": "a", "more": 1}]


def read_badly(flows, type, line):
    """The sentence with which a line that does not fit ends a run."""
    flows.run(copying(Short), [A])
    with pytest.raises(RuntimeError) as error:
        flows.run(copying(type), [line])
    (problem,) = recover(str(error.value)).problems
    return f"[{problem.code}] {problem.message}".replace(f"{flows.root}/", "")


def test_a_field_without_a_default_added_to_a_record(flows):
    @dataclass(frozen=True)
    class Longer:
        name: str
        more: int

    assert read_badly(flows, Longer, A) == (
        "[bad-record] in/items/0002.jsonl:1 is no record of source 'items': Object missing "
        'required field `more`; it is {"name": "a", "size": 1}'
    )


def test_a_field_removed_from_a_record(flows):
    flows.run(copying(Item), [A])
    assert flows.run(copying(Short), [A])["out"] == [{"name": "a"}]


def test_a_field_of_a_record_retyped(flows):
    @dataclass(frozen=True)
    class Retyped:
        name: int

    assert read_badly(flows, Retyped, A) == (
        "[bad-record] in/items/0002.jsonl:1 is no record of source 'items': Expected `int`, got "
        '`str` - at `$.name`; it is {"name": "a", "size": 1}'
    )


def test_a_field_of_a_record_renamed(flows):
    @dataclass(frozen=True)
    class Renamed:
        title: str = "none"

    flows.run(copying(Short), [A])
    assert flows.run(copying(Renamed), [A])["out"] == [{"title": "none"}]


@dataclass(frozen=True)
class Timed:
    at: int
    name: str = "a"


def wholes(batch) -> list[dict[str, Any]]:
    return [asdict(record) for _, record in batch]


def holding(type):
    flow = cw.Flow("flow")
    items = flow.source("items", type, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.batch().flat_map(wholes))
    return flow


def test_a_record_that_a_step_holds_back_changed(flows):
    """It is kept, so it is part of a state."""

    @dataclass(frozen=True)
    class Longer:
        at: int
        name: str = "a"
        more: int = 7

    @dataclass(frozen=True)
    class Shorter:
        at: int

    flows.run(holding(Timed), [{"at": 5, "name": "x"}])
    assert "is gone" in flows.refused(holding(Shorter))
    rows = flows.run(holding(Longer), [{"at": 9}])["out"]
    assert rows == [{"at": 5, "name": "x", "more": 7}]


# States and records as columns


def vectorised(state):
    """`keeping`, with a vectorised task."""

    def keep(seen: state, item: Item, keys: cw.Keys) -> tuple[state, Count]:
        counts = keys.running_count(start=seen.count)
        return replace(seen, count=keys.last(counts)), Count(item.name, counts)

    return counting(task=cw.vectorised(initial=state(), name="keep")(keep))


def test_a_field_with_a_default_added_to_a_vectorised_state(flows):
    @dataclass(frozen=True)
    class Longer:
        total: int = 100
        name: str = ""
        count: int = 0
        share: float = 0.5
        sizes: list[int] = field(default_factory=lambda: [7])

    @cw.vectorised(initial=Longer(0), name="keep")
    def keep(seen: Longer, item: Item, keys: cw.Keys) -> tuple[Longer, Count]:
        of, total = keys.of, keys.running_sum(item.size, start=seen.total)
        known = [len(sizes) for sizes in seen.sizes]
        shown = total + (100 * seen.share[of]).astype(int) + 1000 * np.array(known)[of]
        return replace(seen, total=keys.last(total)), Count(item.name, shown)

    flows.run(vectorised(Seen), [A, A, B])
    rows = flows.run(counting(task=keep), [A, {**A, "name": "new"}, A])["out"]
    assert [row["count"] for row in rows if row["name"] == "a"] == [1151, 1152]
    assert {"name": "new", "count": 1051} in rows
    # what was not seen since is converted when it is seen
    assert flows.run(counting(task=keep), [B])["out"] == [{"name": "b", "count": 1152}]


def test_a_field_removed_from_a_vectorised_state(flows):
    @dataclass(frozen=True)
    class Shorter:
        count: int = 0

    flows.run(vectorised(Seen), [A])
    assert flows.refused(vectorised(Shorter)) == state_refusal(
        "field 'name' of the state of step 'keep' is gone"
    )


def test_a_field_of_a_vectorised_state_retyped(flows):
    @dataclass(frozen=True)
    class Retyped:
        count: float = 0
        name: str = ""

    flows.run(vectorised(Seen), [A])
    assert flows.refused(vectorised(Retyped)) == state_refusal(
        "field 'count' of the state of step 'keep' was int and is float"
    )


def test_a_task_made_vectorised(flows):
    flows.run(keeping(Seen), [A])
    assert flows.refused(vectorised(Seen)) == state_refusal(
        "the state of step 'keep' was kept key by key and is kept in columns"
    )


def test_a_vectorised_task_made_one_by_one(flows):
    flows.run(vectorised(Seen), [A])
    assert flows.refused(keeping(Seen)) == state_refusal(
        "the state of step 'keep' was kept in columns and is kept key by key"
    )


def test_the_body_of_a_vectorised_task_changed(flows):
    def keep(seen: Seen, item: Item, keys: cw.Keys) -> tuple[Seen, Count]:
        counts = keys.running_sum(10, start=seen.count)
        return replace(seen, count=keys.last(counts)), Count(item.name, counts)

    flows.run(vectorised(Seen), [A])
    changed = counting(task=cw.vectorised(initial=Seen(), name="keep")(keep))
    assert flows.run(changed, [A, A])["out"] == [a(11), a(21)]


@dataclass(frozen=True)
class Weighed:
    name: str
    size: float = 0.0
    at: int = 0


def test_a_field_that_an_aggregate_reads_retyped(flows):
    flows.run(aggregated(m=agg.sum("size")), [A])
    assert flows.refused(aggregated(type=Weighed, m=agg.sum("size"))) == refusal(
        "a part of a part of the state of step 'aggregate' was int and is float",
        put_back("aggregate"),
    )


def test_a_task_added_behind_an_aggregate(flows):
    """The two are one chain, in which nothing is kept in columns."""

    @cw.task(initial=0)
    def seen(count: int, _row: Any) -> tuple[int, list[int]]:
        return count + 1, [count + 1]

    flows.run(aggregated(m=agg.sum("size")), [A])
    assert flows.refused(aggregated(behind=[seen], m=agg.sum("size"))) == refusal(
        "the state of step 'aggregate' was kept in columns and is kept key by key",
        put_back("aggregate"),
    )


# Times


def windowed(window=None, delay=0, late="keep", time="at", watermark=True, **by):
    flow = cw.Flow("flow")
    rule = cw.bounded_delay(delay) if watermark else None
    items = flow.source("items", Item, time=time, watermark=rule, late=late)
    windows = items.key_by("name").window(window or cw.tumbling(10))
    flow.sink("out", windows.aggregate(**(by or {"n": agg.count()})))
    return flow


def at(time, size=1):
    return {"name": "a", "size": size, "at": time}


def shown(start, n, length=10):
    return {"name": "a", "window_start": start, "window_end": start + length, "n": n}


def test_the_delay_of_a_watermark_made_shorter(flows):
    assert flows.run(windowed(delay=10), [at(5), at(12)])["out"] == []
    rows = flows.run(windowed(delay=0), [at(3), at(20)])
    # what is complete by the new delay is complete at once: 3 is late
    assert rows["out"] == [shown(0, 1), shown(10, 1)]
    assert rows["late events: items"] == [at(3)]


def test_the_delay_of_a_watermark_made_longer(flows):
    flows.run(windowed(delay=1), [at(5), at(12)])
    assert flows.refused(windowed(delay=10)) == refusal(
        "the delay of the watermark of source 'items' was 1 and is 10; what was complete would be "
        "open again",
        f"\n  hint: put it back as it was, or make it shorter, or {ANEW}",
    )


def test_a_watermark_added_or_removed(flows):
    flows.run(windowed(), [at(5)])
    assert flows.refused(windowed(watermark=False)).startswith(
        refusal("source 'items' had a watermark and has none")
    )
    others = Flows(flows.root / "others", flows._patch)
    others.run(windowed(watermark=False), [at(5)])
    assert others.refused(windowed()).startswith(
        refusal("source 'items' had no watermark and has one")
    )


def test_the_time_of_a_source_changed(flows):
    flows.run(windowed(), [at(5)])
    assert flows.refused(windowed(time="size")) == refusal(
        "the times of source 'items' were at: int and are size: int",
        f"\n  hint: put them back as they were, or {ANEW}",
    )


def test_times_that_nobody_asked_for_before(flows):
    flows.run(counting(), [A])
    flow = cw.Flow("flow")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.key_by("name").apply(count))
    flow.sink("held", items.batch())
    assert flows.run(flow, [at(5), at(9)])["out"] == [a(2), a(3)]
    assert flows.run(flow, [at(10)])["held"] == [[[9, at(9)]]]


def test_numbers_that_nobody_asks_for_for_a_while(flows):
    """They do not begin again: buckets may remember that they were complete."""

    def numbered(name):
        flow = cw.Flow("flow")
        items = flow.source("items", Short)
        flow.sink("out", items.key_by("name").apply(named))
        if name:
            flow.sink("held", items.batch(name=name))
        return flow

    @cw.task(initial=0)
    def named(seen: int, item: Short) -> tuple[int, list[int]]:
        return seen + 1, [seen + 1]

    assert flows.run(numbered("one"), [A, A])["held"] == [[[0, {"name": "a"}], [1, {"name": "a"}]]]
    flows.run(numbered(None), [A], forget=["one"])
    rows = flows.run(numbered("two"), [A])
    assert rows == {"out": [4], "held": [[[2, {"name": "a"}]]]}


def test_the_late_policy_changed(flows):
    flows.run(windowed(), [at(5), at(12)])
    rows = flows.run(windowed(late="drop"), [at(15), at(20)])
    assert rows["out"] == [shown(10, 2)]


# Windows and aggregates


def test_the_size_of_windows_changed(flows):
    flows.run(windowed(), [at(5)])
    assert flows.refused(windowed(cw.tumbling(20))) == refusal(
        "step 'window' kept Sliding(size=10, every=10, offset=None) of count() and keeps "
        "Sliding(size=20, every=20, offset=None) of count()",
        put_back("window"),
    )


def aggregated(emit="event", type=Item, behind=(), **by):
    flow = cw.Flow("flow")
    stream = flow.source("items", type).key_by("name").aggregate(emit=emit, **by)
    for task in behind:
        stream = stream.apply(task)
    flow.sink("out", stream)
    return flow


def aggregate_refusal(before, now):
    return refusal(f"step 'aggregate' kept {before} and keeps {now}", put_back("aggregate"))


def test_an_aggregate_added(flows):
    flows.run(aggregated(n=agg.count()), [A])
    assert flows.refused(aggregated(n=agg.count(), m=agg.sum("size"))) == aggregate_refusal(
        "count()", "count(), sum(size)"
    )


def test_an_aggregate_removed(flows):
    flows.run(aggregated(n=agg.count(), m=agg.sum("size")), [A])
    assert flows.refused(aggregated(n=agg.count())) == aggregate_refusal(
        "count(), sum(size)", "count()"
    )


def test_an_aggregate_changed(flows):
    flows.run(aggregated(m=agg.min("size")), [A])
    assert flows.refused(aggregated(m=agg.max("size"))) == aggregate_refusal(
        "min(size)", "max(size)"
    )
    assert flows.refused(aggregated(m=agg.min("at"))) == aggregate_refusal("min(size)", "min(at)")


def test_an_aggregate_renamed(flows):
    flows.run(aggregated(n=agg.count()), [A])
    assert flows.run(aggregated(m=agg.count()), [A])["out"] == [{"name": "a", "m": 2}]


def test_an_aggregate_per_event_made_one_per_epoch(flows):
    flows.run(aggregated(n=agg.count()), [A, A])
    rows = flows.run(aggregated(emit="epoch", n=agg.count()), [A, A])["out"]
    assert rows == [{"name": "a", "n": 4}]


# The whole


def test_the_number_of_buckets_changed(flows, monkeypatch):
    flows.run(counting(), [A])
    monkeypatch.setattr(runner, "BUCKETS", 32)
    assert flows.refused(counting()) == refusal("it had 16 buckets and has 32")


def test_the_number_of_partitions_changed(flows):
    flows.run(counting(), [A])
    assert flows.refused(counting(), partitions=4) == (
        "[other-partitions] the checkpoint has 2 partitions and 4 are asked for; a run does not "
        "move the state\n  hint: leave the number out, or stop the flow and move it: cutwater "
        "checkpoint rescale CHECKPOINT --partitions 4"
    )
    assert flows.run(counting(), [A], partitions=2)["out"] == [a(2)]


def test_the_flow_renamed(flows):
    flows.run(counting(), [A])
    assert flows.refused(counting(flow="other")) == refusal("its name was 'flow' and is 'other'")


def test_a_checkpoint_of_an_older_format(flows):
    flows.run(counting(), [A])
    path = flows.place.root / "cutwater.json"
    write_json(path, {**read_json(path, "it"), "format": FORMAT - 1})
    assert flows.refused(counting()) == (
        f"[checkpoint-format] the checkpoint {flows.place.root} has format {FORMAT - 1}; this "
        f"version reads format {FORMAT}\n  hint: use the version that wrote it, or {ANEW}"
    )


def test_several_changes_are_told_at_once(flows):
    flows.run(counting(), [A])
    changed = counting(flow="other", source="things", key="size")
    assert flows.refused(changed).count("[changed-flow]") == 3


def test_any_change_after_a_crash(flows):
    flows.run(counting(task=total), [B])
    changed = counting(before=[("map", doubled)], task=total)
    b = [{"name": "b", "count": 4}]
    assert flows.run(counting(task=total), [B], kill_at="published")["out"] == b
    rows = flows.run(changed, [B])["out"]
    # shown by the old flow as 4, counted by the new one as 2 + 2 * 2, and 2 * 2 more
    assert rows == [*b, {"name": "b", "count": 10}]


# On Spark itself


@dataclass(frozen=True)
class LongerSeen:
    count: int = 0
    name: str = ""
    total: int = 100


@cw.task(initial=LongerSeen(total=0), name="keep")
def keep_longer(seen: LongerSeen, item: Item) -> tuple[LongerSeen, list[Count]]:
    changed = replace(seen, count=seen.count + 1, total=seen.total + item.size)
    return changed, [Count(item.name, changed.count), Count("total", changed.total)]


def changed_in_many_ways():
    flow = cw.Flow("flow")
    items = flow.source("items", Item).filter(is_large)
    kept = items.key_by("name").apply(keep_longer)
    flow.sink("out", kept)
    flow.sink("more", kept)
    flow.sink("beside", items.key_by("name").apply(total))
    return flow


@pytest.mark.spark
def test_spark_resumes_with_a_step_a_sink_a_field_and_a_state_added(spark, tmp_path):
    def run(flow, name, *lines):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        sinks = {step.name: tmp_path / step.name for step in flow.steps if isinstance(step, Sink)}
        return cutwater_spark.run(
            flow,
            spark,
            sources={"items": tmp_path / "in"},
            sinks=sinks,
            checkpoint=tmp_path / "checkpoint",
        )

    run(keeping(Seen), "1.jsonl", B, B, A)
    assert sorted(row["count"] for row in rows_from(0, tmp_path / "out")) == [1, 1, 2]
    result = run(changed_in_many_ways(), "2.jsonl", B, A)
    b = {"name": "b", "count": 3}
    assert (result.generation, result.epochs) == (2, 1)
    assert rows_from(1, tmp_path / "out") == [b, {"name": "total", "count": 102}]
    assert rows_from(0, tmp_path / "more") == [b, {"name": "total", "count": 102}]
    assert rows_from(0, tmp_path / "beside") == [{"name": "b", "count": 2}]
    with pytest.raises(RunError, match="is gone, and its state would be lost"):
        run(keeping(Seen), "3.jsonl", B)


# The table


def rows_of_the_table():
    text = (ROOT / "docs" / "operations.md").read_text()
    table = text.split("## What may change between two runs")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")]
    return [(change.strip(), verdict.strip()) for change, verdict in rows[1:]]


@pytest.mark.parametrize(("change", "verdict"), rows_of_the_table())
def test_each_row_of_the_table_has_a_test_of_its_name(change, verdict):
    name = "test_" + re.sub(r"[^a-z]+", "_", change.lower()).strip("_")
    assert name in globals()
    assert verdict.startswith(("resumes", "refused"))
