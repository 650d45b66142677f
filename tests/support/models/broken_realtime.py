"""The real-time protocol with one rule left out, and the case in which it shows.

Each docstring is the sentence of docs/protocols.md: what goes wrong without the rule.
"""

from msgspec.structs import replace

from cutwater.semantics.protocols.realtime import RealTime
from cutwater.semantics.protocols.realtime_world import RealTimeCase


class IdlePartitionGoesOnBehindItself(RealTime):
    """A partition that was idle at the crash puts new records into a tick that is done: they are
    never shown.
    """

    case = RealTimeCase(records=(1, 1))

    def first_new_tick(self, w, run, number):
        own = [entry.tick for entry in w.plans[number].entries]
        return max([w.base, *own]) + 1


class LedgersAreNotAskedForK(RealTime):
    """An empty tick was released and stands in no plan. New records go into it: at ``t_last`` the
    digest stops the run, below it they would be dropped unseen.
    """

    case = RealTimeCase(records=(1,), idles=1)

    def newest_tick(self, w):
        return super().newest_tick(replace(w, sinks=tuple(replace(s, t_last=0) for s in w.sinks)))


class BarrierBeforeEntry(RealTime):
    """A tick is released of which no plan knows: its records come again in a later tick."""

    case = RealTimeCase(records=(1,))

    def may_send(self, reader):
        return True


class SnapshotWithAFrozenSink(RealTime):
    """Snapshot k counts while a sink stands before k: what it has not released is not replayed."""

    case = RealTimeCase(records=(1,))

    def counts(self, w, tick):
        return all(tick in dict(known.deltas) for known in w.snapshots)


class ReplayTakesThePlan(RealTime):
    """A crash during the recovery: what it was about to replay is in no plan any more."""

    case = RealTimeCase(records=(1,), crashes=2)

    def open_ticks(self, w, at):
        after = super().open_ticks(w, at)
        return after and replace(after, plans=tuple(replace(p, entries=()) for p in w.plans))


class OneLastTickForTheSink(RealTime):
    """What one sink partition has released is dropped in the other."""

    case = RealTimeCase(records=(1,), buckets=2, crashes=0)

    def is_released(self, w, number, tick):
        return tick <= max(sink.t_last for sink in w.sinks)


class TickLeavesInPieces(RealTime):
    """With its first piece ``t_last`` says that all of a tick has left: the rest is dropped."""

    case = RealTimeCase(records=(2,))

    def portions(self, row):
        if row is None or len(row.records) < 2:
            return (row,)
        first, rest = row.records[:1], row.records[1:]
        before = (*row.before, *((record, row.code) for record in first))
        return (replace(row, records=first), replace(row, before=before, records=rest))


class NewestSnapshotOfAny(RealTime):
    """A bucket that had not stored the tick goes on from an older state: nothing is replayed."""

    case = RealTimeCase(records=(2,), buckets=2)

    def recovery_tick(self, w):
        stored = [tick for known in w.snapshots for tick, _ in known.deltas]
        return max((tick for tick in stored if self.is_released_by_all(w, tick)), default=w.base)

    @staticmethod
    def is_released_by_all(w, tick):
        return all(sink.t_last >= tick for sink in w.sinks)


class StaleDeltasAreKept(RealTime):
    """A delta above the recovery tick is joined with one that is stored after it: its records are
    in the state twice.
    """

    case = RealTimeCase(records=(2,), crashes=2, idles=1)

    def void_deltas(self, known, base):
        return known


class NoEmptyDelta(RealTime):
    """A bucket without changes stores nothing: no tick is common, no batch can close and no plan
    can go.
    """

    case = RealTimeCase(records=(1,), buckets=2, crashes=0, idles=1)

    def has_delta(self, bucket):
        return len(bucket.state) > bucket.kept


class ReadsBeforeItFences(RealTime):
    """What a zombie plans after K was read and before the fence is not replayed, and not read
    again.
    """

    case = RealTimeCase(records=(1,), crashes=0, zombies=1)

    def order_of_a_start(self):
        return ("generation", "read", "fence plan", "fence snapshots", "fence sinks", "open")


class ZombieReaderAppends(RealTime):
    """A zombie's entry stands in the plan beside its successor's: the next replay has both."""

    case = RealTimeCase(records=(1,), crashes=1, zombies=1)

    def may_append(self, plan, run):
        return True


class ZombieBucketStores(RealTime):
    """A zombie stores an empty tick of its own under the number of a tick that has records: the
    state lacks them.
    """

    case = RealTimeCase(records=(2,), zombies=1, idles=1, is_start_hurried=True)
    search = "depth"  # the shortest run has 39 steps, too many to look at all that are shorter

    def may_store(self, known, run):
        return True


class ZombieSinkReleases(RealTime):
    """A zombie releases an empty tick: its successor's tick of that number is not the same, and
    the run stops; below ``t_last`` its records would be dropped unseen.
    """

    case = RealTimeCase(records=(1,), crashes=0, zombies=1, idles=1)

    def may_release(self, sink, run):
        return True


class EndOfBatchIsABarrier(RealTime):
    """A batch ends in the middle of a tick, and what has come is taken for all of it."""

    case = RealTimeCase(records=(1, 1), crashes=0, batches=1)

    def is_over(self, run, tick):
        return run.is_ending


class BarrierOfEachTick(RealTime):
    """An idle reader skips a barrier: the tick is waited for, for ever."""

    case = RealTimeCase(records=(1, 0), crashes=0, idles=2)

    def is_aligned(self, run, tick):
        return all(tick in reader.barriers for reader in self.senders(run))


class SendersThatWereHeard(RealTime):
    """A reader that was not heard of yet is not waited for: its records of the tick come late."""

    case = RealTimeCase(records=(1, 1), crashes=0)

    def senders(self, run):
        return tuple(reader for reader in run.readers if reader.barriers)


class SinksAreAtomic(RealTime):
    """An observer that expects every sink partition to show the same ticks is disappointed."""

    case = RealTimeCase(records=(1,), buckets=2, crashes=0, observer="equal prefixes")


class OtherCodeReplays(RealTime):
    """A tick shows rows of the old code in one sink partition and of the new code in the other."""

    case = RealTimeCase(records=(1,), buckets=2, changes=1)

    def may_replay(self, w, run, base):
        return True


class DigestIsNotCompared(RealTime):
    """Code that is not deterministic goes on from a state that is not the one it has shown."""

    case = RealTimeCase(records=(2,), is_pure=False)

    def is_same_digest(self, sink, tick, row):
        return True


BROKEN = {
    (1, "an idle partition goes on behind itself"): IdlePartitionGoesOnBehindItself,
    (1, "ledgers are not asked for K"): LedgersAreNotAskedForK,
    (2, "a barrier leaves before its entry"): BarrierBeforeEntry,
    (3, "a snapshot counts with a frozen sink"): SnapshotWithAFrozenSink,
    (3, "a replay takes the plan away"): ReplayTakesThePlan,
    (4, "one t_last for the whole sink"): OneLastTickForTheSink,
    (4, "a tick leaves in pieces"): TickLeavesInPieces,
    (5, "the newest snapshot of any bucket"): NewestSnapshotOfAny,
    (5, "stale deltas are kept"): StaleDeltasAreKept,
    (5, "no empty delta"): NoEmptyDelta,
    (6, "reads K before it fences"): ReadsBeforeItFences,
    (6, "a zombie reader appends"): ZombieReaderAppends,
    (6, "a zombie bucket stores"): ZombieBucketStores,
    (6, "a zombie sink releases"): ZombieSinkReleases,
    (7, "the end of a batch is taken for a barrier"): EndOfBatchIsABarrier,
    (8, "a barrier of each tick is waited for"): BarrierOfEachTick,
    (8, "only senders that were heard count"): SendersThatWereHeard,
    (9, "sink partitions are taken for atomic"): SinksAreAtomic,
    (10, "other code replays"): OtherCodeReplays,
    (10, "the digest is not compared"): DigestIsNotCompared,
}


class OpeningIsNotNoted(RealTime):
    """Rule 1's note "generation g starts at K + 1" left out."""

    def note_opening(self, w, run):
        return w


class SnapshotsAreNotAskedForK(RealTime):
    """Rule 1's K without the ticks of snapshots."""

    def newest_tick(self, w):
        return super().newest_tick(
            replace(w, snapshots=tuple(replace(known, deltas=()) for known in w.snapshots))
        )


REDUNDANT = {
    "the note that generation g starts at K + 1": OpeningIsNotNoted,
    "the ticks of snapshots in K": SnapshotsAreNotAskedForK,
}
