"""The micro-batch protocol with one rule broken, and the case in which it shows.

Each docstring is the sentence of docs/protocols.md: what goes wrong without the rule.
"""

from msgspec.structs import replace

from cutwater.semantics.protocols.microbatch import Case, Microbatches


class FenceIsNotChecked(Microbatches):
    """A zombie's task writes an epoch after its successor has replanned it: the sink shows rows of
    both plans.
    """

    case = Case(changes=("replan",), crashes=0)

    def transaction(self):
        return (("compare", "rows", "ledger"),)


class FenceIsCheckedBefore(Microbatches):
    """A zombie checks the fence, pauses while its successor claims the sink, and then writes."""

    case = Case(changes=("replan",), crashes=0)

    def transaction(self):
        return (("fence",), ("compare", "rows", "ledger"))


class LedgerIsWrittenAfter(Microbatches):
    """After a crash between rows and ledger entry, the replay finds no entry and writes the rows
    again.
    """

    case = Case(records=1, partitions=1, zombies=0)

    def transaction(self):
        return (("fence", "compare", "rows"), ("ledger",))


class LedgerIsWrittenBefore(Microbatches):
    """After a crash between ledger entry and rows, the replay finds the entry and drops rows."""

    case = Case(records=1, partitions=1, zombies=0)

    def transaction(self):
        return (("fence", "compare", "ledger"), ("rows",))


class LedgerIsNotCompared(Microbatches):
    """A retried task writes its rows a second time."""

    case = Case(records=1, partitions=1, crashes=0, zombies=0, retries=1)

    def transaction(self):
        return (("fence", "rows", "ledger"),)


class AnotherLedgerIsAccepted(Microbatches):
    """The other ledger is empty: released rows are written again, and no run is fenced."""

    case = Case(records=1, partitions=1, zombies=0, changes=("ledger",))

    def is_same_ledger(self, run):
        return True


class PlanIsRewritten(Microbatches):
    """The planner of a zombie overwrites an entry with its own plan, and the next replay reads
    that.
    """

    case = Case()

    def append_entry(self, w, at, size):
        run = w.runs[at]
        if not run.is_zombie:
            return super().append_entry(w, at, size)
        after = super().append_entry(replace(w, entries=w.entries[: run.epoch]), at, size)
        if after is None:
            return None
        return replace(after, entries=(*after.entries, *w.entries[run.epoch + 1 :]))


class OtherCodeFinishes(Microbatches):
    """In one epoch, one partition shows rows of the old code and the other rows of the new code."""

    case = Case(records=1, zombies=0, changes=("code",))

    def may_finish(self, w, run):
        return True


class ReadsBeforeItClaims(Microbatches):
    """A zombie releases a row after the ledgers were read and before they are claimed."""

    case = Case(records=1, crashes=0, changes=("code",))

    def order_of_a_start(self):
        return ("generation", "settle", "claim")


class ReplansBeforeItClaims(Microbatches):
    """A zombie releases rows of an epoch after the ledgers were read, and it is replanned."""

    case = Case(crashes=0, changes=("replan",))

    def order_of_a_start(self):
        return ("generation", "settle", "claim")


class ClaimsOneSinkLater(Microbatches):
    """A zombie writes to the sink that is not yet claimed, and the epoch is replanned."""

    case = Case(partitions=1, sinks=("commit", "early"), crashes=0, changes=("replan",))

    def order_of_a_start(self):
        return ("generation", "claim", "settle", "claim")


class ReplansReleasedEpoch(Microbatches):
    """Rows of the old plan are already released: the sink shows rows of both plans."""

    case = Case(zombies=0, changes=("replan",))

    def may_replan(self, w, run):
        return True


class ChecksOneLedgerOnly(Microbatches):
    """Only the last sink's ledger is checked, and the epoch is replanned although the first sink
    has released rows of it.
    """

    case = Case(partitions=1, sinks=("early", "early"), zombies=0, changes=("replan",))

    def asked(self, w, run):
        return w.sinks[-1:]


class RemovesTheEntryFirst(Microbatches):
    """A crash between the two steps leaves an offset that names a missing entry, and every later
    start is refused.
    """

    case = Case(records=1, partitions=1, crashes=2, zombies=0, changes=("replan",))

    def order_of_removal(self):
        return ("source log", "offset log")


class PublishesEveryAttempt(Microbatches):
    """Rows that a failed attempt staged are published as well."""

    case = Case(records=1, partitions=1, sinks=("commit",), crashes=0, zombies=0, retries=1)

    def files_to_publish(self, run, task):
        return run.staged[task]


class FinishesBeforeItPublishes(Microbatches):
    """The epoch counts as finished before it is published, so no later start publishes it."""

    case = Case(records=1, partitions=1, sinks=("commit",), zombies=0)

    def is_shown(self, run):
        return self._all_tasks_done(run)


BROKEN = {
    "the fence is not checked": FenceIsNotChecked,
    "the fence is checked before the transaction": FenceIsCheckedBefore,
    "the ledger is written after the rows": LedgerIsWrittenAfter,
    "the ledger is written before the rows": LedgerIsWrittenBefore,
    "the ledger is not compared": LedgerIsNotCompared,
    "another ledger is accepted": AnotherLedgerIsAccepted,
    "a plan is rewritten": PlanIsRewritten,
    "other code finishes a half-released epoch": OtherCodeFinishes,
    "reads the ledgers before it claims": ReadsBeforeItClaims,
    "replans before it claims": ReplansBeforeItClaims,
    "claims one sink later": ClaimsOneSinkLater,
    "replans a released epoch": ReplansReleasedEpoch,
    "checks one ledger only": ChecksOneLedgerOnly,
    "removes the entry before the offset": RemovesTheEntryFirst,
    "publishes every attempt": PublishesEveryAttempt,
    "finishes before it publishes": FinishesBeforeItPublishes,
}
