"""Checking a user's flow: can a crash be seen, and what else could go wrong?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cutwater.checking.flows.batches import check_batches
from cutwater.checking.flows.coverage import coverage
from cutwater.checking.flows.crash_witness import Seen, crash_witness, values_of
from cutwater.checking.flows.histories import histories_of, vectorised_steps
from cutwater.checking.flows.interleavings import dependences_of
from cutwater.checking.flows.liveness import liveness
from cutwater.checking.flows.losses import Losses
from cutwater.checking.flows.report import Finding, FlowReport
from cutwater.checking.flows.runs import explained_walks, failing, search
from cutwater.checking.flows.samples import inputs_to_try
from cutwater.checking.flows.scenario import Given, Observer
from cutwater.checking.flows.watermark_contract import broken_promises
from cutwater.checking.guarantees.claims import check_claims, claiming_steps
from cutwater.checking.purity.repeated_calls import Calls, PurityResult, check_purity
from cutwater.errors import CutwaterError, InputError, Problem, many
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.flow.steps import Source
from cutwater.flow.travel.unpicklable import unpicklable
from cutwater.semantics.crashing import run_with_crashes
from cutwater.semantics.hanging import patient
from cutwater.semantics.inputs import Border

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
    observe: Observer | None = None,
    progress: Callable[[str], None] | None = None,
) -> FlowReport:
    """Look for crashes that can be seen, and for what makes them possible.

    - **Failure transparency**: every interleaving of the tasks of a small input with every crash,
      as far as `max_states` goes, each run explained by one without failures; random runs of the
      whole input; and the flow itself run with a crash at every place of its input.
    - **Liveness**: every fair run commits every epoch of its input.
    - **Purity** of each function: does a call depend on, or change, more than its arguments?
    - **Batches**: does a batch mean the same to a vectorised task as its events one by one?
    - **Claims**: is a task commutative or idempotent that says so?
    - **Order**: which sinks depend on the order of which inputs.
    - **Codecs**: does every state at a border, and every event at an exchange, come back from the
      codec of its declared type as it was, and does every function emit what it declares?
    - **Travel**: can the functions be sent to other processes, with the variables they name?
    - **Watermarks** stay monotone and productive through every step.
    - **What was not looked at**: steps that no event reached, joins that never paired, windows that
      never closed, with inputs that would.

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`.
    inputs
        As for `simulate`, without crashes; default: made up from the types of the sources.
    crashes
        How many times tasks may crash in one run.
    instances
        How many instances of a keyed step there are.
    epoch_size
        Where the inputs have no borders, how many items an epoch has.
    samples
        How many inputs to make up, if none are given.
    max_states
        How many states to explore at most.
    walks
        How many random runs of the whole input to explain.
    seed
        What inputs and random runs are drawn from: the same seed, the same report.
    observe
        What somebody looks at: given for each sink the list of values it shows so far, returns
        what is seen of them. It must never take back what it has shown. Default: all of it.
    progress
        Called with what is being done.

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
    losses, calls = Losses(), Calls()
    given = [
        Given(flow, sample, epoch_size, instances, observe, calls.watch, losses)
        for sample in inputs_to_try(flow, inputs, samples, seed)
    ]
    findings: list[Finding] = []
    try:
        say = progress or _silent
        with patient():
            for finding in _findings(
                given, calls, losses, crashes, max_states, walks, seed, inputs is None, say
            ):
                findings.append(finding)
    except KeyboardInterrupt:
        rest = Finding("the rest", "interrupted", "not refuted", is_interrupted=True)
        findings.append(rest)
    events = sum(not isinstance(item, Border) for one in given for item in one.items())
    return FlowReport(flow.name, seed, tuple(findings), len(given), events)


def _silent(_text: str) -> None:
    pass


def _findings(
    given: Sequence[Given],
    calls: Calls,
    losses: Losses,
    crashes: int,
    max_states: int,
    walks: int,
    seed: int,
    is_made_up: bool,
    say: Callable[[str], None],
) -> Iterator[Finding]:
    flow = given[0].flow
    seen = _first_runs(flow, given, calls)  # what is hidden may be changed by these alone
    say("exploring crashes and interleavings")
    every = search(given[0], crashes, max_states, say)
    if every.is_interrupted:
        yield every
        raise KeyboardInterrupt
    searched = [every]
    try:
        say("looking for runs that never end")
        searched.append(liveness(given[0], crashes, max_states, say))
        say("explaining random runs")
        walked = explained_walks(given, crashes, walks, seed, say)
        say("calling every function again")
        pure = list(_purity(calls))
    except KeyboardInterrupt:
        yield from searched
        raise
    is_impure = any(finding.verdict == "violated" for finding in pure)
    yield from (_if_pure(finding, is_impure) for finding in searched)
    yield walked
    say("crashing the flow itself")
    yield crash_witness(given, seen, seed, say)
    yield from pure
    if not is_impure and (vectorised_steps(flow) or claiming_steps(flow)):
        histories = histories_of(given, seed, is_made_up=is_made_up)
        say("splitting batches")
        yield from check_batches(flow, histories, seed)
        say("testing claims")
        yield from (finding for *_, finding in check_claims(flow, histories, seed))
    if not is_impure:  # else every two runs may differ
        say("exchanging inputs")
        yield _order(given, seed, say)
    say("following watermarks")
    yield _watermarks(given, seed)
    yield losses.finding(flow, calls)
    yield _travel(flow)
    say("looking for what no input reached")
    yield from coverage(given, seed)


def _if_pure(finding: Finding, is_impure: bool) -> Finding:
    """A search makes each call once, so it says nothing where the same call gives two results."""
    if not is_impure or finding.verdict == "violated":
        return finding
    extent = f"{finding.extent}, as if every function were pure"
    return replace(finding, extent=extent, verdict="not refuted")


def _check_numbers(**numbers: int) -> None:
    problems = [
        Problem("too-small", f"{name} is {value}; it is at least {least}", f"use {least}")
        for name, value in numbers.items()
        for least in [0 if name in ("crashes", "walks") else 1]
        if value < least
    ]
    if problems:
        raise InputError(problems)


def _first_runs(flow: Flow, given: Sequence[Given], calls: Calls) -> list[Seen]:
    """What the sinks show in the first run of each input, whose calls are noted."""
    watched = plan(flow, watch=calls.watch)
    seen = []
    for one in given:
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
        said = f"{many(len(clean), 'function')}, {many(count, 'call')} repeated"
        alone = [r.step for r in clean if not r.elsewhere and r.calls]
        hint = f"; not with another hash seed: {', '.join(dict.fromkeys(alone))}" if alone else ""
        if count:
            yield Finding("purity: no impurity found", said + hint, "not refuted")
        else:
            why = ("no event of these inputs reached a function: pass inputs that do",)
            yield Finding("purity: nothing was looked at", said, "note", why)
    warned = [result for result in clean if result.warnings]
    if warned:
        details = [f"'{r.step}' names {', '.join(r.warnings)}" for r in warned]
        yield Finding(
            "purity: names to look at", many(len(warned), "function"), "note", tuple(details)
        )


def _extent(result: PurityResult) -> str:
    return f"{many(result.calls, 'call')} repeated"


def _travel(flow: Flow) -> Finding:
    """An engine sends the functions to its processes, with the variables that they name."""
    found = tuple(str(problem) for problem in unpicklable(flow.steps))
    check, extent = "functions can be sent to an engine", "what they name was pickled"
    return Finding(check, extent, "violated" if found else "not refuted", found)


def _order(given: Sequence[Given], seed: int, say: Callable[[str], None]) -> Finding:
    found, compared = dependences_of(given, seed, say)
    extent = f"{many(compared, 'pair')} of neighbours exchanged"
    if not compared:
        why = ("no two inputs of an epoch can be exchanged: pass inputs with more events",)
        return Finding("order of inputs: nothing was looked at", extent, "note", why)
    if found:
        details = tuple(str(dependence) for dependence in found)
        return Finding("outputs that depend on the order of inputs", extent, "note", details)
    return Finding("outputs do not depend on the order of inputs", extent, "not refuted")


def _watermarks(given: Sequence[Given], seed: int) -> Finding:
    check = "watermarks monotone and productive"
    try:
        streams, broken = broken_promises(given, seed)
    except CutwaterError as error:
        return failing(check, error)
    sources = [s for s in given[0].flow.steps if isinstance(s, Source)]
    silent = [s.name for s in sources if s.time is not None and s.watermark is None]
    extent = f"{many(streams, 'stream')} followed"
    if not streams:
        why = ("no step has inputs that are followed to its output",)
        return Finding("watermarks: nothing was looked at", extent, "note", why)
    if silent and not given[0].has_watermarks:
        extent += f"; nothing is complete of {', '.join(silent)} before the end"
    return Finding(check, extent, "violated" if broken else "not refuted", tuple(broken))
