"""The guarantees of a flow with its configured sources and sinks, or with hypothetical ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.checked import noted_check
from cutwater.flow.guarantees.end_to_end import (
    EXACTLY_ONCE,
    SinkGuarantee,
    SinkPart,
    SourcePart,
    guarantee_of_sink,
)
from cutwater.flow.guarantees.order_free import order_at, orders_of, steps_before
from cutwater.flow.timely import with_bodies

__all__ = ["EdgeVerdict", "Setting", "assumed_settings", "guarantees_of_sinks", "setting_of"]


@dataclass(frozen=True)
class EdgeVerdict:
    """The guarantee on the edge from one step to another."""

    status: str
    """``holds``: exactly-once in any order of the sources; ``order``: exactly-once if they are
    replayed in the same order; ``weak``: less than that."""
    why: str


@dataclass(frozen=True)
class Setting:
    """Sources and sinks, and the guarantees they give."""

    name: str
    """For machines: ``configured``, ``ordered`` or ``reordered``."""
    title: str
    """For people: "as in run.toml"."""
    sink_guarantees: tuple[SinkGuarantee, ...]
    """One for each sink and each way it can release rows."""
    early: tuple[SinkGuarantee, ...]
    """One for each sink, assuming that it releases rows early and keeps a ledger."""
    edges: Mapping[tuple[int, int], EdgeVerdict]
    """Indexed by the numbers of the two steps."""

    def as_data(self) -> dict[str, Any]:
        """The setting as JSON-compatible data."""
        return {
            "name": self.name,
            "title": self.title,
            "outputs": [
                {
                    "sink": guarantee.sink,
                    "before_snapshot": guarantee.kind == EXACTLY_ONCE,
                    "because": [f"`{w.part}` {w.why}" for w in guarantee.weaknesses],
                }
                for guarantee in self.early
            ],
            "end_to_end": [
                {
                    "sink": guarantee.sink,
                    "release": guarantee.release,
                    "sources": list(guarantee.sources),
                    "guarantee": guarantee.kind,
                    "because": list(guarantee.because),
                    "provided": list(guarantee.provided),
                    "relies_on": list(guarantee.relies_on),
                    "weakest_first": [
                        {
                            "part": weak.part,
                            "why": weak.why,
                            "instead": weak.remedy,
                            "guarantee_then": weak.kind,
                        }
                        for weak in guarantee.weaknesses
                    ],
                }
                for guarantee in self.sink_guarantees
            ],
        }


def guarantees_of_sinks(
    flow: Flow,
    sources: Mapping[str, SourcePart],
    sinks: Iterable[SinkPart],
    *,
    refuted: Collection[str] = (),
    impure: Collection[str] = (),
) -> tuple[SinkGuarantee, ...]:
    """The guarantee for each of the sinks, using the record of the last check of the flow.

    `refuted` are steps that claim to be commutative and are not, `impure` those with an impure
    function.
    """
    checked, orders = noted_check(flow), orders_of(flow, refuted)
    return tuple(
        guarantee_of_sink(
            flow, sources, sink, orders[sink.name], checked=checked, impure=tuple(impure)
        )
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
    """The guarantees with the given sources and sinks.

    `sinks` has one entry for each way a sink can release rows. `refuted` and `impure` are as for
    `guarantees_of_sinks`.
    """
    sinks = list(sinks)
    ideal = {sink.name: SinkPart(sink.name, EXACTLY_ONCE, _LEDGER, "", "early") for sink in sinks}
    return Setting(
        name,
        title,
        guarantees_of_sinks(flow, sources, sinks, refuted=refuted, impure=impure),
        guarantees_of_sinks(flow, sources, ideal.values(), refuted=refuted, impure=impure),
        {
            (i, n): _edge(flow, i, step, sources, {x.name: x for x in sinks}, refuted, impure)
            for n, step in enumerate(flow.steps)
            for i in step.inputs
        },
    )


_LEDGER = "keeps a ledger with its rows"


def assumed_settings(
    flow: Flow, *, refuted: Collection[str] = (), impure: Collection[str] = ()
) -> list[Setting]:
    """The guarantees with sources replayed in order, and with sources replayed in another order."""
    names = [step.name for step in flow.steps if isinstance(step, s.Source)]
    ordered = {n: SourcePart(n, True, False, "it is assumed to be") for n in names}
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
    """The guarantee on the edge from one step to another."""
    before = [flow.steps[n] for n in steps_before(flow, number)]
    broken = [step.name for step in with_bodies(before) if step.name in impure]
    if broken:
        return EdgeVerdict("weak", f"`{broken[0]}` is not a function of its arguments")
    if isinstance(target, s.Sink) and sinks[target.name].kind != EXACTLY_ONCE:
        return EdgeVerdict("weak", f"`{target.name}` {sinks[target.name].because}")
    parts = [sources[step.name] for step in before if isinstance(step, s.Source)]
    lost = [p for p in parts if not p.is_replayable and not p.is_reordered]
    if lost:
        return EdgeVerdict("weak", f"`{lost[0].name}` is not replayable, because {lost[0].because}")
    order = order_at(flow, number, refuted)
    reordered = [p for p in parts if p.is_reordered]
    if order.reasons and reordered:
        name, why = reordered[0].name, order.reasons[0]
        return EdgeVerdict("weak", f"{why}, and `{name}` may be replayed in another order")
    if order.reasons:
        return EdgeVerdict(
            "order", f"{order.reasons[0]}; exactly-once, as sources keep their order"
        )
    claims = "".join(f", as `{name}` claims to be commutative" for name in order.claims)
    return EdgeVerdict("holds", f"the same in every order of its sources{claims}")
