"""Recovery task by task with one rule broken, and snapshots that are taken another way.

Each docstring is the sentence of docs/protocols.md: what goes wrong without the rule.
"""

from cutwater.semantics.recovering.cuts import MEETING, PIPELINE, Barriers, ChandyLamport
from cutwater.semantics.recovering.one_by_one import RecoveryCase, RecoveryRules

ONE_EPOCH = RecoveryCase(epochs=(("a", "x"),), crashes=0, mistakes=1)
ONE_SOURCE = RecoveryCase(epochs=(("a", None), ("b", None)), crashes=0, mistakes=1)


class OldMessagesAreTaken(RecoveryRules):
    """What was under way before the recovery comes beside what is replayed."""

    case = ONE_EPOCH

    def verdict(self, task, message):
        return "take" if message.generation <= task.generation else "wait"


class NewMessagesAreDropped(RecoveryRules):
    """A task that has not recovered yet drops what is replayed, and nobody sends it again."""

    case = ONE_EPOCH

    def verdict(self, task, message):
        return "take" if message.generation == task.generation else "drop"


class GenerationIsNotSent(RecoveryRules):
    """Replayed messages count as old and are dropped."""

    case = ONE_EPOCH

    def stamp(self, task):
        return 1


class OldSnapshotsCount(RecoveryRules):
    """An epoch is committed to which some tasks have gone back, and others have not."""

    case = ONE_SOURCE

    def counts(self, stored, coordinator):
        return True


class OnlyTheCrashedRecover(RecoveryRules):
    """The sources are not asked to replay what the crashed task had taken."""

    case = RecoveryCase(epochs=(("a", "x"),), crashes=1, mistakes=0)

    def must_recover(self, task, coordinator):
        return not task.is_up and task.generation < coordinator.generation


RECOVERIES = {
    "old messages are taken": OldMessagesAreTaken,
    "new messages are dropped": NewMessagesAreDropped,
    "the generation is not sent": GenerationIsNotSent,
    "snapshots of an old generation count": OldSnapshotsCount,
    "only what crashed recovers": OnlyTheCrashedRecover,
}


class MessagesUnderWayAreNotKept(ChandyLamport):
    """What was sent before the snapshot and received after it is lost in a crash."""

    system = PIPELINE

    def keeps(self, process, channel):
        return False


class ChannelsAreNotBlocked(Barriers):
    """What came behind the first barrier is in the snapshot, and is sent once more."""

    system = MEETING

    def is_blocked(self, process, channel):
        return False


class FirstBarrierTakesTheSnapshot(Barriers):
    """What the other source sent before its barrier is not in the snapshot, and is lost."""

    system = MEETING

    def is_due(self, system, number, process):
        return True


CUTS = {
    "messages under way are not kept": MessagesUnderWayAreNotKept,
    "channels are not blocked": ChannelsAreNotBlocked,
    "the first barrier takes the snapshot": FirstBarrierTakesTheSnapshot,
}
