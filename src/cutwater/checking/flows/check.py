"""The check of a user's flow: can an observer see a crash, and what else could go wrong?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cutwater.checking.flows.batches import check_batches
from cutwater.checking.flows.coverage import coverage
from cutwater.checking.flows.crash_witness import EpochValues, crash_witness, values_of
from cutwater.checking.flows.histories import histories_of, vectorised_steps
from cutwater.checking.flows.interleavings import dependences_of
from cutwater.checking.flows.liveness import liveness
from cutwater.checking.flows.losses import Losses
from cutwater.checking.flows.report import Finding, FlowReport
from cutwater.checking.flows.runs import explained_walks, failing, search
from cutwater.checking.flows.samples import inputs_to_try
from cutwater.checking.flows.scenario import ObserveFunction, Scenario
from cutwater.checking.flows.watermark_contract import broken_watermarks
from cutwater.checking.guarantees.claims import check_claims, claiming_steps
from cutwater.checking.purity.repeated_calls import Calls, PurityResult, check_purity
from cutwater.checking.purity.surroundings import reproducible
from cutwater.errors import CutwaterError, InputError, Problem, RefusedError, StepError, many
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.flow.steps import Source
from cutwater.flow.travel.whole import dump_whole
from cutwater.semantics.crashing import run_with_crashes
from cutwater.semantics.hanging import HangingError, patient
from cutwater.semantics.inputs import Barrier

__all__ = ["check_flow"]


def check_flow(
    flow: Flow,
    inputs: Mapping[str, Iterable[Any]] | None = None,
    *,
    crashes: int = 2,
    instances: int = 2,
    epoch_size: int | None = None,
    samples: int = 10,
    max_states: int = 20_000,
    walks: int = 20,
    seed: int = 0,
    observe: ObserveFunction | None = None,
    progress: Callable[[str], None] | None = None,
) -> FlowReport:
    """Look for crashes that an observer can see, and for what makes them visible.

    - **Failure transparency**: every interleaving of the tasks on a small input with every crash,
      up to `max_states`, each run explained by one without failures; random runs of the whole
      input; and the flow itself run with a crash at every position of its input.
    - **Liveness**: every fair run commits every epoch of its input.
    - **Purity** of each function: does a call depend on, or change, more than its arguments?
    - **Batches**: does a vectorised task compute the same on a batch as on its events one by one?
    - **Claims**: is a task that declares itself commutative or idempotent so?
    - **Order**: which sinks depend on the order of which inputs?
    - **Codecs**: does every state at a barrier, and every event at an exchange, survive the codec
      of its declared type, and does every function emit the type it declares?
    - **Travel**: can the functions be sent to other processes, with the variables they refer to?
    - **Watermarks** stay monotone and productive through every step.
    - **Coverage**: steps that no event reached, joins that never paired, windows that never
      closed, with inputs that would reach them.

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`.
    inputs
        As for `simulate`, without crashes; default: generated from the types of the sources.
    crashes
        The most crashes in one run.
    instances
        The number of instances of a keyed step.
    epoch_size
        The number of items per epoch, for inputs without barriers.
    samples
        The number of inputs to generate, if none are given.
    max_states
        The most states to explore.
    walks
        The number of random runs of the whole input to explain.
    seed
        The seed of inputs and random runs: the same seed gives the same report.
    observe
        The observer: given the list of values that each sink shows so far, returns what is seen
        of them. It must never retract what it has shown. Default: all of it.
    progress
        Called with a description of the current check.

    Examples
    --------
    >>> from cutwater.flow import task
    >>> @task(initial=0)
    ... def count(seen: int, word: str) -> tuple[int, list[int]]:
    ...     return seen + 1, [seen + 1]
    >>> flow = Flow("count")
    >>> _ = flow.sink("counts", flow.source("words", str).key_by(str.lower).apply(count))
    >>> check_flow(flow, {"words": ["a", "b"]}, crashes=1).holds
    True
    """
    _check_numbers(
        crashes=crashes, instances=instances, max_states=max_states, samples=samples, walks=walks
    )
    flow.validate()
    sent = _travel(flow)  # before any call, as in a run: a call may open a connection
    losses, calls = Losses(), Calls()
    scenarios = [
        Scenario(flow, sample, epoch_size, instances, observe, calls.watch, losses)
        for sample in inputs_to_try(flow, inputs, samples, seed)
    ]
    events = sum(not isinstance(item, Barrier) for one in scenarios for item in one.items())
    findings: list[Finding] = []
    notify = progress or _silent
    check = _Check(
        scenarios, calls, losses, sent, crashes, max_states, walks, seed, inputs is None, notify
    )
    try:
        with patient(), reproducible(seed):
            for finding in _findings(check):
                findings.append(finding if events else _if_anything(finding, sent))
    except (InputError, StepError) as error:
        causes = [found for found in (losses.noted(), sent) if found.verdict == "violated"]
        if not causes:
            raise
        rest = Finding("the flow runs", "it failed and was not checked any further", "violated")
        findings += [*causes, replace(rest, details=tuple(map(str, error.problems)))]
    except KeyboardInterrupt:
        rest = Finding("the rest", "interrupted", "not refuted", is_interrupted=True)
        findings.append(rest)
    return FlowReport(flow.name, seed, tuple(findings), len(scenarios), events)


def _silent(_text: str) -> None:
    pass


@dataclass(frozen=True)
class _Check:
    """The subject and the limits of one call of `check_flow`."""

    scenarios: Sequence[Scenario]
    calls: Calls
    losses: Losses
    sent: Finding
    """Whether the functions can be sent to an engine."""
    crashes: int
    max_states: int
    walks: int
    seed: int
    is_made_up: bool
    """Were the inputs generated?"""
    notify: Callable[[str], None]


def _findings(check: _Check) -> Iterator[Finding]:
    seen = _first_runs(check)  # before all else: maybe only first calls change hidden state
    try:
        yield from _findings_after(seen, check)
    except HangingError as error:  # one is enough: every further run might meet the same call
        problem = str(error.problem)
        yield Finding("every call returns", "not checked any further", "violated", (problem,))


def _findings_after(seen: Sequence[EpochValues], check: _Check) -> Iterator[Finding]:
    scenarios, notify, seed = check.scenarios, check.notify, check.seed
    crashes, max_states = check.crashes, check.max_states
    flow = scenarios[0].flow
    notify("exploring crashes and interleavings")
    every = search(scenarios[0], crashes, max_states, notify)
    if every.is_interrupted:
        yield every
        raise KeyboardInterrupt
    searched = [every]
    try:
        notify("looking for runs that never end")
        searched.append(liveness(scenarios[0], crashes, max_states, notify))
        notify("explaining random runs")
        walked = explained_walks(scenarios, crashes, check.walks, seed, notify)
        notify("calling every function again")
        pure = list(_purity(check.calls))
    except KeyboardInterrupt:
        yield from searched
        raise
    is_impure = any(finding.verdict == "violated" for finding in pure)
    yield from (_if_pure(finding, is_impure) for finding in searched)
    yield walked
    notify("crashing the flow itself")
    yield crash_witness(scenarios, seen, seed, notify)
    yield from pure
    if not is_impure and (vectorised_steps(flow) or claiming_steps(flow)):
        histories = histories_of(scenarios, seed, is_made_up=check.is_made_up)
        notify("splitting batches")
        yield from check_batches(flow, histories, seed)
        notify("testing claims")
        yield from (finding for *_, finding in check_claims(flow, histories, seed))
    if not is_impure:  # else any two runs may differ
        notify("swapping inputs")
        yield _order(scenarios, seed, notify)
    notify("following watermarks")
    yield _watermarks(scenarios, seed)
    yield check.losses.finding(flow, check.calls)
    yield check.sent
    notify("looking for what no input reached")
    yield from coverage(scenarios, seed)


def _if_pure(finding: Finding, is_impure: bool) -> Finding:
    """The finding, at most "not refuted" if a function is impure: a search calls it once."""
    if not is_impure or finding.verdict == "violated":
        return finding
    extent = f"{finding.extent}, as if every function were pure"
    return replace(finding, extent=extent, verdict="not refuted")


def _if_anything(finding: Finding, sent: Finding) -> Finding:
    """The finding; a note if the inputs have no event, since it would hold vacuously."""
    if finding is sent or finding.verdict not in ("holds", "not refuted"):
        return finding
    why = ("these inputs have no event: pass inputs that do",)
    return replace(
        finding, check=f"{finding.check}: nothing was checked", verdict="note", details=why
    )


def _check_numbers(**numbers: int) -> None:
    problems = [
        Problem("too-small", f"{name} is {value}; it is at least {least}", f"use {least}")
        for name, value in numbers.items()
        for least in [0 if name in ("crashes", "walks") else 1]
        if value < least
    ]
    if problems:
        raise InputError(problems)


def _first_runs(check: _Check) -> list[EpochValues]:
    """What the sinks show in the first run of each input; its calls are recorded."""
    watched = plan(check.scenarios[0].flow, watch=check.calls.watch)
    seen = []
    for one in check.scenarios:
        run = run_with_crashes(watched, one.inputs, epoch_size=one.epoch_size, on_loss=one.on_loss)
        seen.append({sink: values_of(epochs) for sink, epochs in run.rows.items()})
    return seen


def _purity(calls: Calls) -> Iterator[Finding]:
    results = check_purity(calls)
    for result in results:
        if result.impurity:
            yield Finding(
                f"purity of '{result.step}'", _extent(result), "violated", (str(result.impurity),)
            )
    clean = [result for result in results if not result.impurity]
    if clean:
        count = sum(result.calls for result in clean)
        message = f"{many(len(clean), 'function')}, {many(count, 'call')} repeated"
        alone = [r.step for r in clean if not r.elsewhere and r.calls]
        hint = f"; not with another hash seed: {', '.join(dict.fromkeys(alone))}" if alone else ""
        if count:
            whose = "" if len(clean) == len(results) else " in the other functions"
            yield Finding(f"purity: no impurity found{whose}", message + hint, "not refuted")
        else:
            why = ("no event of these inputs reached a function: pass inputs that do",)
            yield Finding("purity: nothing was checked", message, "note", why)
    cut = [result for result in clean if result.calls < result.distinct]
    if cut:
        details = [f"'{r.step}': {r.calls:,} of {many(r.distinct, 'different call')}" for r in cut]
        check = "purity: not every call was repeated"
        yield Finding(check, many(len(cut), "function"), "note", tuple(details))
    reordered = [result for result in clean if result.is_reordered]
    if reordered:
        details = [
            f"'{r.step}' returns a dict whose order depends on the hash seed of the process: sort "
            "it, if a later step or a reader of a sink depends on the order"
            for r in reordered
        ]
        check = "purity: dicts in the order of hashes"
        yield Finding(check, many(len(reordered), "function"), "note", tuple(details))
    warned = [result for result in clean if result.warnings]
    if warned:
        details = [f"'{r.step}' names {', '.join(r.warnings)}" for r in warned]
        yield Finding(
            "purity: names to review", many(len(warned), "function"), "note", tuple(details)
        )


def _extent(result: PurityResult) -> str:
    return f"{many(result.calls, 'call')} repeated"


def _travel(flow: Flow) -> Finding:
    """Can the functions be pickled? An engine sends them to its workers, with their variables."""
    check, extent = "functions can be sent to an engine", "what they reference was pickled"
    try:
        dump_whole(flow, flow)
    except RefusedError as error:
        return Finding(check, extent, "violated", tuple(map(str, error.problems)))
    return Finding(check, extent, "not refuted")


def _order(scenarios: Sequence[Scenario], seed: int, notify: Callable[[str], None]) -> Finding:
    found, compared = dependences_of(scenarios, seed, notify)
    extent = f"{many(compared, 'pair')} of neighbours swapped"
    if not compared:
        why = ("no two inputs of an epoch can be swapped: pass inputs with more events",)
        return Finding("order of inputs: nothing was checked", extent, "note", why)
    if found:
        details = tuple(str(dependence) for dependence in found)
        return Finding("outputs that depend on the order of inputs", extent, "note", details)
    return Finding("outputs do not depend on the order of inputs", extent, "not refuted")


def _watermarks(scenarios: Sequence[Scenario], seed: int) -> Finding:
    check = "watermarks monotone and productive"
    try:
        streams, broken = broken_watermarks(scenarios, seed)
    except CutwaterError as error:
        return failing(check, error)
    sources = [s for s in scenarios[0].flow.steps if isinstance(s, Source)]
    silent = [s.name for s in sources if s.time is not None and s.watermark is None]
    extent = f"{many(streams, 'stream')} followed"
    if not streams:
        why = ("no step has inputs that are followed to its output",)
        return Finding("watermarks: nothing was checked", extent, "note", why)
    if silent and not scenarios[0].has_watermarks:
        extent += f"; no time of {', '.join(silent)} is complete before the end"
    return Finding(check, extent, "violated" if broken else "not refuted", tuple(broken))
