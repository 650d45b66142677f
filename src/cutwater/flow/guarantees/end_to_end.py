"""The end-to-end guarantee of a sink: what its observer may rely on, why, and what weakens it.

A guarantee is as weak as its weakest part: the sources that lead to the sink, the steps between,
and the sink itself. Each part states its reason as a phrase. This module knows no concrete source
or sink: an engine describes those it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutwater.errors import many
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.checked import CheckRecord
from cutwater.flow.guarantees.order_free import Order, steps_before
from cutwater.flow.timely import with_bodies

__all__ = [
    "AT_LEAST_ONCE",
    "EXACTLY_ONCE",
    "GUARANTEE_KINDS",
    "NO_GUARANTEE",
    "SinkGuarantee",
    "SinkPart",
    "SourcePart",
    "Weakness",
    "guarantee_of_sink",
]

EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"
NO_GUARANTEE = "none"
"""The guarantee if a function is known to be impure."""
GUARANTEE_KINDS = (AT_LEAST_ONCE, EXACTLY_ONCE)
"""What a sink may guarantee, weakest first."""


@dataclass(frozen=True)
class SourcePart:
    """What a source contributes to the guarantee."""

    name: str
    is_replayable: bool
    """Does replaying an epoch give the same records in the same order?"""
    is_reordered: bool
    """Does replaying give the same records, but possibly in another order?"""
    because: str
    """Why, as a phrase that follows "because"."""
    provided: str = ""
    """What the user must ensure; empty: nothing."""
    remedy: str = ""
    """What would make it replayable, as a phrase that follows its name; empty: unknown."""


@dataclass(frozen=True)
class SinkPart:
    """What a sink contributes to the guarantee."""

    name: str
    kind: str
    """Its guarantee, provided its input is replayed identically."""
    because: str
    provided: str = ""
    release: str = "commit"
    """``commit``: rows appear with the snapshot of their epoch; ``early``: before it."""


@dataclass(frozen=True)
class Weakness:
    """A part that lowers the guarantee of a sink."""

    part: str
    """The name of a source, a step or the sink."""
    why: str
    """Completes "``orders`` …": "may be replayed in another order"."""
    remedy: str
    """What it would have to be, as a phrase that follows its name."""
    kind: str
    """The guarantee of the sink if only this part is replaced."""

    def __str__(self) -> str:
        return f"`{self.part}` {self.why}; {self.instead}"

    @property
    def instead(self) -> str:
        """The remedy and the guarantee it would give, as a phrase."""
        is_still = "" if self.kind == EXACTLY_ONCE else "still "
        return f"`{self.part}` {self.remedy}: {is_still}{self.kind}"


@dataclass(frozen=True)
class SinkGuarantee:
    """What an observer of a sink may rely on."""

    sink: str
    kind: str
    """``exactly-once`` or ``at-least-once``; ``none`` if a function is known to be impure."""
    because: tuple[str, ...]
    """Why: clauses for the sources, the steps and the sink."""
    provided: tuple[str, ...]
    """What the user must ensure; empty: nothing."""
    release: str = "commit"
    """When rows are released: with the snapshot of their epoch, or before it."""
    weaknesses: tuple[Weakness, ...] = ()
    """The parts that lower it, weakest first; empty if it is exactly-once."""
    relies_on: tuple[str, ...] = ()
    """The steps whose claim to be commutative it relies on."""
    sources: tuple[str, ...] = ()
    """The sources that lead to the sink."""

    @property
    def replaced(self) -> str:
        """The guarantee after replacing the weakest part, then the next, until all are replaced."""
        clauses = []
        for number, weak in enumerate(self.weaknesses, 1):
            is_last = number == len(self.weaknesses)
            left = EXACTLY_ONCE if is_last else f"still {weak.kind}"
            clauses.append(f"`{weak.part}` {weak.remedy}: {left}")
        return "; and ".join(clauses)

    @property
    def line(self) -> str:
        """The guarantee without the reasons."""
        return f"{self.sink}: {self.kind}"

    def __str__(self) -> str:
        provided = f" (provided {'; '.join(self.provided)})" if self.provided else ""
        return f"{self.sink}: {self.kind}: {', '.join(self.because)}{provided}"


def guarantee_of_sink(
    flow: Flow,
    sources: Mapping[str, SourcePart],
    sink: SinkPart,
    order: Order,
    *,
    checked: CheckRecord | None = None,
    impure: Sequence[str] = (),
) -> SinkGuarantee:
    """The guarantee of a sink, from its sources, its steps, order sensitivity and known impurity.

    A source that is replayed in another order is harmless if nothing on the way exposes the order
    and rows are released with the snapshot of their epoch: the visible epoch and the saved state
    then come from the same attempt, whichever it was.
    """
    number = next(n for n, step in enumerate(flow.steps) if _is_sink(step, sink.name))
    before = [flow.steps[n] for n in steps_before(flow, number)]
    parts = [sources[step.name] for step in before if isinstance(step, s.Source)]
    is_harmless = order.is_free and sink.release == "commit"
    again = [p.name for p in parts if p.is_replayable]
    reordered = [p.name for p in parts if p.is_reordered and is_harmless]
    because = [f"{_names(again)} {_are(again)} replayable"] if again else []
    because += [
        _harmless(part, sink.name) if part.name in reordered else _not_replayable(part)
        for part in parts
        if not part.is_replayable
    ]
    relies_on = order.claims if reordered else ()
    because += _of_claims(relies_on, checked)
    because += _of_steps([step.name for step in before if _has_function(step)], checked)
    because.append(f"`{sink.name}` {sink.because}")
    blamed = [step for step in with_bodies(before) if step.name in impure]
    weak = list(_weaknesses(parts, reordered, sink, order, blamed))
    provided = dict.fromkeys([*(p.provided for p in parts), sink.provided])
    return SinkGuarantee(
        sink.name,
        _kind(weak),
        tuple(because),
        tuple(filter(None, provided)),
        sink.release,
        tuple(
            Weakness(part, why, remedy, _kind([w for w in weak if w[0] != part]))
            for part, why, remedy, _ in weak
        ),
        relies_on,
        tuple(part.name for part in parts),
    )


_Weak = tuple[str, str, str, str]
"""Part, why, remedy, and the guarantee that remains with it."""


def _kind(weak: Sequence[_Weak]) -> str:
    left = {kind for *_, kind in weak}
    return next((kind for kind in (NO_GUARANTEE, AT_LEAST_ONCE) if kind in left), EXACTLY_ONCE)


def _weaknesses(
    sources: Sequence[SourcePart],
    harmless: Sequence[str],
    sink: SinkPart,
    order: Order,
    impure: Sequence[s.Step],
) -> Iterator[_Weak]:
    for step in impure:
        yield step.name, "is not a function of its arguments", "made pure", NO_GUARANTEE
    for part in sorted(sources, key=lambda part: part.is_reordered):
        if not part.is_replayable and part.name not in harmless:
            remedy = part.remedy or "as a source that can be replayed"
            yield part.name, _why_weak(part, order), remedy, AT_LEAST_ONCE
    if sink.kind != EXACTLY_ONCE:
        remedy = "as a sink that keeps a ledger with its rows"
        yield sink.name, sink.because, remedy, AT_LEAST_ONCE


def _why_weak(part: SourcePart, order: Order) -> str:
    if not part.is_reordered:
        return f"is not replayable, because {part.because}"
    why = f"may be replayed in another order, because {part.because}"
    if order.reasons:
        return f"{why}, and {order.reasons[0]}"
    return f"{why}, so that replayed rows cannot be told from new ones"


def _not_replayable(part: SourcePart) -> str:
    return f"`{part.name}` is not replayable, because {part.because}"


def _harmless(part: SourcePart, sink: str) -> str:
    return (
        f"`{part.name}` may be replayed in another order, because {part.because}, "
        f"which nothing on the way to `{sink}` shows"
    )


def _of_claims(names: Sequence[str], checked: CheckRecord | None) -> Iterator[str]:
    """The clause that names the claims relied on, and whether they were tested."""
    if names:
        claim = "claims" if len(names) == 1 else "claim"
        tested = "`check` tested it" if checked else "not tested: cutwater check TARGET"
        yield f"{_names(names)} {claim} to be commutative, which it relies on ({tested})"


def _of_steps(names: Sequence[str], checked: CheckRecord | None) -> Iterator[str]:
    """The clause that says why the steps give the same results on replay."""
    if not names:
        return
    if checked is None:
        are = f"{_names(names)} {_are(names)} taken to be deterministic"
        yield f"{are} (not checked: cutwater check TARGET)"
        return
    yield (
        f"{_names(names)} {_are(names)} declared deterministic and `check` found no counterexample "
        f"on {many(checked.inputs, 'input')} with {many(checked.events, 'event')}"
    )


def _has_function(step: s.Step) -> bool:
    """Does it run a user function? All other steps are deterministic by construction."""
    match step:
        case s.KeyBy():
            return step.f is not None
        case s.Map() | s.FlatMap() | s.Filter() | s.MapValues() | s.Bulk() | s.Operate():
            return True
        case s.Apply() | s.Join() | s.JoinClocks() | s.OnComplete():
            return True
        case s.Iterate():
            return any(map(_has_function, step.body))
    return False


def _is_sink(step: s.Step, name: str) -> bool:
    return isinstance(step, s.Sink) and step.name == name


def _names(names: Sequence[str]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} and {last}" if most else last


def _are(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"
