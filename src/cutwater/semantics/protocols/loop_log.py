"""The protocol of a loop that feeds back through a log: one round per epoch, sealed by its commit.

====  ========================================  ======================  ===========================
rule  what it says (``docs/protocols.md``)      here                    engine
====  ========================================  ======================  ===========================
1     epoch n + 1 is planned when n is          `is_sealed`,            Spark; ``microbatch.writer``
      committed; n publishes, then commits      `order_of_an_epoch`     (publish), ``Logs.newest``
2     an epoch reads what no epoch has read;    `next_round`,           ``feedback._next_round``,
      a replay reads the same                   `rows_to_read`          ``feedback._fed_back``
3     a replay finds its rows published         `is_published`          ``connectors.files.sink``
4     events keep the order of their causes     `in_order`              ``feedback._rank_orders``
5     input epochs overlap only if states are   `room`, `state_of`      ``loop_plan.planned``,
      separate                                                          ``state.input_states``
6     the oldest is released when nothing of    `leaving`               ``loop_plan.planned``
      it was fed back; one per epoch
7     the offset log says what is in the loop   `inside`                ``checkpoint.loop_progress``
8     a restart replays an epoch that is        `start`,                Spark; its state store
      planned and not committed, on the states  `epoch_to_run`,
      of the epoch before                       `states_before`
9     drop only what neither the next epoch     `needed_of_log`,        ``loop_plan.Logs.clean``,
      nor a replay of the newest can read       `needed_of_results`     ``feedback._left``
====  ========================================  ======================  ===========================

An epoch is acyclic: it reads sources and logs, and writes logs and sinks. How an epoch is planned,
replayed, fenced and released once is the protocol of `microbatch`; here an epoch's offsets are one
entry, its tasks one step, and each publication one step.

After a power loss, the newest commit and the plan after it may be gone: Spark does not sync its
logs. The engine syncs them when the tasks of an epoch begin.

Not modelled: zombies and other code (they meet the fences of `microbatch`, since a log is a sink
and a source like others); watermarks and the end of the input; `max_rounds`; several buckets,
except for the order of their rows in a log.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from msgspec.structs import replace

from cutwater.semantics.protocols.loop_log_world import (
    FedBack,
    LoopCase,
    LoopOutput,
    LoopRun,
    LoopWorld,
    Released,
    RoundPlan,
    RoundWork,
    States,
    Token,
    WrittenRows,
)

__all__ = ["LoopLog"]

_SHARED = -1
_Row = TypeVar("_Row", FedBack, LoopOutput)


class LoopLog:
    """The protocol. A variant overrides the one rule that it breaks.

    A rule that is a step returns the world after it, or None if the step is not possible.
    """

    def __init__(self, case: LoopCase) -> None:
        self.case = case

    # -- planning

    def is_sealed(self, w: LoopWorld) -> bool:
        """Rule 1: every planned epoch is committed, so the log gets no more rows."""
        return w.finished == len(w.plans)

    def inside(self, w: LoopWorld, run: LoopRun) -> tuple[int, ...]:
        """Rule 7: the input epochs in the loop, oldest first, as the offset log has them."""
        if not w.plans:
            return ()
        newest = w.plans[-1]
        return newest.inside if newest.reads < 0 else (*newest.inside, newest.reads)

    def next_round(self, w: LoopWorld, run: LoopRun) -> tuple[int, int]:
        """Rule 2: the epochs to read: from the first unread one to the newest."""
        return (w.plans[-1].end if w.plans else 0), len(w.plans)

    def room(self) -> int:
        """Rule 5: a state that is kept from one input epoch to the next admits one at a time."""
        return 1 if self.case.is_state_shared else self.case.room

    def leaving(self, inside: Sequence[int], iterating: Collection[int]) -> int:
        """Rule 6: the oldest input epoch, if nothing of it was fed back; -1: none."""
        return inside[0] if inside and inside[0] not in iterating else -1

    def plan(self, w: LoopWorld, has_input: bool) -> LoopWorld | None:
        """Log the offsets of the next epoch: what enters, what iterates and what is released."""
        # PREMISE
        if w.run is None or not self.is_sealed(w):
            return None
        inside = self.inside(w, w.run)
        start, end = self.next_round(w, w.run)
        iterating = {row.input for row in self.rows_to_read(w, start, end)}
        leaves = self.leaving(inside, iterating)
        next_input = sum(plan.reads >= 0 for plan in w.plans)
        if has_input and not (next_input < len(self.case.inputs) and len(inside) < self.room()):
            return None
        if not (has_input or iterating or leaves >= 0):
            return None
        # STATE
        stay = tuple(number for number in inside if number != leaves)
        reads = next_input if has_input else -1
        plan = RoundPlan(reads, start, end if iterating else start, leaves, stay)
        # RESULT
        return replace(w, plans=(*w.plans, plan))

    # -- the tasks of an epoch

    def epoch_to_run(self, w: LoopWorld) -> int:
        """Rule 8: the epoch that is planned and not committed; -1: none."""
        return w.finished if w.finished < len(w.plans) else -1

    def rows_to_read(self, w: LoopWorld, start: int, end: int) -> list[FedBack]:
        """Rule 2: what the planned epochs fed back, and nothing that came later."""
        return _rows_of(w.log, FedBack, start, end)

    def in_order(self, rows: Sequence[_Row]) -> list[_Row]:
        """Rule 4: rows that one epoch wrote, in the order of their causes."""
        return sorted(rows, key=lambda row: row.order)

    def states_before(self, w: LoopWorld, epoch: int) -> States:
        """Rule 8: the states that the epoch before has committed."""
        return w.states[epoch - 1] if epoch else ()

    def state_of(self, number: int) -> int:
        """Rule 5: whose state the events of an input epoch are processed on."""
        return _SHARED if self.case.is_state_shared else number

    def run_tasks(self, w: LoopWorld, is_reversed: bool) -> LoopWorld | None:
        """Run the body on each event of the round; rows reach the logs in any order."""
        # PREMISE
        epoch = self.epoch_to_run(w)
        if w.run is None or w.run.work is not None or epoch < 0:
            return None
        # STATE
        plan, states = w.plans[epoch], dict(self.states_before(w, epoch))
        rounds = self._events(w, plan)
        fed_back, outputs = list[FedBack](), list[LoopOutput]()
        for number, tokens in sorted(rounds.items()):
            of = self.state_of(number)
            for order, token in enumerate(tokens):
                states[of] = states.get(of, "") + token.name
                outputs.append(LoopOutput(number, order, states[of]))
                if token.rounds:
                    again = Token(token.name, token.rounds - 1)
                    fed_back.append(FedBack(number, order, again))
        if is_reversed and len(outputs) < 2:
            return None
        released = self._released(w, epoch, plan.leaves)
        if plan.leaves >= 0:
            states.pop(plan.leaves, None)
        turn = -1 if is_reversed else 1
        work = RoundWork(tuple(fed_back[::turn]), tuple(outputs[::turn]), released)
        # RESULT
        run = replace(w.run, epoch=epoch, work=work, done=0)
        after = (*w.states[:epoch], tuple(sorted(states.items())))
        return replace(w, run=run, states=after, synced=max(w.synced, epoch + 1))

    def _events(self, w: LoopWorld, plan: RoundPlan) -> dict[int, list[Token]]:
        """The events of an epoch by input epoch, each in order: new ones, and what was fed back."""
        found: dict[int, list[Token]] = {}
        if plan.reads >= 0:
            found[plan.reads] = list(self.case.inputs[plan.reads])
        rows = self.rows_to_read(w, plan.start, plan.end)
        for number in {row.input for row in rows}:
            ordered = self.in_order([row for row in rows if row.input == number])
            found.setdefault(number, []).extend(row.token for row in ordered)
        return found

    def _released(self, w: LoopWorld, epoch: int, leaves: int) -> Released:
        """All outputs of the input epoch that leaves, by round and by the order of their causes."""
        if leaves < 0:
            return ()
        values: list[str] = []
        for at in range(epoch):
            rows = _rows_of(w.results, LoopOutput, at, at + 1)
            values += [row.value for row in self.in_order(rows) if row.input == leaves]
        return ((leaves, tuple(values)),)

    # -- publishing and committing

    def order_of_an_epoch(self) -> tuple[str, ...]:
        """Rule 1: everything is published before the epoch is committed."""
        return ("log", "results", "sink", "commit")

    def is_published(self, w: LoopWorld, what: str, epoch: int) -> bool:
        """Rule 3: does a log or the sink have the rows of an epoch?"""
        if what == "sink":
            return w.released > epoch
        return any(written.epoch == epoch for written in (w.log if what == "log" else w.results))

    def finish(self, w: LoopWorld) -> LoopWorld | None:
        """Take the next step of an epoch whose tasks are done; skip what is already published."""
        # PREMISE
        if w.run is None or w.run.work is None:
            return None
        run, work, order = w.run, w.run.work, self.order_of_an_epoch()
        # STATE
        what, epoch = order[run.done], run.epoch
        is_last = run.done + 1 == len(order)
        idle = replace(run, epoch=-1, work=None, done=0)
        w = replace(w, run=idle if is_last else replace(run, done=run.done + 1))
        # RESULT
        if what == "commit":
            return replace(w, finished=epoch + 1)
        if self.is_published(w, what, epoch):
            return w
        if what == "log":
            return replace(w, log=(*w.log, WrittenRows(epoch, work.fed_back)))
        if what == "results":
            return replace(w, results=(*w.results, WrittenRows(epoch, work.outputs)))
        return replace(w, shown=(*w.shown, *work.released), released=epoch + 1)

    # -- cleaning

    def needed_of_log(self, w: LoopWorld) -> int:
        """Rule 9: keep what the newest epoch read, since a power loss may lose its commit."""
        return w.plans[-1].start

    def needed_of_results(self, w: LoopWorld) -> int:
        """Rule 9: keep results since the oldest unreleased input epoch entered."""
        newest = w.plans[-1]
        present = (newest.leaves, *newest.inside, newest.reads)
        oldest = next((number for number in present if number >= 0), -1)
        return [plan.reads for plan in w.plans].index(oldest) if oldest >= 0 else 0

    def clean(self, w: LoopWorld) -> LoopWorld | None:
        """Remove from both logs what no epoch reads any more; done while an epoch is planned."""
        # PREMISE
        if w.run is None or not w.plans or not self.is_sealed(w):
            return None
        # RESULT
        log = tuple(kept for kept in w.log if kept.epoch >= self.needed_of_log(w))
        results = tuple(kept for kept in w.results if kept.epoch >= self.needed_of_results(w))
        return replace(w, log=log, results=results)

    # -- starting and failing

    def start(self, w: LoopWorld) -> LoopWorld | None:
        """Rule 8: a run starts; it knows of the loop only what is in the checkpoint."""
        # PREMISE
        if w.run is not None:
            return None
        # RESULT
        run = LoopRun(w.starts + 1, len(w.plans))
        return replace(w, run=run, starts=w.starts + 1)

    def crash(self, w: LoopWorld) -> LoopWorld | None:
        """All processes of a run are killed."""
        # PREMISE
        if w.run is None or not w.crashes:
            return None
        # RESULT
        return replace(w, run=None, crashes=w.crashes - 1)

    def lose_power(self, w: LoopWorld) -> LoopWorld | None:
        """The machine goes down: only the synced part of Spark's logs survives."""
        # PREMISE
        if w.run is None or not w.losses:
            return None
        # RESULT
        finished = min(w.finished, max(w.synced - 1, 0))
        w = replace(w, plans=w.plans[: w.synced], finished=finished)
        return replace(w, run=None, losses=w.losses - 1)


def _rows_of(log: Sequence[WrittenRows], row: type[_Row], start: int, end: int) -> list[_Row]:
    """The rows of some epochs, in the order of the log."""
    return [
        each
        for written in log
        if start <= written.epoch < end
        for each in written.rows
        if isinstance(each, row)
    ]
