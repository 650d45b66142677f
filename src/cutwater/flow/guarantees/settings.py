"""What a flow guarantees with the sources and sinks that it has, or with ones that are supposed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.checked import noted_check
from cutwater.flow.guarantees.end_to_end import (
    EXACTLY_ONCE,
    Promise,
    SinkPart,
    SourcePart,
    promise_of,
)
from cutwater.flow.guarantees.order_free import order_at, orders_of, steps_before

__all__ = ["EdgeVerdict", "Setting", "promises_of", "setting_of", "supposed_settings"]


@dataclass(frozen=True)
class EdgeVerdict:
    """What holds of what passes from one step to another."""

    status: str
    """``holds``: exactly-once in whatever order sources come; ``order``: exactly-once if they come
    again in the same order; ``weak``: less than that."""
    why: str


@dataclass(frozen=True)
class Setting:
    """Sources and sinks, and what holds with them."""

    name: str
    """For machines: ``configured``, ``ordered`` or ``reordered``."""
    title: str
    """For people: "as in run.toml"."""
    promises: tuple[Promise, ...]
    """For each sink and each way in which it can release rows."""
    early: tuple[Promise, ...]
    """For each sink, if it released rows early and kept a ledger."""
    edges: Mapping[tuple[int, int], EdgeVerdict]
    """By the numbers of the two steps."""

    def as_data(self) -> dict[str, Any]:
        """The setting as plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "outputs": [
                {
                    "sink": promise.sink,
                    "before_snapshot": promise.level == EXACTLY_ONCE,
                    "because": [f"`{w.part}` {w.why}" for w in promise.weaknesses],
                }
                for promise in self.early
            ],
            "end_to_end": [
                {
                    "sink": promise.sink,
                    "release": promise.release,
                    "sources": list(promise.sources),
                    "guarantee": promise.level,
                    "because": list(promise.because),
                    "provided": list(promise.provided),
                    "relies_on": list(promise.relies_on),
                    "weakest_first": [
                        {
                            "part": weak.part,
                            "why": weak.why,
                            "instead": weak.remedy,
                            "guarantee_then": weak.level,
                        }
                        for weak in promise.weaknesses
                    ],
                }
                for promise in self.promises
            ],
        }


def promises_of(
    flow: Flow,
    sources: Mapping[str, SourcePart],
    sinks: Iterable[SinkPart],
    *,
    refuted: Collection[str] = (),
    impure: Collection[str] = (),
) -> tuple[Promise, ...]:
    """The promise for each of some sinks, with what is noted of checks of the flow.

    `refuted` are steps that claim to be commutative and are not, `impure` those with a function
    that is not pure.
    """
    checked, orders = noted_check(flow), orders_of(flow, refuted)
    return tuple(
        promise_of(flow, sources, sink, orders[sink.name], checked=checked, impure=tuple(impure))
        for sink in sinks
    )


def setting_of(
    flow: Flow,
    name: str,
    title: str,
    sources: Mapping[str, SourcePart],
    sinks: Iterable[SinkPart],
    *,
    refuted: Collection[str] = (),
    impure: Collection[str] = (),
) -> Setting:
    """What holds with sources and sinks.

    A sink is among them once for each way in which it can release rows. `refuted` and `impure` are
    as for `promises_of`.
    """
    sinks = list(sinks)
    ideal = {sink.name: SinkPart(sink.name, EXACTLY_ONCE, _LEDGER, "", "early") for sink in sinks}
    return Setting(
        name,
        title,
        promises_of(flow, sources, sinks, refuted=refuted, impure=impure),
        promises_of(flow, sources, ideal.values(), refuted=refuted, impure=impure),
        {
            (i, n): _edge(flow, i, step, sources, {x.name: x for x in sinks}, refuted, impure)
            for n, step in enumerate(flow.steps)
            for i in step.inputs
        },
    )


_LEDGER = "keeps a ledger with its rows"


def supposed_settings(
    flow: Flow, *, refuted: Collection[str] = (), impure: Collection[str] = ()
) -> list[Setting]:
    """What would hold with sources that come again in order, and with ones in another order."""
    names = [step.name for step in flow.steps if isinstance(step, s.Source)]
    ordered = {n: SourcePart(n, True, False, "it is supposed to be") for n in names}
    reordered = {n: SourcePart(n, False, True, "it has no order", "", _IN_ORDER) for n in names}
    sinks = [
        SinkPart(step.name, EXACTLY_ONCE, _LEDGER, "", release)
        for step in flow.steps
        if isinstance(step, s.Sink)
        for release in ("commit", "early")
    ]
    titles = {
        "ordered": "with replayable, ordered sources",
        "reordered": "with sources without order",
    }
    return [
        setting_of(flow, name, title, parts, sinks, refuted=refuted, impure=impure)
        for (name, title), parts in zip(titles.items(), (ordered, reordered), strict=True)
    ]


_IN_ORDER = "in the same order again"


def _edge(
    flow: Flow,
    number: int,
    target: s.Step,
    sources: Mapping[str, SourcePart],
    sinks: Mapping[str, SinkPart],
    refuted: Collection[str],
    impure: Collection[str],
) -> EdgeVerdict:
    """What holds of what a step gives to another."""
    before = [flow.steps[n] for n in steps_before(flow, number)]
    broken = [step.name for step in before if step.name in impure]
    if broken:
        return EdgeVerdict("weak", f"`{broken[0]}` is not a function of its arguments")
    if isinstance(target, s.Sink) and sinks[target.name].level != EXACTLY_ONCE:
        return EdgeVerdict("weak", f"`{target.name}` {sinks[target.name].because}")
    parts = [sources[step.name] for step in before if isinstance(step, s.Source)]
    lost = [p for p in parts if not p.is_replayable and not p.is_reordered]
    if lost:
        return EdgeVerdict("weak", f"`{lost[0].name}` is not replayable, because {lost[0].because}")
    order = order_at(flow, number, refuted)
    reordered = [p for p in parts if p.is_reordered]
    if order.reasons and reordered:
        name, why = reordered[0].name, order.reasons[0]
        return EdgeVerdict("weak", f"{why}, and `{name}` may come in another order again")
    if order.reasons:
        return EdgeVerdict(
            "order", f"{order.reasons[0]}; exactly-once, as sources keep their order"
        )
    claims = "".join(f", as `{name}` claims to be commutative" for name in order.claims)
    return EdgeVerdict("holds", f"the same in whatever order its sources come{claims}")
