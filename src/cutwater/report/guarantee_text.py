"""What a flow guarantees, as tables and text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutwater.checking.guarantees.order_sensitivity import Sensitivity, StepOrder
from cutwater.errors import many
from cutwater.flow.checked import CheckRecord
from cutwater.flow.guarantees.end_to_end import EXACTLY_ONCE, SinkGuarantee
from cutwater.flow.guarantees.settings import Setting

__all__ = ["Screen", "details", "screens"]


@dataclass(frozen=True)
class Screen:
    """A table with a line above it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def screens(
    found: Sensitivity, settings: Sequence[Setting], checked: CheckRecord | None
) -> Iterator[Screen]:
    """The tables, from single steps to the end-to-end guarantees."""
    extent = f"{many(found.inputs, 'input')} with {many(found.events, 'event')}"
    rows = [_step(step, found, checked) for step in found.steps]
    rows += [
        (name, "-", "no: a call shows it", "-", "")
        for name in found.impure or {}
        if name not in {step.step for step in found.steps}
    ]
    if rows:
        columns = ("step", "order matters", "deterministic", "claims", "why")
        yield Screen(f"steps of '{found.flow}', searched on {extent}", columns, tuple(rows))
    yield Screen(
        "what sinks show",
        ("sink", "order matters", "why"),
        tuple((sink.sink, sink.matters, sink.why) for sink in found.sinks),
    )
    for setting in settings:
        yield Screen(
            f"{setting.title}: may outputs be released before the snapshot?",
            ("sink", "may be released", "why"),
            tuple(_early(guarantee) for guarantee in setting.early),
        )
        yield Screen(
            f"{setting.title}: from end to end",
            ("sources", "sink", "release", "guarantee", "with the weakest part replaced"),
            tuple(_end_to_end(guarantee) for guarantee in setting.sink_guarantees),
        )


def _step(
    step: StepOrder, found: Sensitivity, checked: CheckRecord | None
) -> tuple[str, str, str, str, str]:
    claims = [f"{claim.claim}: {_claimed(claim.verdict)}" for claim in step.claims]
    return step.step, step.matters, _determinism(step, found, checked), _cell(claims), step.why


def _claimed(verdict: str) -> str:
    return {"violated": "refuted", "note": "not tried"}.get(verdict, verdict)


def _determinism(step: StepOrder, found: Sensitivity, checked: CheckRecord | None) -> str:
    if step.step in (found.impure or {}):
        return "no: a call shows it"
    if not step.has_function:
        return "yes"
    return "as far as check went" if checked else "not checked"


def _early(guarantee: SinkGuarantee) -> tuple[str, str, str]:
    if guarantee.kind == EXACTLY_ONCE:
        return guarantee.sink, "yes", "a replay gives the same rows in the same order"
    weak = guarantee.weaknesses[0]
    return guarantee.sink, "must wait", f"`{weak.part}` {weak.why}"


def _end_to_end(guarantee: SinkGuarantee) -> tuple[str, str, str, str, str]:
    relies = [f"relies on the claim of `{name}`" for name in guarantee.relies_on]
    remedy = _cell([*filter(None, [guarantee.replaced]), *relies])
    return ", ".join(guarantee.sources), guarantee.sink, guarantee.release, guarantee.kind, remedy


def _cell(parts: Sequence[str]) -> str:
    return "; ".join(parts) or "-"


def details(found: Sensitivity, settings: Sequence[Setting]) -> str:
    """The witnesses, and every guarantee in full."""
    lines = [step.witness for step in found.steps if step.witness]
    lines += [c.witness for step in found.steps for c in step.claims if _is_more(c.claim, step)]
    lines += [witness for sink in found.sinks for witness in sink.witnesses]
    lines += (found.impure or {}).values()
    for setting in settings:
        lines.append(setting.title)
        for guarantee in setting.sink_guarantees:
            lines.append(f"  {guarantee}, released {_released(guarantee.release)}")
            lines += [f"    {weak}" for weak in guarantee.weaknesses]
    return "\n".join(lines)


def _is_more(claim: str, step: StepOrder) -> bool:
    """Does the claim have a witness that the step itself does not show?"""
    return claim != "commutative" and any(c.claim == claim and c.witness for c in step.claims)


def _released(release: str) -> str:
    return "on commit" if release == "commit" else "early"
