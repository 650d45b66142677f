"""The real-time protocol with one rule left out, and the case in which it shows.

Each docstring is the sentence of docs/protocols.md: what goes wrong without the rule.
"""

from msgspec.structs import replace

from cutwater.semantics.protocols.realtime import RealTime
from cutwater.semantics.protocols.realtime_world import RealTimeCase, put, through


class IdlePartitionReusesTicks(RealTime):
    """A partition that was idle before the crash puts new records into a tick that is already
    complete: they are never released.
    """

    case = RealTimeCase(records=(1, 1))

    def first_new_tick(self, w, run, number):
        own = [entry.tick for entry in w.plans[number].entries]
        return max([w.base, *own]) + 1


class KWithoutLedgers(RealTime):
    """An empty tick was released and has no plan entry. New records get its number: at ``t_last``
    the digest stops the run, below it they would be dropped as duplicates.
    """

    case = RealTimeCase(records=(1,), idles=1)

    def newest_tick(self, w):
        return super().newest_tick(replace(w, sinks=tuple(replace(s, t_last=0) for s in w.sinks)))


class BarrierBeforeEntry(RealTime):
    """A tick is released that has no plan entry: after the restart its records come again in a
    later tick.
    """

    case = RealTimeCase(records=(1,))

    def may_send(self, reader):
        return True


class SnapshotBeforeRelease(RealTime):
    """Snapshot k counts while a sink has not released tick k: the rows it has not released are not
    replayed.
    """

    case = RealTimeCase(records=(1,))

    def counts(self, w, tick):
        return all(tick in dict(known.deltas) for known in w.snapshots)


class ReplayDeletesThePlan(RealTime):
    """After a crash during the recovery, the ticks that were being replayed are in no plan."""

    case = RealTimeCase(records=(1,), crashes=2)

    def open_ticks(self, w, at):
        after = super().open_ticks(w, at)
        return after and replace(after, plans=tuple(replace(p, entries=()) for p in w.plans))


class OneLastTickForTheSink(RealTime):
    """Rows that one sink partition has released are dropped in the other, which has not released
    them.
    """

    case = RealTimeCase(records=(1,), buckets=2, crashes=0)

    def is_released(self, w, number, tick):
        return tick <= max(sink.t_last for sink in w.sinks)


class TickReleasedInPieces(RealTime):
    """With the first piece ``t_last`` marks the whole tick as released, so the rest is dropped."""

    case = RealTimeCase(records=(2,))

    def portions(self, row):
        if row is None or len(row.records) < 2:
            return (row,)
        first, rest = row.records[:1], row.records[1:]
        before = (*row.before, *((record, row.code) for record in first))
        return (replace(row, records=first), replace(row, before=before, records=rest))


class NewestSnapshotOfAny(RealTime):
    """A bucket that has not stored the tick restores an older state, and the ticks between are not
    replayed.
    """

    case = RealTimeCase(records=(2,), buckets=2)

    def recovery_tick(self, w):
        stored = [tick for known in w.snapshots for tick, _ in known.deltas]
        return max((tick for tick in stored if self.is_released_by_all(w, tick)), default=w.base)

    @staticmethod
    def is_released_by_all(w, tick):
        return all(sink.t_last >= tick for sink in w.sinks)


class StaleDeltasAreKept(RealTime):
    """A delta of a tick that was forgotten counts once an empty tick of its number is released: its
    records are in the state, and come again.
    """

    case = RealTimeCase(records=(1,), crashes=2)

    def void_deltas(self, known, base):
        return known


class NoEmptyDelta(RealTime):
    """A bucket without changes stores nothing: no tick is common to all buckets, so no snapshot
    counts and no plan is truncated.
    """

    case = RealTimeCase(records=(1,), buckets=2, crashes=0, idles=1)

    def has_delta(self, bucket):
        return len(bucket.state) > bucket.kept


class ReadsBeforeItFences(RealTime):
    """A zombie releases a tick after R was read and before the fence: the tick is forgotten, and
    its records come again in a later one.
    """

    case = RealTimeCase(records=(1,), crashes=0, zombies=1)

    def order_of_a_start(self):
        return ("generation", "read", "fence plan", "fence snapshots", "fence sinks", "open")


class ZombieReaderAppends(RealTime):
    """The plan has a zombie's entry as well as its successor's, and the next replay sends both."""

    case = RealTimeCase(records=(1,), crashes=1, zombies=1)

    def may_append(self, plan, run):
        return True


class ZombieBucketStores(RealTime):
    """A zombie stores its own empty tick under the number of a tick that has records: the restored
    state lacks them.
    """

    case = RealTimeCase(records=(2,), zombies=1, idles=1, is_start_hurried=True)
    search = "depth"  # the shortest run has 39 steps, too many to look at all that are shorter

    def may_store(self, known, run):
        return True


class ZombieSinkReleases(RealTime):
    """A zombie releases a tick that its successor forgets: its records come again later."""

    case = RealTimeCase(records=(1,), crashes=0, zombies=1)

    def may_release(self, sink, run):
        return True


class EndOfBatchIsABarrier(RealTime):
    """A batch ends in the middle of a tick, and what has arrived counts as the whole tick."""

    case = RealTimeCase(records=(1, 1), crashes=0, batches=1)

    def is_over(self, run, tick):
        return run.is_ending


class CutOffReplayPromisesAll(RealTime):
    """The end of a batch cuts off a replay, and the last barrier covers planned ticks that were not
    sent: later ticks are released without their records.
    """

    case = RealTimeCase(records=(1, 1), crashes=0, batches=2)

    def may_promise(self, reader):
        return reader.unwritten is None


class LastBarrierBeforeEntry(RealTime):
    """The last barrier covers a tick whose entry is not durable: after the restart its records come
    again in a later tick.
    """

    case = RealTimeCase(records=(1, 1), crashes=0, batches=1)

    def may_promise(self, reader):
        return not reader.unsent


class BarrierOfEachTick(RealTime):
    """An idle reader skips the barrier of a tick, and the bucket waits for it for ever."""

    case = RealTimeCase(records=(1, 0), crashes=0, idles=2)

    def is_aligned(self, run, tick):
        return all(tick in reader.barriers for reader in self.senders(run))


class OnlySendersSoFar(RealTime):
    """A bucket does not wait for a reader that has sent nothing yet: its records of the tick arrive
    too late.
    """

    case = RealTimeCase(records=(1, 1), crashes=0)

    def senders(self, run):
        return tuple(reader for reader in run.readers if reader.barriers)


class SinksAreAtomic(RealTime):
    """An observer that requires all sink partitions to show the same ticks sees them differ."""

    case = RealTimeCase(records=(1,), buckets=2, crashes=0, observer="equal prefixes")


class OtherCodeReplays(RealTime):
    """In one tick, one sink partition shows rows of the old code and the other rows of the new
    code.
    """

    case = RealTimeCase(records=(1,), buckets=2, changes=1)

    def may_replay(self, w, run, base):
        return True


class DigestIsNotCompared(RealTime):
    """Code that is not deterministic continues from a state that its released rows contradict."""

    case = RealTimeCase(records=(2,), is_pure=False)

    def is_same_digest(self, sink, tick, row):
        return True


class ReleasedTicksAreForgotten(RealTime):
    """All ticks behind the snapshot are forgotten: the records of a released one come again in a
    later one.
    """

    case = RealTimeCase(records=(1,))

    def forget_unreleased(self, w, run):
        return replace(w, plans=tuple(through(plan, run.base) for plan in w.plans))


class ROfEverySink(RealTime):
    """A tick is forgotten that one sink partition has released and another has not: the first one
    shows its records twice.
    """

    case = RealTimeCase(records=(1,), buckets=2)

    def newest_released(self, w):
        least = min(sink.t_last for sink in w.sinks)
        return super().newest_released(
            replace(w, sinks=tuple(replace(sink, t_last=least) for sink in w.sinks))
        )


class NewTicksBehindR(RealTime):
    """An empty tick behind R was released. New records get its number: at ``t_last`` the digest
    stops the run, below it they would be dropped as duplicates.
    """

    case = RealTimeCase(records=(1,), idles=1)

    def first_new_tick(self, w, run, number):
        return run.released + 1


BROKEN = {
    (1, "an idle partition reuses tick numbers"): IdlePartitionReusesTicks,
    (1, "K is read without the ledgers"): KWithoutLedgers,
    (2, "a barrier is sent before its entry"): BarrierBeforeEntry,
    (3, "a snapshot counts before its release"): SnapshotBeforeRelease,
    (3, "a replay deletes the plan"): ReplayDeletesThePlan,
    (4, "one t_last for the whole sink"): OneLastTickForTheSink,
    (4, "a tick is released in pieces"): TickReleasedInPieces,
    (5, "the newest snapshot of any bucket"): NewestSnapshotOfAny,
    (5, "stale deltas are kept"): StaleDeltasAreKept,
    (5, "no empty delta"): NoEmptyDelta,
    (6, "reads K before it fences"): ReadsBeforeItFences,
    (6, "a zombie reader appends"): ZombieReaderAppends,
    (6, "a zombie bucket stores"): ZombieBucketStores,
    (6, "a zombie sink releases"): ZombieSinkReleases,
    (7, "the end of a batch counts as a barrier"): EndOfBatchIsABarrier,
    (7, "a replay that was cut off promises all of it"): CutOffReplayPromisesAll,
    (7, "the last barrier is sent before its entry"): LastBarrierBeforeEntry,
    (8, "a barrier of each tick is waited for"): BarrierOfEachTick,
    (8, "only senders that have sent are waited for"): OnlySendersSoFar,
    (9, "sink partitions are expected to be atomic"): SinksAreAtomic,
    (10, "other code replays"): OtherCodeReplays,
    (10, "the digest is not compared"): DigestIsNotCompared,
    (11, "released ticks are forgotten too"): ReleasedTicksAreForgotten,
    (11, "R is what every sink has released"): ROfEverySink,
    (11, "new ticks begin behind R"): NewTicksBehindR,
}


class OpeningIsNotNoted(RealTime):
    """Rule 1's note "generation g starts at K + 1" left out."""

    def note_opening(self, w, run):
        return w


class KWithoutSnapshots(RealTime):
    """Rule 1's K without the ticks of snapshots."""

    def newest_tick(self, w):
        return super().newest_tick(
            replace(w, snapshots=tuple(replace(known, deltas=()) for known in w.snapshots))
        )


class OneSourceForgets(RealTime):
    """Rule 11 for the first source only: the others replay all that they have planned."""

    def forget_unreleased(self, w, run):
        return replace(w, plans=put(w.plans, 0, through(w.plans[0], run.released)))


class PlanIsFencedLate(RealTime):
    """Rule 6 without the fence of the plan before K and R are read; they open in the next step."""

    def order_of_a_start(self):
        return ("generation", "fence snapshots", "fence sinks", "read", "fence plan", "open")


REDUNDANT = {
    "the note that generation g starts at K + 1": OpeningIsNotNoted,
    "the ticks of snapshots in K": KWithoutSnapshots,
    "that all sources forget": OneSourceForgets,
    "that the plan is fenced before it is read": PlanIsFencedLate,
}
