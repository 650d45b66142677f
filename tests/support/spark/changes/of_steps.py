"""Changes of steps, sinks, sources and keys."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.spark.agreement import parts_of
from support.spark.changes.script import (
    ANEW,
    A,
    B,
    Flows,
    Item,
    Refused,
    a,
    b,
    chain,
    changed,
    changed_step,
    count,
    counting,
    doubled,
    gone,
    is_large,
    refused,
    refused_somehow,
    runs,
    tally,
    total,
)
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater import agg
from cutwater import spark as cutwater_spark

LARGE = {**A, "size": 2}


def tripled(item: Item) -> Item:
    return replace(item, size=3 * item.size)


def named(name: str) -> cw.Flow:
    """A flow whose stateless steps have names."""
    flow = cw.Flow("flow")
    items = flow.source("items", Item).map(doubled, name=name).key_by("name", name=f"by {name}")
    flow.sink("out", items.apply(count))
    return flow


def with_sinks(*names: str) -> cw.Flow:
    flow = cw.Flow("flow")
    counts = flow.source("items", Item).key_by("name").apply(count)
    for name in names:
        flow.sink(name, counts)
    return flow


def with_sources(*names: str) -> cw.Flow:
    flow = cw.Flow("flow")
    first, *others = (flow.source(name, Item) for name in names)
    items = first.merge(*others) if others else first
    flow.sink("out", items.key_by("name").apply(count))
    return flow


def beside(*tasks: cw.Task) -> cw.Flow:
    """A task on each of several branches of one source."""
    flow = cw.Flow("flow")
    items = flow.source("items", Item)
    for number, task in enumerate(tasks):
        flow.sink(f"out{number}", items.key_by("name").apply(task))
    return flow


def a_gap_where_the_sink_was_gone(flows: Flows) -> None:
    assert sorted(parts_of(flows.root / "out" / "more")) == [0, 2]


def another_output_with_a_gap_that_is_accepted(flows: Flows) -> None:
    with pytest.raises(LookupError, match="a session would begin"):
        flows.start(
            make_job(counting(), flows.root),
            sinks={"out": flows.root / "elsewhere"},
            accept_gap=["out"],
        )


def total_is_forgotten(flows: Flows) -> None:
    assert flows.checkpoint.identity().forgotten == ["total"]


SINKS_AND_SOURCES: dict[str, list[Any]] = {
    "A stateless step added": [
        runs(counting(), A, A, shows=[a(1), a(2)]),
        runs(counting([("filter", is_large), ("map", doubled)]), A, LARGE, shows=[a(3)]),
    ],
    "A stateless step removed": [
        runs(counting([("filter", is_large)]), A, LARGE),
        runs(counting(), A, shows=[a(2)]),
    ],
    "A stateless step changed": [
        runs(counting([("map", doubled)], total), B),
        runs(counting([("map", tripled)], total), B, shows=[b(4 + 6)]),
    ],
    "A stateless step renamed": [runs(named("one"), A), runs(named("two"), A, shows=[a(2)])],
    "A sink added": [
        runs(counting(), A),
        runs(with_sinks("out", "more"), A, shows={"out": [a(2)], "more": [a(2)]}),
    ],
    # Both were one operator; with a reader in between the second is in a level of its own.
    "A sink added between two steps that keep states": [
        runs(chain(count, tally), A),
        refused(
            chain(count, tally, between="between"),
            changed("its levels of stateful steps were 1 and are 2")
            + "\n"
            + changed_step("tally", "step 'tally' was in level 1 and is in level 2"),
        ),
    ],
    "A sink removed": [
        runs(with_sinks("out", "more"), A),
        runs(counting(), A, shows=[a(2)]),
        runs(with_sinks("out", "more"), A, shows={"more": [a(3)]}),
        a_gap_where_the_sink_was_gone,
    ],
    "A sink renamed": [
        runs(counting(), A),
        runs(counting(sink="results"), A, shows={"results": [a(2)]}),
    ],
    "A sink renamed with its folder": [
        runs(counting(), A),
        Refused(
            counting(sink="results"),
            "[another-sink] sink 'results' goes to FOLDER/out/out, which belongs to sink 'out' of "
            "the same checkpoint\n  hint: bind 'results' to the folder it had before, or to an "
            "empty one",
            lambda root: {"sinks": {"results": root / "out" / "out"}},
        ),
    ],
    "A sink bound to another output": [
        runs(counting(), A),
        Refused(
            counting(),
            "[another-output] sink 'out' has released rows up to epoch 0 in FOLDER/out/out and is "
            "bound to FOLDER/elsewhere",
            lambda root: {"sinks": {"out": root / "elsewhere"}},
            is_whole=False,
        ),
        another_output_with_a_gap_that_is_accepted,
    ],
    "A source added": [
        runs(with_sources("items"), A),
        refused(
            with_sources("items", "more"),
            changed("its sources were 'items' and are 'items', 'more'"),
        ),
    ],
    "A source removed": [
        runs(with_sources("items", "more"), A),
        refused(with_sources("items"), changed("its sources were 'items', 'more' and are 'items'")),
    ],
    "A source renamed": [
        runs(with_sources("items"), A),
        refused(with_sources("things"), changed("its sources were 'items' and are 'things'")),
    ],
    "A source bound to another kind": [
        runs(with_sources("items"), A),
        Refused(
            with_sources("items"),
            changed(
                "source 'items' was bound to JSON lines and is bound to CSV",
                f"bind it as it was, or {ANEW}",
            ),
            lambda root: {"sources": {"items": csv(root)}},
        ),
    ],
}


def csv(root: Path) -> Any:
    return cutwater_spark.csv(str(root / "in" / "items"))


# --- steps with a state -------------------------------------------------------------------------


@cw.task(initial=0)
def large(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [item]


@cw.task(initial=0, name="count")
def by_ten(seen: int, item: Item) -> tuple[int, list[dict[str, Any]]]:
    return seen + 10, [a(seen + 10)]


def waiting(*tasks: cw.Task) -> cw.Flow:
    timed = {"time": "at", "watermark": cw.bounded_delay(0)}
    return chain(*tasks, source=timed, end=lambda stream: stream.batch())


def across_levels() -> cw.Flow:
    flow = cw.Flow("flow")
    counts = flow.source("items", Item).key_by("name").apply(count)
    flow.sink("out", counts.key_by("count").apply(tally))
    return flow


def aggregated_as_count() -> cw.Flow:
    flow = cw.Flow("flow")
    items = flow.source("items", Item).key_by("name")
    flow.sink("out", items.aggregate(n=agg.count(), name="count"))
    return flow


def expiring(after: int) -> cw.Flow:
    flow = cw.Flow("flow")
    items = flow.source("items", Item, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.key_by("name").apply(count, expire_after=after))
    return flow


STATEFUL_STEPS: dict[str, list[Any]] = {
    "A stateful step added within a level": [
        runs(beside(count), B, B),
        runs(beside(count, total), B, shows={"out0": [b(3)], "out1": [b(2)]}),
    ],
    "A stateful step added behind another in one chain": [
        runs(chain(count), A, A),
        runs(chain(count, tally), A, A, shows=[a(1), a(2)]),
        runs(chain(count), A, shows=[a(5)], forget=["tally"]),
    ],
    "A stateful step added across levels": [
        runs(counting(), A),
        refused(across_levels(), changed("its levels of stateful steps were 1 and are 2")),
    ],
    # Which keys wait is noted with the first step of a chain, and would be looked for there.
    "A stateful step added in front of one that waits": [
        runs(waiting(), A),
        refused(
            waiting(large),
            changed_step(
                "batch",
                "step 'batch' stored pending times with 'batch', no keys, times as int | float | "
                "Decimal and stores them with 'large', no keys, times as int | float | Decimal",
            ),
        ),
    ],
    "A stateful step removed": [
        runs(beside(count, total), B),
        refused(beside(count), gone("total")),
    ],
    "A stateful step removed and forgotten": [
        runs(beside(count, total), B),
        runs(beside(count), B, shows={"out0": [b(2)]}, forget=["total"]),
        # the same command again, too
        runs(beside(count), B, shows={"out0": [b(3)]}, forget=["total"]),
        total_is_forgotten,
    ],
    "A stateful step that was forgotten and is defined again": [
        runs(beside(count, total), B),
        runs(beside(count), B, forget=["total"]),
        refused(
            beside(count, total),
            changed(
                "step 'total' was forgotten and is defined again; its old state is out of date",
                f"give the step another name, or {ANEW}",
            ),
        ),
    ],
    "What is not there cannot be forgotten": [
        runs(counting(), A),
        refused(
            counting(),
            "[cannot-forget] step 'total' cannot be forgotten: the checkpoint has no state of it\n"
            "  hint: steps with a state there: count",
            forget=["total"],
        ),
        refused(
            counting(),
            "[cannot-forget] step 'count' cannot be forgotten: the flow has a step of that "
            "name, which would start with the old state\n"
            "  hint: give the step another name",
            forget=["count"],
        ),
    ],
    "A stateful step renamed": [
        runs(counting(), A),
        refused(counting(step="seen"), gone("count")),
        runs(counting(step="seen"), A, shows=[a(1)], forget=["count"]),
    ],
    "A stateful step made another verb": [
        runs(counting(), A),
        refused(
            aggregated_as_count(),
            changed_step("count", "step 'count' was 'apply' and is 'aggregate'"),
        ),
    ],
    "The body of a task changed": [
        runs(counting(), A),
        runs(counting(task=by_ten), A, shows=[a(11)]),
    ],
    "expire_after changed": [
        runs(expiring(10), {**A, "at": 5}),
        # it would have expired at 6 and still does at 15; what is seen from now on goes after 1
        runs(expiring(1), {**B, "at": 9}),
        runs(expiring(1), {**A, "at": 10}, shows=[a(2)]),
        runs(expiring(1), {**B, "at": 13}),
        runs(expiring(1), {**A, "at": 14}, shows=[a(1)]),
        # a longer time holds for what is there already
        runs(expiring(10), {**B, "at": 20}),
        runs(expiring(10), {**A, "at": 21}, shows=[a(2)]),
    ],
}


# --- keys ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbered:
    name: int
    size: int


@cw.task(initial=0, name="count")
def count_numbered(seen: int, item: Numbered) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def unkeyed() -> cw.Flow:
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", Item).apply(count))
    return flow


def first_key():
    def of(item: Item) -> str:
        return item.name.lower()

    return of


def same_key():
    def of(thing: Item) -> str:
        """The same, in other words."""
        return thing.name.lower()  # with a comment

    return of


def other_key():
    def of(item: Item) -> str:
        return item.name.upper()

    return of


def written_by_another_python(flows: Flows) -> None:
    """What functions are made of differs between versions, and says nothing."""
    found = flows.checkpoint.identity()
    step = found.steps["count"]
    elsewhere = replace(step.key, functions=(("of", "3.0", "0" * 16),))
    flows.checkpoint.save(replace(found, steps={"count": replace(step, key=elsewhere)}))


def keyed_otherwise(now: str, before: str = "name") -> str:
    return changed_step("count", f"step 'count' was keyed by {before} and is {now}")


KEYS: dict[str, list[Any]] = {
    "The fields of a key changed": [
        runs(counting(), A),
        refused(counting(key="size"), keyed_otherwise("keyed by size")),
        refused(counting(key=("name", "size")), keyed_otherwise("keyed by name, size")),
    ],
    "The key removed": [
        runs(counting(), A),
        refused(unkeyed(), keyed_otherwise("not keyed")),
    ],
    "The type of a key changed": [
        runs(counting(), A),
        refused(
            counting(type=Numbered, task=count_numbered),
            changed_step("count", "the key of step 'count' was str and is int"),
        ),
    ],
    "The function of a key changed": [
        runs(counting(key=first_key()), A),
        runs(counting(key=same_key()), A, shows=[a(2)]),
        refused(
            counting(key=other_key()),
            changed_step(
                "count", "function of, which makes the keys of step 'count', does something else"
            ),
        ),
        refused(counting(), keyed_otherwise("keyed by name", "function of")),
    ],
    "The function of a key under another Python": [
        runs(counting(key=first_key()), A),
        written_by_another_python,
        runs(counting(key=other_key()), A, shows=[a(1)]),
    ],
    "Several changes are told at once": [
        runs(counting(), A),
        refused_somehow(
            counting(flow="other", source="things", key="size"), "its name was 'flow' and is"
        ),
        refused_somehow(
            counting(flow="other", source="things", key="size"), "its sources were 'items' and are"
        ),
        refused_somehow(
            counting(flow="other", source="things", key="size"), "was keyed by name and is keyed by"
        ),
    ],
}
