"""The protocol of a run on micro-batches: epochs, ledgers, generations, two ways of release.

=============================  ======================================  ==========================
runtime.md                     here                                    engine
=============================  ======================================  ==========================
a source's log                 ``World.entries``, `append_entry`       ``spark/microbatch``
Spark's offset log             ``World.planned``, `log_offset`         Spark, ``microbatch/query``
Spark's commit log             ``World.finished``, `finish_epoch`      Spark, ``microbatch/query``
identity of a checkpoint       ``World.generation, code, ledger``      ``spark/checkpoint``
the lock                       ``World.holder``, `start`               ``spark/checkpoint``
claim every ledger, then read  `order_of_a_start`, `claim`, `settle`   ``spark/recovery.py``
ledger and rows together       `transaction`, `write`, `publish`       ``spark/connectors``
early, commit                  ``Case.sinks``; `write`, `publish`      ``spark/connectors``
planning anew (issue 17, 4)    `order_of_removal`, `remove`            ``spark/recovery.py``
only the flow that began it    `may_finish`                            ``spark/recovery.py``
=============================  ======================================  ==========================

An epoch is a range of records; what it shows in each sink partition is one `Row` that names the
range and the code that made it, so rows of two plans or of two flows differ. A task is one bucket:
it feeds the same partition of every sink.

What is not modelled: state (Spark names it by the commit, so what a zombie writes is not read);
more than one source; an epoch that shows nothing at all; adoption of another checkpoint's sink;
restored backups. Writing a generation is one step, because the lock is held.

A *zombie* is what a dead driver left behind: its tasks, its planner and its publisher go on. It
holds no lock, so it writes nothing to Spark's logs. ``Case.is_lock_lost`` lets a whole run go on
without the lock; only planning anew rests on that never happening (a test shows it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

__all__ = [
    "Case",
    "Ledger",
    "Microbatches",
    "Part",
    "Plan",
    "Row",
    "Run",
    "SinkState",
    "World",
    "with_run",
    "without_run",
]

Part = Literal["fence", "compare", "rows", "ledger"]
"""What a transaction with a sink may hold; see `Microbatches.transaction`."""


class Plan(msgspec.Struct, frozen=True, order=True):
    """Which records an epoch reads: from `start` to just before `end`."""

    start: int
    end: int


class Row(msgspec.Struct, frozen=True):
    """What an epoch shows in a sink partition: a function of its plan and of the code."""

    plan: Plan
    code: str


class Ledger(msgspec.Struct, frozen=True):
    """What a sink knows of its writers."""

    generation: int
    """The newest generation that claimed the sink."""
    epochs: tuple[int, ...]
    """For each sink partition the first epoch that is not written."""


class SinkState(msgspec.Struct, frozen=True):
    """A sink: what readers see, and its ledgers."""

    shown: tuple[tuple[Row, ...], ...]
    """For each sink partition the rows that readers see, in order."""
    ledgers: tuple[Ledger, ...]
    """The ledger that the checkpoint remembers, and one of another name."""


class Run(msgspec.Struct, frozen=True):
    """One start of a flow: driver, planner and tasks."""

    generation: int
    """0 until it has taken one."""
    code: str
    """Fingerprint of the flow it runs."""
    ledger: int
    """Which ledger it is configured with."""
    replans: bool
    """Was it told to plan the unfinished epoch anew?"""
    begun: int = 0
    """How many steps of `order_of_a_start` are done."""
    claimed: int = 0
    """How many sinks it has claimed."""
    removals: tuple[str, ...] = ()
    """What it has still to remove before it may plan anew."""
    is_zombie: bool = False
    """Is its driver gone, or believed to be?"""
    epoch: int = 0
    """The epoch it works on."""
    position: int = 0
    """The record at which that epoch begins."""
    plan: Plan | None = None
    """What the tasks of the epoch were told to read; None before they are started."""
    tasks: tuple[int, ...] = ()
    """For each task how much of its work is done; see `Microbatches.work_of_a_task`."""
    staged: tuple[int, ...] = ()
    """For each task how many files its attempts have staged."""
    published: int = 0
    """How many transactions of commit sinks are done."""


class World(msgspec.Struct, frozen=True, cache_hash=True):
    """All that is durable, and all processes."""

    entries: tuple[Plan, ...]
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
    """How many more runs may leave a zombie."""
    retries: int
    """How many more attempts of tasks may fail."""
    changes: int
    """How many more starts may be by other code, with another ledger, or plan anew."""


class Case(msgspec.Struct, frozen=True):
    """How much there is to explore."""

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
    """What one start may do otherwise than the one before it."""
    is_lock_lost: bool = False
    """May a run go on as a whole after another has its lock?"""


class Microbatches:
    """The protocol. A variant overrides the one rule that it breaks."""

    def __init__(self, case: Case) -> None:
        self.case = case

    # -- starting: lock, claim, read

    def is_same_ledger(self, run: Run) -> bool:
        """A checkpoint remembers the ledger of each sink; another one is refused."""
        return run.ledger == 0

    def admits(self, w: World, run: Run) -> bool:
        """May a run start? Seen with the lock held, before anything is written."""
        return w.holder < 0 and self.is_same_ledger(run) and _has_entries(w, run)

    def order_of_a_start(self) -> tuple[str, ...]:
        """With the lock held: fence first, every sink, then read."""
        return ("generation", *("claim" for _ in self.case.sinks), "settle")

    def take_generation(self, w: World, at: int) -> World | None:
        """Take a generation above every one that was seen, and save it."""
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
        """Write the generation into the ledger of the next sink: earlier ones are fenced."""
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
        """The sinks that are asked whether an epoch has shown anything: all of them."""
        return w.sinks

    def has_left(self, w: World, run: Run, epoch: int) -> bool:
        """Does a ledger say that some row of an epoch has left?"""
        return any(
            written > epoch
            for sink in self.asked(w, run)
            for written in sink.ledgers[run.ledger].epochs
        )

    def may_finish(self, w: World, run: Run) -> bool:
        """An epoch of which something left is finished only by the flow that began it."""
        return run.code == w.code or not self.has_left(w, run, w.finished)

    def may_replan(self, w: World, run: Run) -> bool:
        """An epoch is planned anew only if nothing of it has left."""
        return not self.has_left(w, run, w.finished)

    def order_of_removal(self) -> tuple[str, ...]:
        """From the offset log first: an entry that no offset names is the next plan."""
        return ("offset log", "source log")

    def settle(self, w: World, at: int) -> World | None:
        """Read how far the checkpoint is: go on, replay, plan anew, or refuse."""
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
        """Planning anew: forget the plan of the epoch, log by log."""
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
        """The planner appends what the next epoch reads; it never writes over an entry.

        The entry is created if it is not there, in one step. A look at the generation before
        would spare a zombie the attempt, and cannot be one step with it: nothing rests on it.
        """
        # PREMISE
        run = w.runs[at]
        if not self._is_to_plan(run) or run.position + size > self.case.records:
            return None
        if len(w.entries) != run.epoch:
            return None  # somebody has planned it: that is the plan
        # RESULT
        return replace(w, entries=(*w.entries, Plan(run.position, run.position + size)))

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
        """Tasks are started with the plan as the log has it, new or replayed."""
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

    def transaction(self) -> tuple[tuple[Part, ...], ...]:
        """One transaction: am I fenced? is it written? then the rows and the ledger's entry."""
        return (("fence", "compare", "rows", "ledger"),)

    def work_of_a_task(self) -> list[tuple[int, tuple[Part, ...]]]:
        """Sink and parts of each transaction of a task; no parts: rows are staged."""
        return [
            (number, parts)
            for number, release in enumerate(self.case.sinks)
            for parts in (self.transaction() if release == "early" else ((),))
        ]

    def work_of_a_publisher(self) -> list[tuple[int, tuple[Part, ...]]]:
        """Sink and parts of each transaction in which the driver shows staged rows."""
        return [
            (number, parts)
            for number, release in enumerate(self.case.sinks)
            if release == "commit"
            for parts in self.transaction()
        ]

    def write(self, w: World, at: int, task: int) -> World | None:
        """A task shows its rows (early), or stages them where no reader looks (commit)."""
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
        """An attempt of a task fails, or is overtaken: the work is done again from the start."""
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
        """When every task is done, a commit sink shows the whole epoch at once."""
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
        """Has every sink shown the epoch?"""
        return self._all_tasks_done(run) and run.published == len(self.work_of_a_publisher())

    def finish_epoch(self, w: World, at: int) -> World | None:
        """Spark logs the commit once every sink shows the epoch; the next one begins."""
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
        self, w: World, run: Run, number: int, task: int, parts: Iterable[Part], files: int
    ) -> tuple[World, Literal["fenced", "written", "done"]]:
        """One transaction with a sink for one of its partitions; whole or not at all."""
        ledger, after = w.sinks[number].ledgers[run.ledger], w
        assert run.plan is not None
        for part in parts:
            if part == "fence" and ledger.generation != run.generation:
                return w, "fenced"
            if part == "compare" and ledger.epochs[task] > run.epoch:
                return w, "written"
            if part == "rows":
                after = _with_rows(after, number, task, (Row(run.plan, run.code),) * files)
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
        """May it write to Spark's logs and claim sinks? A zombie only if the lock is no lock."""
        return not run.is_zombie or self.case.is_lock_lost

    def _is_to_plan(self, run: Run) -> bool:
        is_started = run.begun == len(self.order_of_a_start())
        return is_started and not run.removals and run.plan is None

    def _all_tasks_done(self, run: Run) -> bool:
        return all(done == len(self.work_of_a_task()) for done in run.tasks)


def _has_entries(w: World, run: Run) -> bool:
    """Is every entry there that the checkpoint says was read, or is to be?"""
    return len(w.entries) >= max(w.finished, 0 if run.replans else w.planned)


def _put(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])


def with_run(w: World, at: int, run: Run) -> World:
    """The world with another state of one of its runs."""
    return replace(w, runs=(*w.runs[:at], run, *w.runs[at + 1 :]))


def without_run(w: World, at: int) -> World:
    """A run has ended; what holds the lock is found again by its new index."""
    holder = -1 if w.holder == at else w.holder - (w.holder > at)
    return replace(w, runs=(*w.runs[:at], *w.runs[at + 1 :]), holder=holder)


def _with_sink(w: World, number: int, sink: SinkState) -> World:
    return replace(w, sinks=(*w.sinks[:number], sink, *w.sinks[number + 1 :]))


def _with_ledger(w: World, number: int, name: int, ledger: Ledger) -> World:
    sink = w.sinks[number]
    ledgers = (*sink.ledgers[:name], ledger, *sink.ledgers[name + 1 :])
    return _with_sink(w, number, replace(sink, ledgers=ledgers))


def _with_rows(w: World, number: int, task: int, rows: tuple[Row, ...]) -> World:
    sink = w.sinks[number]
    shown = (*sink.shown[:task], (*sink.shown[task], *rows), *sink.shown[task + 1 :])
    return _with_sink(w, number, replace(sink, shown=shown))
