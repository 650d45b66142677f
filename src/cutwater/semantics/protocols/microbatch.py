"""The protocol of a run on micro-batches: epochs, ledgers, generations, two ways of release.

=============================  ======================================  ==========================
what is written, or done       here                                    engine
=============================  ======================================  ==========================
a source's log                 ``World.entries``, `append_entry`       ``spark/microbatch``
Spark's offset log             ``World.planned``, `log_offset`         Spark, ``microbatch/query``
Spark's commit log             ``World.finished``, `finish_epoch`      Spark, ``microbatch/query``
identity of a checkpoint       ``World.generation, code, ledger``      ``spark/checkpoint``
the lock                       ``World.holder``, `start`               ``spark/checkpoint``
claim every ledger, then read  `order_of_a_start`, `claim`, `settle`   ``spark/recovery.py``
ledger and rows together       `transaction`, `write`, `publish`       ``spark/connectors``
early, commit                  ``Case.sinks``; `write`, `publish`      ``spark/connectors``
replanning                     `order_of_removal`, `remove`            ``spark/recovery.py``
only the flow that began it    `may_finish`                            ``spark/recovery.py``
=============================  ======================================  ==========================

An epoch is a range of records; its output in each sink partition is one `EpochRow` that names the
range and the code that made it, so rows of two plans or of two flows differ. A task is one bucket:
it writes to the same partition of every sink.

Not modelled: state (Spark names it by the commit, so a zombie's writes are never read); more than
one source; an epoch without any output; adoption of another checkpoint's sink; restored backups.
Writing a generation is one step, because the lock is held.

A *zombie* is what a dead driver left behind: its tasks, its planner and its publisher continue. It
holds no lock, so it writes nothing to Spark's logs. ``Case.is_lock_lost`` lets a whole run continue
without the lock; only replanning relies on that never happening (a test shows it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

__all__ = [
    "Case",
    "EpochPlan",
    "EpochRow",
    "Ledger",
    "Microbatches",
    "Run",
    "SinkState",
    "TransactionPart",
    "World",
    "with_run",
    "without_run",
]

TransactionPart = Literal["fence", "compare", "rows", "ledger"]
"""A part of a transaction with a sink; see `Microbatches.transaction`."""


class EpochPlan(msgspec.Struct, frozen=True, order=True):
    """Which records an epoch reads: from `start` to just before `end`."""

    start: int
    end: int


class EpochRow(msgspec.Struct, frozen=True):
    """The output of an epoch in a sink partition: a function of its plan and of the code."""

    plan: EpochPlan
    code: str


class Ledger(msgspec.Struct, frozen=True):
    """What a sink records about its writers."""

    generation: int
    """The newest generation that claimed the sink."""
    epochs: tuple[int, ...]
    """For each sink partition, the first epoch not yet written."""


class SinkState(msgspec.Struct, frozen=True):
    """A sink: what readers see, and its ledgers."""

    shown: tuple[tuple[EpochRow, ...], ...]
    """For each sink partition, the rows that readers see, in order."""
    ledgers: tuple[Ledger, ...]
    """The ledger recorded in the checkpoint, and one of another name."""


class Run(msgspec.Struct, frozen=True):
    """One start of a flow: driver, planner and tasks."""

    generation: int
    """0 until it has claimed one."""
    code: str
    """Fingerprint of the flow it runs."""
    ledger: int
    """Which ledger it is configured with."""
    replans: bool
    """Must it replan the unfinished epoch?"""
    begun: int = 0
    """How many steps of `order_of_a_start` are done."""
    claimed: int = 0
    """How many sinks it has claimed."""
    removals: tuple[str, ...] = ()
    """The logs it still has to truncate before it may replan."""
    is_zombie: bool = False
    """Is its driver dead, or presumed dead?"""
    epoch: int = 0
    """The current epoch."""
    position: int = 0
    """The record at which that epoch begins."""
    plan: EpochPlan | None = None
    """The plan given to the epoch's tasks; None before they start."""
    tasks: tuple[int, ...] = ()
    """For each task, how much of its work is done; see `Microbatches.work_of_a_task`."""
    staged: tuple[int, ...] = ()
    """For each task, how many files its attempts have staged."""
    published: int = 0
    """How many transactions of commit sinks are done."""


class World(msgspec.Struct, frozen=True, cache_hash=True):
    """All durable state, and all processes."""

    entries: tuple[EpochPlan, ...]
    """The source log: entry n is the plan of epoch n."""
    planned: int
    """Length of Spark's offset log; epoch n names entry n."""
    finished: int
    """Length of Spark's commit log."""
    generation: int
    """Newest generation of the checkpoint."""
    code: str
    """Fingerprint of the flow that may finish the unfinished epoch."""
    holder: int
    """Index in `runs` of the holder of the lock; -1 if it is free."""
    sinks: tuple[SinkState, ...]
    runs: tuple[Run, ...]
    """Every process that may still act."""
    crashes: int
    """How many more runs may be killed."""
    zombies: int
    """How many more runs may become zombies."""
    retries: int
    """How many more attempts of tasks may fail."""
    changes: int
    """How many more starts may use other code or another ledger, or replan."""


class Case(msgspec.Struct, frozen=True):
    """The bounds of an exploration."""

    records: int = 2
    """Records of the source."""
    partitions: int = 2
    """Partitions of each sink."""
    sinks: tuple[Literal["early", "commit"], ...] = ("early",)
    """How each sink releases."""
    crashes: int = 1
    zombies: int = 1
    retries: int = 0
    changes: tuple[Literal["code", "ledger", "replan"], ...] = ()
    """What one start may change compared with the one before it."""
    is_lock_lost: bool = False
    """May a whole run continue after another has taken its lock?"""


class Microbatches:
    """The protocol. A variant overrides the one rule that it breaks."""

    def __init__(self, case: Case) -> None:
        self.case = case

    # -- starting: lock, claim, read

    def is_same_ledger(self, run: Run) -> bool:
        """A checkpoint records the ledger of each sink; any other is refused."""
        return run.ledger == 0

    def admits(self, w: World, run: Run) -> bool:
        """May a run start? Checked with the lock held, before anything is written."""
        return w.holder < 0 and self.is_same_ledger(run) and _has_entries(w, run)

    def order_of_a_start(self) -> tuple[str, ...]:
        """With the lock held: fence first, every sink, then read."""
        return ("generation", *("claim" for _ in self.case.sinks), "settle")

    def take_generation(self, w: World, at: int) -> World | None:
        """Claim a generation above every one seen, and save it."""
        # PREMISE
        run = w.runs[at]
        if self._next_step(run) != "generation":
            return None
        # STATE
        seen = [sink.ledgers[run.ledger].generation for sink in w.sinks]
        generation = max(w.generation, *seen) + 1
        # RESULT
        run = replace(run, generation=generation, begun=run.begun + 1)
        return with_run(replace(w, generation=generation), at, run)

    def claim(self, w: World, at: int) -> World | None:
        """Write the generation into the ledger of the next sink: this fences earlier ones."""
        # PREMISE
        run = w.runs[at]
        if self._next_step(run) != "claim":
            return None
        sink, number = w.sinks[run.claimed], run.claimed
        ledger = sink.ledgers[run.ledger]
        if ledger.generation > run.generation:
            return without_run(w, at)  # fenced
        # STATE
        entered = replace(ledger, generation=run.generation)
        run = replace(run, claimed=run.claimed + 1, begun=run.begun + 1)
        # RESULT
        return with_run(_with_ledger(w, number, run.ledger, entered), at, run)

    def asked(self, w: World, run: Run) -> Iterable[SinkState]:
        """The sinks that are asked whether they have output of an epoch: all of them."""
        return w.sinks

    def has_released(self, w: World, run: Run, epoch: int) -> bool:
        """Does any ledger record rows of an epoch as released?"""
        return any(
            written > epoch
            for sink in self.asked(w, run)
            for written in sink.ledgers[run.ledger].epochs
        )

    def may_finish(self, w: World, run: Run) -> bool:
        """An epoch with released rows may be finished only by the flow that began it."""
        return run.code == w.code or not self.has_released(w, run, w.finished)

    def may_replan(self, w: World, run: Run) -> bool:
        """An epoch may be replanned only if none of its rows are released."""
        return not self.has_released(w, run, w.finished)

    def order_of_removal(self) -> tuple[str, ...]:
        """From the offset log first: an entry that no offset names is the next plan."""
        return ("offset log", "source log")

    def settle(self, w: World, at: int) -> World | None:
        """Read the progress of the checkpoint: continue, replay, replan, or refuse."""
        # PREMISE
        run = w.runs[at]
        if self._next_step(run) != "settle":
            return None
        is_unfinished = w.planned > w.finished
        if is_unfinished and not self.may_finish(w, run):
            return without_run(w, at)  # changed-flow
        if not _has_entries(w, run):
            return without_run(w, at)  # missing-entry
        # STATE
        has_plan = is_unfinished or len(w.entries) > w.finished
        replans = run.replans and has_plan and self.may_replan(w, run)
        removals = self.order_of_removal() if replans else ()
        position = w.entries[w.finished - 1].end if w.finished else 0
        run = replace(run, begun=run.begun + 1, removals=removals)
        run = replace(run, epoch=w.finished, position=position)
        # RESULT
        return with_run(replace(w, code=run.code), at, run)

    def remove(self, w: World, at: int) -> World | None:
        """Replanning: remove the plan of the epoch, log by log."""
        # PREMISE
        run = w.runs[at]
        if self._next_step(run) or not run.removals or not self._is_driver(run):
            return None
        # STATE
        log, *rest = run.removals
        if log == "offset log":
            w = replace(w, planned=min(w.planned, run.epoch))
        else:
            w = replace(w, entries=w.entries[: run.epoch])
        # RESULT
        return with_run(w, at, replace(run, removals=tuple(rest)))

    # -- planning

    def append_entry(self, w: World, at: int, size: int) -> World | None:
        """The planner appends what the next epoch reads; it never overwrites an entry.

        The entry is created atomically if it does not exist. Checking the generation first would
        spare a zombie the attempt but is not atomic with it, so correctness does not rely on it.
        """
        # PREMISE
        run = w.runs[at]
        if not self._is_to_plan(run) or run.position + size > self.case.records:
            return None
        if len(w.entries) != run.epoch:
            return None  # already planned: that is the plan
        # RESULT
        return replace(w, entries=(*w.entries, EpochPlan(run.position, run.position + size)))

    def log_offset(self, w: World, at: int) -> World | None:
        """Spark logs the offset that names the entry: the epoch is planned."""
        # PREMISE
        run = w.runs[at]
        if not self._is_to_plan(run) or not self._is_driver(run):
            return None
        if w.planned != run.epoch or len(w.entries) <= run.epoch:
            return None
        # RESULT
        return replace(w, planned=w.planned + 1)

    def start_tasks(self, w: World, at: int) -> World | None:
        """Tasks start with the plan in the log, new or replayed."""
        # PREMISE
        run = w.runs[at]
        if not self._is_to_plan(run) or not self._is_driver(run):
            return None
        if w.finished > run.epoch:
            return without_run(w, at)  # another run has written to Spark's logs
        if run.epoch >= min(w.planned, len(w.entries)):
            return None
        # STATE
        nothing = (0,) * self.case.partitions
        run = replace(run, plan=w.entries[run.epoch], tasks=nothing, staged=nothing, published=0)
        # RESULT
        return with_run(w, at, run)

    # -- releasing

    def transaction(self) -> tuple[tuple[TransactionPart, ...], ...]:
        """One transaction: check the fence, skip if written, then write rows and ledger entry."""
        return (("fence", "compare", "rows", "ledger"),)

    def work_of_a_task(self) -> list[tuple[int, tuple[TransactionPart, ...]]]:
        """Sink and parts of each transaction of a task; no parts: rows are staged."""
        return [
            (number, parts)
            for number, release in enumerate(self.case.sinks)
            for parts in (self.transaction() if release == "early" else ((),))
        ]

    def work_of_a_publisher(self) -> list[tuple[int, tuple[TransactionPart, ...]]]:
        """Sink and parts of each transaction in which the driver publishes staged rows."""
        return [
            (number, parts)
            for number, release in enumerate(self.case.sinks)
            if release == "commit"
            for parts in self.transaction()
        ]

    def write(self, w: World, at: int, task: int) -> World | None:
        """A task releases its rows (early), or stages them where no reader looks (commit)."""
        # PREMISE
        run, work = w.runs[at], self.work_of_a_task()
        if run.plan is None or run.tasks[task] == len(work):
            return None
        # STATE
        number, parts = work[run.tasks[task]]
        if not parts:
            staged = _put(run.staged, task, run.staged[task] + 1)
            run = replace(run, tasks=_put(run.tasks, task, run.tasks[task] + 1), staged=staged)
            return with_run(w, at, run)
        after, outcome = self._transact(w, run, number, task, parts, 1)
        if outcome == "fenced":
            return without_run(w, at)
        # RESULT
        done = run.tasks[task] + 1
        if outcome == "written":
            done = 1 + max(n for n, (sink, _) in enumerate(work) if sink == number)
        return with_run(after, at, replace(run, tasks=_put(run.tasks, task, done)))

    def retry(self, w: World, at: int, task: int) -> World | None:
        """A task attempt fails, or is overtaken: its work restarts from the beginning."""
        # PREMISE
        run = w.runs[at]
        if not w.retries or run.plan is None or not run.tasks[task] or run.published:
            return None
        # RESULT
        run = replace(run, tasks=_put(run.tasks, task, 0))
        return with_run(replace(w, retries=w.retries - 1), at, run)

    def files_to_publish(self, run: Run, task: int) -> int:
        """The driver publishes the attempt that a task reports, whatever else is staged."""
        return 1

    def publish(self, w: World, at: int) -> World | None:
        """When every task is done, a commit sink publishes the whole epoch atomically."""
        # PREMISE
        run, work = w.runs[at], self.work_of_a_publisher()
        if run.plan is None or run.published == len(work) or not self._all_tasks_done(run):
            return None
        # STATE
        number, parts = work[run.published]
        after = w
        for task in range(self.case.partitions):
            files = self.files_to_publish(run, task)
            after, outcome = self._transact(after, run, number, task, parts, files)
            if outcome == "fenced":
                return without_run(w, at)
        # RESULT
        return with_run(after, at, replace(run, published=run.published + 1))

    def is_shown(self, run: Run) -> bool:
        """Has every sink published the epoch?"""
        return self._all_tasks_done(run) and run.published == len(self.work_of_a_publisher())

    def finish_epoch(self, w: World, at: int) -> World | None:
        """Spark logs the commit once every sink has published the epoch; the next one begins."""
        # PREMISE
        run = w.runs[at]
        if run.plan is None or not self._is_driver(run) or not self.is_shown(run):
            return None
        # RESULT
        end = run.plan.end
        run = replace(run, epoch=run.epoch + 1, position=end, plan=None, tasks=(), staged=())
        run = replace(run, published=0)
        return with_run(replace(w, finished=max(w.finished, run.epoch)), at, run)

    # -- what the rules share

    def _transact(
        self,
        w: World,
        run: Run,
        number: int,
        task: int,
        parts: Iterable[TransactionPart],
        files: int,
    ) -> tuple[World, Literal["fenced", "written", "done"]]:
        """One atomic transaction with a sink for one of its partitions."""
        ledger, after = w.sinks[number].ledgers[run.ledger], w
        assert run.plan is not None
        for part in parts:
            if part == "fence" and ledger.generation != run.generation:
                return w, "fenced"
            if part == "compare" and ledger.epochs[task] > run.epoch:
                return w, "written"
            if part == "rows":
                after = _with_rows(after, number, task, (EpochRow(run.plan, run.code),) * files)
            if part == "ledger":
                epochs = _put(ledger.epochs, task, run.epoch + 1)
                after = _with_ledger(after, number, run.ledger, replace(ledger, epochs=epochs))
        return after, "done"

    def _next_step(self, run: Run) -> str:
        """The next step of a start; empty when it is over, or if its driver is gone."""
        order = self.order_of_a_start()
        is_starting = run.begun < len(order) and self._is_driver(run)
        return order[run.begun] if is_starting else ""

    def _is_driver(self, run: Run) -> bool:
        """May it write to Spark's logs and claim sinks? A zombie only if the lock can be lost."""
        return not run.is_zombie or self.case.is_lock_lost

    def _is_to_plan(self, run: Run) -> bool:
        is_started = run.begun == len(self.order_of_a_start())
        return is_started and not run.removals and run.plan is None

    def _all_tasks_done(self, run: Run) -> bool:
        return all(done == len(self.work_of_a_task()) for done in run.tasks)


def _has_entries(w: World, run: Run) -> bool:
    """Do all entries exist that the checkpoint names as read or planned?"""
    return len(w.entries) >= max(w.finished, 0 if run.replans else w.planned)


def _put(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])


def with_run(w: World, at: int, run: Run) -> World:
    """The world with another state of one of its runs."""
    return replace(w, runs=(*w.runs[:at], run, *w.runs[at + 1 :]))


def without_run(w: World, at: int) -> World:
    """The world after a run has ended; the index of the lock holder is adjusted."""
    holder = -1 if w.holder == at else w.holder - (w.holder > at)
    return replace(w, runs=(*w.runs[:at], *w.runs[at + 1 :]), holder=holder)


def _with_sink(w: World, number: int, sink: SinkState) -> World:
    return replace(w, sinks=(*w.sinks[:number], sink, *w.sinks[number + 1 :]))


def _with_ledger(w: World, number: int, name: int, ledger: Ledger) -> World:
    sink = w.sinks[number]
    ledgers = (*sink.ledgers[:name], ledger, *sink.ledgers[name + 1 :])
    return _with_sink(w, number, replace(sink, ledgers=ledgers))


def _with_rows(w: World, number: int, task: int, rows: tuple[EpochRow, ...]) -> World:
    sink = w.sinks[number]
    shown = (*sink.shown[:task], (*sink.shown[task], *rows), *sink.shown[task + 1 :])
    return _with_sink(w, number, replace(sink, shown=shown))
