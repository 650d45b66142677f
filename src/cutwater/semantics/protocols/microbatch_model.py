"""Executions of the micro-batch protocol as a `Model`, and what an observer may see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from cutwater.semantics.protocols.microbatch import (
    Case,
    EpochRow,
    Ledger,
    Microbatches,
    Run,
    SinkState,
    World,
    with_run,
    without_run,
)

__all__ = ["MicrobatchModel", "MicrobatchMove", "is_complete", "is_consistent"]


class MicrobatchMove(msgspec.Struct, frozen=True):
    """A step of a run, by the name of its rule."""

    rule: str
    run: int
    """Index of the run among those that may act."""
    number: int = 0
    """Task, sink, size of an epoch, or 0."""
    who: str = ""
    """Run or zombie, by its generation."""
    words: str = ""
    """What it does."""

    def __str__(self) -> str:
        return f"{self.who} {self.words}"


class MicrobatchModel:
    """All executions of a case, as a `Model`.

    Examples
    --------
    >>> model = MicrobatchModel(Microbatches(Case(records=1, crashes=0, zombies=0)))
    >>> (world,) = model.initial_states()
    >>> [str(move) for move in model.actions(world)]
    ['run 1 starts']
    """

    def __init__(self, protocol: Microbatches) -> None:
        self.protocol, self.case = protocol, protocol.case
        self._last: tuple[World | None, dict[MicrobatchMove, World]] = (None, {})

    def initial_states(self) -> Iterable[World]:
        """Nothing is read, nothing is visible, nothing runs."""
        case = self.case
        ledger = Ledger(0, (0,) * case.partitions)
        sink = SinkState(((),) * case.partitions, (ledger,) * (1 + ("ledger" in case.changes)))
        budget = (case.crashes, case.zombies, case.retries, bool(case.changes))
        return (World((), 0, 0, 0, "a", -1, (sink,) * len(case.sinks), (), *budget),)

    def actions(self, state: World) -> list[MicrobatchMove]:
        """The possible moves: steps of the runs, starts, then faults."""
        return list(self._successors(state))

    def step(self, state: World, action: MicrobatchMove) -> World:
        """The world after a step."""
        return self._successors(state)[action]

    def observation(self, state: World) -> tuple[tuple[tuple[EpochRow, ...], ...], ...]:
        """What readers see: for each sink and partition its rows, in order."""
        return tuple(sink.shown for sink in state.sinks)

    def is_at_rest(self, state: World) -> bool:
        """Can only faults still happen?"""
        return all(move.rule in _FAULTS for move in self.actions(state))

    def _successors(self, state: World) -> dict[MicrobatchMove, World]:
        if self._last[0] is not state:
            moves = [*self._progress(state), *self._starts(state), *self._faults(state)]
            self._last = (state, dict(moves))
        return self._last[1]

    def _progress(self, w: World) -> Iterator[tuple[MicrobatchMove, World]]:
        for at, run in enumerate(w.runs):
            for rule, numbers, words in self._rules(run):
                for number in numbers:
                    after = rule(w, at, number)
                    if after is not None and after != w:
                        who = f"{'zombie' if run.is_zombie else 'run'} {_name(run, w)}"
                        does = self._writing(run, number) if rule.__name__ == "write" else ""
                        message = words.format(number, e=run.epoch, s="s" * (number > 1), does=does)
                        if len(after.runs) < len(w.runs):
                            message += ": refused, and ends"
                        yield MicrobatchMove(rule.__name__, at, number, who, message), after

    def _rules(self, run: Run) -> list[tuple[Callable[..., World | None], Iterable[int], str]]:
        p, tasks = self.protocol, range(self.case.partitions)
        rules: list[tuple[Callable[..., World | None], Iterable[int], str]] = [
            (_plain(p.take_generation), (0,), "takes its generation"),
            (_plain(p.claim), (0,), f"claims sink {run.claimed}"),
            (_plain(p.settle), (0,), "reads the checkpoint and the ledgers"),
            (_plain(p.remove), (0,), f"removes epoch {{e}} from the {[*run.removals, ''][0]}"),
            (p.append_entry, (1, 2), "plans {0} record{s} as epoch {e}"),
            (_plain(p.log_offset), (0,), "logs the offset of epoch {e}"),
            (_plain(p.start_tasks), (0,), "starts the tasks of epoch {e}"),
            (p.write, tasks, "{does} epoch {e} in task {0}"),
            (_plain(p.publish), (0,), "publishes epoch {e}"),
            (_plain(p.finish_epoch), (0,), "logs the commit of epoch {e}"),
        ]
        return rules

    def _writing(self, run: Run, task: int) -> str:
        """What a task does next to a sink."""
        parts = self.protocol.work_of_a_task()[run.tasks[task]][1]
        if not parts:
            return "stages"
        if "rows" in parts:
            return "writes" if "ledger" in parts else "writes the rows of"
        return "enters" if "ledger" in parts else "checks the fence for"

    def _starts(self, w: World) -> Iterator[tuple[MicrobatchMove, World]]:
        """The flow is started: unchanged, or with one change."""
        read = w.entries[: w.finished]
        if read and read[-1].end == self.case.records:
            return
        other = "b" if w.code == "a" else "a"
        starts = [("", Run(0, w.code, 0, False), 0)]
        if w.changes:
            changed = {
                "code": (", other code", Run(0, other, 0, False), 1),
                "ledger": (", another ledger", Run(0, w.code, 1, False), 1),
                "replan": (", to replan", Run(0, w.code, 0, True), 1),
            }
            starts += [changed[what] for what in self.case.changes]
        for words, run, cost in starts:
            if self.protocol.admits(w, run):
                yield self._started(w, run, f"starts{words}", cost)

    @staticmethod
    def _started(w: World, run: Run, words: str, changes: int) -> tuple[MicrobatchMove, World]:
        runs = (*w.runs, run)
        after = replace(w, runs=runs, holder=len(w.runs), changes=w.changes - changes)
        who = f"run {w.generation + 1}"
        return MicrobatchMove("start", len(w.runs), 0, who, words), after

    def _faults(self, w: World) -> Iterator[tuple[MicrobatchMove, World]]:
        for at, run in enumerate(w.runs):
            who, tasks = f"run {_name(run, w)}", range(self.case.partitions)
            for task in tasks if not run.is_zombie else ():
                after = self.protocol.retry(w, at, task)
                if after is not None:
                    yield MicrobatchMove("retry", at, task, who, f"retries task {task}"), after
            if at != w.holder:
                continue
            if w.crashes:
                gone = replace(without_run(w, at), crashes=w.crashes - 1)
                yield MicrobatchMove("crash", at, 0, who, "is killed"), gone
            is_started = run.begun == len(self.protocol.order_of_a_start())
            if w.zombies and (is_started or self.case.is_lock_lost):
                zombie = with_run(w, at, replace(run, is_zombie=True))
                zombie = replace(zombie, holder=-1, zombies=w.zombies - 1)
                yield MicrobatchMove("lose", at, 0, who, "is presumed dead"), zombie


_FAULTS = frozenset({"retry", "crash", "lose"})


def is_consistent(case: Case) -> Callable[[tuple[tuple[tuple[EpochRow, ...], ...], ...]], bool]:
    """Does one run without failures explain everything that is visible?

    Each partition of an early sink shows a prefix of it; all partitions of a commit sink show the
    same epochs.
    """

    def holds(shown: tuple[tuple[tuple[EpochRow, ...], ...], ...]) -> bool:
        longest = max((rows for sink in shown for rows in sink), key=len)
        ends = [0, *(row.plan.end for row in longest)]
        is_a_run = [row.plan.start for row in longest] == ends[:-1]
        are_prefixes = all(rows == longest[: len(rows)] for sink in shown for rows in sink)
        are_whole = all(
            len(set(map(len, sink))) == 1
            for sink, release in zip(shown, case.sinks, strict=True)
            if release == "commit"
        )
        return is_a_run and are_prefixes and are_whole

    return holds


def is_complete(model: MicrobatchModel) -> Callable[[World], bool]:
    """Does every sink partition show every record, once nothing more can happen?"""

    def holds(w: World) -> bool:
        shown = [rows[-1].plan.end if rows else 0 for sink in w.sinks for rows in sink.shown]
        return set(shown) == {model.case.records} or not model.is_at_rest(w)

    return holds


def _plain(rule: Callable[[World, int], World | None]) -> Callable[..., World | None]:
    """Adapts a rule without a number to be called with one."""

    def numbered(w: World, at: int, _number: int) -> World | None:
        return rule(w, at)

    numbered.__name__ = rule.__name__
    return numbered


def _name(run: Run, w: World) -> int:
    """The name of a run: its generation, or the one it will claim."""
    return run.generation or w.generation + 1
