"""The failure-free run that explains a run with failures (P1, section 6.2, Fig. 12).

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
generations G, step (1)                `Generation`: the steps up to a recovery, with the epoch
                                       it restores
reordering and removal, (2) and (3)    of each generation the steps of epochs up to that epoch
                                       are kept, in their order
fusion Z', (4)                         ``Explanation.kept``: the kept steps, concatenated
mapping of observations                ``Explanation.mapping``: for each configuration of the run
                                       the one of the failure-free run that shows the same
committing barrier step                 `Commit`: the barrier that raises the greatest common epoch
=====================================  =====================================================

The result is not trusted: both runs are replayed (`replay`), and what each commit adds to the
output is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from cutwater.checking.transparency.replay import Replayer
from cutwater.errors import InputError, Problem
from cutwater.trace import Trace, TraceMessage, TraceStep

__all__ = ["Commit", "Explanation", "Generation", "NotExplained", "explain"]


@dataclass(frozen=True, slots=True)
class Generation:
    """The steps between two recoveries."""

    start: int
    """Index of its first step."""
    stop: int
    """Index after its last step; a recovery that ends it is at ``stop - 1``."""
    epoch: int
    """The greatest common epoch at its end: its steps up to this epoch are kept."""
    is_recovered: bool
    """Does a recovery end it? The last generation may simply stop."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A committing barrier step: the only kind of step that changes what is observed."""

    step: int
    """Index of the step in the run."""
    place: int
    """Index of the same step in the failure-free run."""
    epoch: int
    """The greatest common epoch from here on."""


@dataclass(frozen=True, slots=True)
class NotExplained:
    """Why this construction does not explain a run."""

    step: int
    """Index of the step at which that shows."""
    reason: str


@dataclass(frozen=True)
class Explanation:
    """A run, and the failure-free run that shows an observer the same."""

    trace: Trace
    """The run that was to be explained."""
    generations: tuple[Generation, ...]
    commits: tuple[Commit, ...]
    kept: tuple[int, ...]
    """The failure-free run: indices of steps of the run, in their new order."""
    mapping: tuple[int, ...]
    """For each configuration of the run (before step 0, after step 0, …) the configuration of the
    failure-free run, counted alike, in which an observer sees the same."""
    refusal: NotExplained | None = None
    """Why the explanation does not hold; None if it was verified."""

    @property
    def holds(self) -> bool:
        """Was the failure-free run verified to explain the run?"""
        return self.refusal is None


def explain(trace: Trace) -> Explanation:
    """The failure-free run that explains a run, verified by replaying both.

    Linear in the steps, plus tasks and streams for each recovery.
    """
    if not isinstance(trace, Trace):
        raise InputError(
            Problem("no-trace", f"{trace!r} is not a trace", "use simulate(..., trace=True).trace")
        )
    original = _replayed(trace, range(len(trace.steps)))
    generations = _generations(trace, original)
    kept = tuple(
        index
        for generation in generations
        for index in range(generation.start, generation.stop)
        if _is_kept(trace.steps[index], generation.epoch)
    )
    place = {step: i for i, step in enumerate(kept)}
    commits = tuple(Commit(step, place[step], epoch) for step, epoch, _ in original.commits)
    refusal = original.refusal or _difference(original, _replayed(trace, kept))
    return Explanation(trace, generations, commits, kept, _mapping(trace, commits), refusal)


@dataclass
class _Replayed:
    """The result of a replay."""

    commits: list[tuple[int, int, dict[str, Sequence[TraceMessage]]]]
    """Step, epoch, and what the epoch adds to the output, at each committing barrier."""
    common: dict[int, int]
    """The greatest common epoch at each recovery and at the end, by the index after it."""
    refusal: NotExplained | None
    stop: int
    """The number of steps that were replayed."""


def _replayed(trace: Trace, indices: Sequence[int]) -> _Replayed:
    machine = Replayer(trace.header)
    shown = _Replayed([], {}, None, len(indices))
    for count, index in enumerate(indices):
        step = trace.steps[index]
        before = machine.common
        message = machine.take(step)
        if message:
            shown.refusal, shown.stop = NotExplained(index, message), count
            break
        if machine.common != before:
            shown.commits.append((index, machine.common, machine.added(machine.common)))
        if step.rule == "recover":
            shown.common[index + 1] = before
    shown.common[len(trace.steps)] = machine.common
    return shown


def _generations(trace: Trace, original: _Replayed) -> tuple[Generation, ...]:
    """Step (1): split by recoveries."""
    generations: list[Generation] = []
    start = 0
    for stop, epoch in original.common.items():
        if start < stop or not generations:
            is_recovered = stop > 0 and trace.steps[stop - 1].rule == "recover"
            generations.append(Generation(start, stop, epoch, is_recovered))
        start = stop
    return tuple(generations)


def _is_kept(step: TraceStep, epoch: int) -> bool:
    """Steps (2) and (3): steps of committed epochs are kept, the others discarded."""
    return step.rule in ("event", "barrier") and step.epoch <= epoch


def _mapping(trace: Trace, commits: Sequence[Commit]) -> tuple[int, ...]:
    """Maps each configuration to the one after its last commit."""
    mapping = []
    at, rest = 0, list(reversed(commits))
    for index in range(len(trace.steps) + 1):
        while rest and rest[-1].step < index:
            at = rest.pop().place + 1
        mapping.append(at)
    return tuple(mapping)


def _difference(original: _Replayed, constructed: _Replayed) -> NotExplained | None:
    """Where the failure-free run differs from what the run showed; None if nowhere."""
    if constructed.refusal:
        step, reason = constructed.refusal.step, constructed.refusal.reason
        return NotExplained(step, f"without the failures this step is not possible: {reason}")
    for index, (mine, other) in enumerate(
        zip_longest(original.commits, constructed.commits, fillvalue=None)
    ):
        if mine != other:
            step = (mine or other or (0, 0, {}))[0]
            return NotExplained(step, f"commit {index + 1} adds different output without failures")
    return None
