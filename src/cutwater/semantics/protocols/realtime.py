"""The protocol of a real-time run: plans, barriers, ticks, ledgers, snapshots, generations.

====  ==========================================  =========================================
rule  what it says (``docs/protocols.md``)        here
====  ==========================================  =========================================
1     replay as planned; new ticks after K        `newest_tick`, `first_new_tick`, `open_ticks`
2     a barrier is sent after its durable entry    `may_send`
3     when a snapshot counts, and plan may go     `counts`, `complete`
4     ``t_last`` per sink partition, whole ticks  `is_released`, `portions`
5     one common tick; deltas above it are void   `recovery_tick`, `void_deltas`, `has_delta`
6     fence first, then read K                    `order_of_a_start`, `may_append`, `may_store`,
                                                  `may_release`
7     a batch ends at a tick, or it recovers      `is_over`, `promise`, `may_promise`, `close`
8     aligned is a frontier over all senders      `is_aligned`, `senders`
9     sinks are not atomic with each other        the observer: `shows_one_run`
10    the fingerprint, and a digest in t_last     `may_replay`, `is_same_digest`
11    what is behind R is forgotten, at once      `newest_released`, `forget_unreleased`
====  ==========================================  =========================================

In the engine, `replay` to `promise` are the reader and `work` the operator of ``spark/realtime``;
`store` is ``spark/state``, `release` ``spark/connectors``, a start ``spark/recovery.py``; plans and
fences are in ``spark/checkpoint``. `open_ticks` is ``open_generation``: there a generation gets
plans of its own instead of a fence, so what a zombie adds to the old ones is not read; here the
plan is one, and fenced. `read` is one step; the engine copies the snapshots, reads the plans, and
copies again if a zombie has compacted a plan in between. A reader is
``spark/realtime/readers/reader_task.py``:

============================================  ======================================================
here                                          ``ReaderTask``
============================================  ======================================================
`replay`: one planned entry                   ``_replay``, ``_send``; backpressure decides when
`send` of K, once all of them are sent        the barrier at the end of ``_replay``
`cut`, `append_entry`, `send`; `idle`         ``_cut``, ``_send``; ``_step``
`promise`, up to `newest_planned`             the last barrier of ``_rows``, ``Opening.planned``
`may_promise`                                 ``_replay`` returns False if the batch cut it off
============================================  ======================================================

A *zombie* is a whole run, readers, buckets and coordinator, that continues beside its successor: no
lock is assumed. A fence and the write it guards are one step.

What is not modelled: the network between readers and buckets (a barrier and what comes before it
arrive at once); partitions that come and go; several levels; backpressure, how far readers run
ahead and how many barriers there are (rule 8: memory and cost, not meaning; a batch may end before
any step of a replay); the barriers that readers send after a stop request, which close later,
empty ticks; watermarks, which are decisions that stand in an entry like records, and the decision
where a source begins, which is never forgotten.
"""

from __future__ import annotations

from msgspec.structs import replace

from cutwater.semantics.protocols.realtime_world import (
    Bucket,
    BucketSnapshots,
    Entry,
    PartitionPlan,
    Reader,
    RealTimeCase,
    RealTimeRun,
    RealTimeWorld,
    SinkPartition,
    State,
    TickRow,
    fenced_before,
    next_tick,
    put,
    records_between,
    through,
    with_bucket,
    with_reader,
    with_run,
    without_run,
)

__all__ = ["RealTime"]


class RealTime:
    """The protocol. A variant overrides the one rule that it breaks.

    A rule is given the world and the index of a run; it returns the world after the step, or None
    if the step is not possible.
    """

    def __init__(self, case: RealTimeCase) -> None:
        self.case = case

    # -- starting; the same after a crash, after the end of a batch, and for the first time

    def order_of_a_start(self) -> tuple[str, ...]:
        """Rule 6: fence plan, snapshots and sinks; then read K. Rule 1: then open."""
        return ("generation", "fence plan", "fence snapshots", "fence sinks", "read", "open")

    def take_generation(self, w: RealTimeWorld, at: int) -> RealTimeWorld | None:
        """Take a generation above every one before."""
        # PREMISE
        run = w.runs[at]
        if self._next_step(run) != "generation":
            return None
        # RESULT
        run = replace(run, generation=w.generation + 1, begun=run.begun + 1)
        return with_run(replace(w, generation=w.generation + 1), at, run)

    def fence(self, w: RealTimeWorld, at: int) -> RealTimeWorld | None:
        """Rule 6: write the generation where earlier runs check before they write."""
        # PREMISE
        run = w.runs[at]
        what = self._next_step(run)
        if not what.startswith("fence"):
            return None
        # STATE
        mine = run.generation
        if what == "fence plan":
            w = replace(w, plans=fenced_before(w.plans, mine))
        elif what == "fence snapshots":
            w = replace(w, snapshots=fenced_before(w.snapshots, mine))
        else:
            w = replace(w, sinks=fenced_before(w.sinks, mine))
        # RESULT
        return with_run(w, at, replace(run, begun=run.begun + 1))

    def newest_tick(self, w: RealTimeWorld) -> int:
        """Rule 1: K, the largest tick in any plan, snapshot or ledger."""
        planned = [entry.tick for plan in w.plans for entry in plan.entries]
        stored = [tick for known in w.snapshots for tick, _ in known.deltas]
        released = [sink.t_last for sink in w.sinks]
        return max(w.base, w.opened, *planned, *stored, *released)

    def newest_released(self, w: RealTimeWorld) -> int:
        """Rule 11: R, the newest tick that the snapshot has, or of which any sink has something."""
        newest = max(sink.t_last for sink in w.sinks)
        planned = (entry.tick for plan in w.plans for entry in plan.entries)
        return max([self.recovery_tick(w), *(tick for tick in planned if tick <= newest)])

    def recovery_tick(self, w: RealTimeWorld) -> int:
        """Rule 5: the newest tick that every bucket has stored, if it counts (rule 3)."""
        stored = [{tick for tick, _ in known.deltas} for known in w.snapshots]
        common = set.intersection(*stored)
        return max((tick for tick in common if self.counts(w, tick)), default=w.base)

    def restored(self, w: RealTimeWorld, bucket: int, base: int) -> State:
        """Rule 5: the state of a bucket at the recovery tick."""
        deltas = w.snapshots[bucket].deltas
        return tuple(item for tick, delta in deltas if tick <= base for item in delta)

    def void_deltas(self, known: BucketSnapshots, base: int) -> BucketSnapshots:
        """Rule 5: deltas above the recovery tick are void."""
        return replace(known, deltas=tuple(kept for kept in known.deltas if kept[0] <= base))

    def may_replay(self, w: RealTimeWorld, run: RealTimeRun, base: int) -> bool:
        """Rule 10: ticks that were released in part are replayed by the flow that released them."""
        return run.code == w.code or self.newest_released(w) <= base

    def read(self, w: RealTimeWorld, at: int) -> RealTimeWorld | None:
        """Rules 1, 5, 10, 11: find K, R and the snapshot to restore, or refuse."""
        # PREMISE
        run = w.runs[at]
        if self._next_step(run) != "read" or run.generation < w.generation:
            return None
        base, newest = self.recovery_tick(w), self.newest_tick(w)
        if not self.may_replay(w, run, base):
            return without_run(w, at)
        # STATE
        snapshots = tuple(self.void_deltas(known, base) for known in w.snapshots)
        released = self.newest_released(w)
        run = replace(run, begun=run.begun + 1, newest=newest, released=released, base=base)
        # RESULT
        return with_run(replace(w, snapshots=snapshots, code=run.code), at, run)

    def open_ticks(self, w: RealTimeWorld, at: int) -> RealTimeWorld | None:
        """Rules 1, 11: in one step, the generation starts at K + 1, and plans end at R."""
        # PREMISE
        run = w.runs[at]
        if self._next_step(run) != "open" or run.generation < w.generation:
            return None
        # STATE
        w = self.forget_unreleased(w, run)
        readers = tuple(self._reader(w, run, number) for number in range(len(w.plans)))
        buckets = []
        for number in range(self.case.buckets):
            state = self.restored(w, number, run.base)
            buckets.append(Bucket(run.base, state, len(state)))
        # RESULT
        run = replace(run, begun=run.begun + 1, readers=readers, buckets=tuple(buckets))
        return with_run(self.note_opening(w, run), at, run)

    def note_opening(self, w: RealTimeWorld, run: RealTimeRun) -> RealTimeWorld:
        """Rule 1: record K, so that it can never fall below this again."""
        return replace(w, opened=max(w.opened, run.newest))

    def forget_unreleased(self, w: RealTimeWorld, run: RealTimeRun) -> RealTimeWorld:
        """Rule 11: ticks behind R go from the plans of all sources; their records come anew."""
        return replace(w, plans=tuple(through(plan, run.released) for plan in w.plans))

    def first_new_tick(self, w: RealTimeWorld, run: RealTimeRun, number: int) -> int:
        """Rule 1: new records go into ticks after K, in every source partition."""
        return run.newest + 1

    def _reader(self, w: RealTimeWorld, run: RealTimeRun, number: int) -> Reader:
        """Rule 1: a reader that replays what its plan has kept; no entry means an empty tick."""
        entries = w.plans[number].entries
        position = max([w.positions[number], *(entry.end for entry in entries)])
        replayed = tuple(entry for entry in entries if entry.tick > run.base)
        tick = self.first_new_tick(w, run, number) - 1
        return Reader(tick, position, unsent=replayed)

    # -- readers

    def replay(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """Rule 1: a reader sends the next planned tick of its replay."""
        # PREMISE
        run = w.runs[at]
        if not self._is_open(run, number) or not run.readers[number].unsent:
            return None
        # STATE
        reader = run.readers[number]
        entry, *unsent = reader.unsent
        rows, barriers = (*reader.rows, entry), (*reader.barriers, entry.tick)
        # RESULT
        reader = replace(reader, unsent=tuple(unsent), rows=rows, barriers=barriers)
        return with_run(w, at, with_reader(run, number, reader))

    def cut(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """A reader closes a tick with the records that have arrived."""
        # PREMISE
        run = w.runs[at]
        if not self._is_reading(run, number):
            return None
        reader, arrived = run.readers[number], w.arrived[number]
        if reader.unwritten or arrived == reader.position:
            return None
        # STATE
        entry = Entry(reader.tick + 1, reader.position, arrived)
        rows = (*reader.rows, entry)
        # RESULT
        reader = replace(reader, tick=entry.tick, position=arrived, unwritten=entry, rows=rows)
        return with_run(w, at, with_reader(run, number, reader))

    def idle(self, w: RealTimeWorld, at: int, number: int, ahead: int) -> RealTimeWorld | None:
        """An idle reader skips ticks: up to where the others are, or ahead of them."""
        # PREMISE
        run = w.runs[at]
        if not self._is_reading(run, number) or (ahead and not w.idles):
            return None
        reader = run.readers[number]
        is_idle = reader.unwritten is None and w.arrived[number] == reader.position
        newest = max(other.tick for other in run.readers)
        tick = reader.tick + ahead if ahead else newest
        if not is_idle or tick <= reader.tick:
            return None
        # RESULT
        run = with_reader(run, number, replace(reader, tick=tick))
        return with_run(replace(w, idles=w.idles - bool(ahead)), at, run)

    def may_append(self, plan: PartitionPlan, run: RealTimeRun) -> bool:
        """Rule 6: a fenced reader appends nothing to the plan."""
        return plan.generation <= run.generation

    def append_entry(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """Rule 2: the entry of a tick is made durable."""
        # PREMISE
        run = w.runs[at]
        reader = run.readers[number] if self._is_reading(run, number) else None
        if reader is None or reader.unwritten is None:
            return None
        plan = w.plans[number]
        if not self.may_append(plan, run):
            return None
        # STATE
        entries = tuple(sorted((*plan.entries, reader.unwritten)))
        # RESULT
        plans = put(w.plans, number, replace(plan, entries=entries))
        run = with_reader(run, number, replace(reader, unwritten=None))
        return with_run(replace(w, plans=plans), at, run)

    def may_send(self, reader: Reader) -> bool:
        """Rule 2: a barrier is sent only when the entry of its tick is durable."""
        return reader.unwritten is None

    def send(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """A reader sends the barrier of its newest tick, behind all rows up to it."""
        # PREMISE
        run = w.runs[at]
        if not self._is_reading(run, number):
            return None
        reader = run.readers[number]
        if reader.tick in (0, *reader.barriers) or not self.may_send(reader):
            return None
        # RESULT
        reader = replace(reader, barriers=(*reader.barriers, reader.tick))
        return with_run(w, at, with_reader(run, number, reader))

    # -- buckets

    def senders(self, run: RealTimeRun) -> tuple[Reader, ...]:
        """Rule 8: every reader of the tick sends, by the plan and not by who was heard."""
        return run.readers

    def is_aligned(self, run: RealTimeRun, tick: int) -> bool:
        """Rule 8: the least of the last barriers of all senders has passed the tick."""
        return all(max(reader.barriers, default=0) >= tick for reader in self.senders(run))

    def is_over(self, run: RealTimeRun, tick: int) -> bool:
        """Rule 7: the end of a batch closes no tick; a bucket works on whole ticks only."""
        return False

    def work(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """A bucket processes the next tick, in the order of source partition and position."""
        # PREMISE
        run = w.runs[at]
        if not run.buckets or run.buckets[number].pending:
            return None
        bucket = run.buckets[number]
        tick = next_tick(run, bucket.worked)
        if tick is None or not (self.is_aligned(run, tick) or self.is_over(run, tick)):
            return None
        # STATE
        records = records_between(run, bucket.worked, tick)
        code = run.code if self.case.is_pure else f"{run.code}{run.generation}"
        row = TickRow(bucket.state, records, code) if records else None
        state = (*bucket.state, *((record, code) for record in records))
        pending = tuple((tick, portion) for portion in self.portions(row))
        # RESULT
        bucket = replace(bucket, worked=tick, state=state, pending=pending)
        return with_run(w, at, with_bucket(run, number, bucket))

    def portions(self, row: TickRow | None) -> tuple[TickRow | None, ...]:
        """Rule 4: a tick is released in one transaction."""
        return (row,)

    def may_release(self, sink: SinkPartition, run: RealTimeRun) -> bool:
        """Rule 6: a fenced bucket releases nothing."""
        return sink.generation <= run.generation

    def is_released(self, w: RealTimeWorld, number: int, tick: int) -> bool:
        """Rule 4: what is at or below the ``t_last`` of the sink partition is dropped."""
        return tick <= w.sinks[number].t_last

    def is_same_digest(self, sink: SinkPartition, tick: int, row: TickRow | None) -> bool:
        """Rule 10: what is dropped at ``t_last`` is what was released."""
        return tick != sink.t_last or row == sink.digest

    def release(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """A tick is released in one transaction with ``t_last``; a replayed one is dropped."""
        # PREMISE
        run = w.runs[at]
        if not run.buckets or not run.buckets[number].pending:
            return None
        sink, bucket = w.sinks[number], run.buckets[number]
        if not self.may_release(sink, run):
            return None
        # STATE
        (tick, row), *rest = bucket.pending
        bucket = replace(bucket, pending=tuple(rest))
        after = with_run(w, at, with_bucket(run, number, bucket))
        if self.is_released(w, number, tick):
            if not self.is_same_digest(sink, tick, row):
                return replace(without_run(w, at), is_stopped=True)
            return after
        sink = replace(sink, t_last=tick, digest=row, shown=(*sink.shown, *([row] if row else [])))
        # RESULT
        return replace(after, sinks=put(after.sinks, number, sink))

    # -- snapshots

    def may_store(self, known: BucketSnapshots, run: RealTimeRun) -> bool:
        """Rule 6: a fenced bucket stores nothing."""
        return known.generation <= run.generation

    def has_delta(self, bucket: Bucket) -> bool:
        """Rule 5: a bucket without changes writes an empty delta."""
        return True

    def store(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """A bucket stores what changed up to the tick it has worked on; sinks may be behind."""
        # PREMISE
        run, known = w.runs[at], w.snapshots[number]
        if not run.buckets or not self.may_store(known, run):
            return None
        bucket = run.buckets[number]
        stored = [tick for tick, _ in known.deltas]
        if bucket.worked <= run.base or bucket.worked in stored or not self.has_delta(bucket):
            return None
        # STATE
        delta = (bucket.worked, bucket.state[bucket.kept :])
        deltas = tuple(sorted((*known.deltas, delta)))
        # RESULT
        after = replace(w, snapshots=put(w.snapshots, number, replace(known, deltas=deltas)))
        bucket = replace(bucket, kept=len(bucket.state))
        return with_run(after, at, with_bucket(run, number, bucket))

    def counts(self, w: RealTimeWorld, tick: int) -> bool:
        """Rule 3: every bucket has stored it, and every sink partition has released through it."""
        is_stored = all(tick in dict(known.deltas) for known in w.snapshots)
        return is_stored and all(sink.t_last >= tick for sink in w.sinks)

    def complete(self, w: RealTimeWorld, at: int) -> RealTimeWorld | None:
        """Rule 3: the coordinator records that a snapshot counts, and truncates the plan."""
        # PREMISE
        run = w.runs[at]
        tick = self.recovery_tick(w)
        if not run.buckets or tick <= w.base:
            return None
        if not all(self.may_append(plan, run) for plan in w.plans):
            return None
        # STATE
        positions, plans = [], []
        for position, plan in zip(w.positions, w.plans, strict=True):
            gone = [entry.end for entry in plan.entries if entry.tick <= tick]
            kept = tuple(entry for entry in plan.entries if entry.tick > tick)
            positions.append(max([position, *gone]))
            plans.append(replace(plan, entries=kept))
        # RESULT
        return replace(w, base=tick, positions=tuple(positions), plans=tuple(plans))

    # -- the end of a batch

    def newest_planned(self, run: RealTimeRun) -> int:
        """The newest tick that any reader of the run has planned: its entry is durable."""
        return max(
            (
                entry.tick
                for reader in run.readers
                for entry in reader.rows
                if entry != reader.unwritten
            ),
            default=0,
        )

    def may_promise(self, reader: Reader) -> bool:
        """Rule 7: a reader promises no tick while anything that it planned is unsent."""
        return not reader.unsent and reader.unwritten is None

    def promise(self, w: RealTimeWorld, at: int, number: int) -> RealTimeWorld | None:
        """Rule 7: as the batch ends, a reader sends one last barrier, so that whole ticks close."""
        # PREMISE
        run = w.runs[at]
        if not run.is_ending or not self._is_open(run, number):
            return None
        reader = run.readers[number]
        if not self.may_promise(reader):
            return None
        # STATE
        tick = max(self.newest_planned(run), *reader.barriers, 0)
        # RESULT
        reader = replace(reader, barriers=(*reader.barriers, tick), has_ended=True)
        return with_run(w, at, with_reader(run, number, reader))

    def close(self, w: RealTimeWorld, at: int) -> RealTimeWorld | None:
        """Rule 7: Spark ended the batch. Complete ticks are finished; the next start recovers."""
        # PREMISE
        run = w.runs[at]
        if not run.is_ending:
            return None
        # RESULT
        return without_run(w, at)

    # -- what the rules share

    def _next_step(self, run: RealTimeRun) -> str:
        order = self.order_of_a_start()
        return order[run.begun] if run.begun < len(order) else ""

    @staticmethod
    def _is_open(run: RealTimeRun, number: int) -> bool:
        return bool(run.readers) and not run.readers[number].has_ended

    def _is_reading(self, run: RealTimeRun, number: int) -> bool:
        """Has the reader sent all of its replay, and not yet its last barrier?"""
        return self._is_open(run, number) and not run.readers[number].unsent
