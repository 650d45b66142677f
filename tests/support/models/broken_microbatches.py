"""The micro-batch protocol with one rule broken, and the case in which it shows.

Each docstring is the sentence of docs/protocols.md: what goes wrong without the rule.
"""

from msgspec.structs import replace

from cutwater.semantics.protocols.microbatch import Case, Microbatches


class FenceIsNotChecked(Microbatches):
    """A zombie goes on beside its successor: what it writes for an epoch that was planned anew
    stands beside the new plan's rows.
    """

    case = Case(changes=("replan",), crashes=0)

    def transaction(self):
        return (("compare", "rows", "ledger"),)


class FenceIsCheckedBefore(Microbatches):
    """A zombie looks at the fence, sleeps while its successor claims, and then writes."""

    case = Case(changes=("replan",), crashes=0)

    def transaction(self):
        return (("fence",), ("compare", "rows", "ledger"))


class LedgerIsWrittenAfter(Microbatches):
    """A crash between rows and ledger: the replay does not know that the rows are there."""

    case = Case(records=1, partitions=1, zombies=0)

    def transaction(self):
        return (("fence", "compare", "rows"), ("ledger",))


class LedgerIsWrittenBefore(Microbatches):
    """A crash between ledger and rows: the replay takes for written what is not there."""

    case = Case(records=1, partitions=1, zombies=0)

    def transaction(self):
        return (("fence", "compare", "ledger"), ("rows",))


class LedgerIsNotCompared(Microbatches):
    """An attempt that is made again writes again."""

    case = Case(records=1, partitions=1, crashes=0, zombies=0, retries=1)

    def transaction(self):
        return (("fence", "rows", "ledger"),)


class AnotherLedgerIsAccepted(Microbatches):
    """A ledger of another name is empty: what is written is written again, and nobody is fenced."""

    case = Case(records=1, partitions=1, zombies=0, changes=("ledger",))

    def is_same_ledger(self, run):
        return True


class PlanIsRewritten(Microbatches):
    """The planner of a dead run writes its own plan over an entry: the next replay reads it."""

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
    """One epoch shows rows of the old code in one partition and of the new code in the other."""

    case = Case(records=1, zombies=0, changes=("code",))

    def may_finish(self, w, run):
        return True


class ReadsBeforeItClaims(Microbatches):
    """A zombie's row leaves after the ledgers were asked and before they are claimed."""

    case = Case(records=1, crashes=0, changes=("code",))

    def order_of_a_start(self):
        return ("generation", "settle", "claim")


class ReplansBeforeItClaims(Microbatches):
    """The same, and the epoch is planned anew though something of it has left."""

    case = Case(crashes=0, changes=("replan",))

    def order_of_a_start(self):
        return ("generation", "settle", "claim")


class ClaimsOneSinkLater(Microbatches):
    """A zombie writes to the sink that is not claimed yet, and the epoch is planned anew."""

    case = Case(partitions=1, sinks=("commit", "early"), crashes=0, changes=("replan",))

    def order_of_a_start(self):
        return ("generation", "claim", "settle", "claim")


class ReplansWhatHasLeft(Microbatches):
    """Rows of the old plan have left: the new plan stands beside it."""

    case = Case(zombies=0, changes=("replan",))

    def may_replan(self, w, run):
        return True


class AsksOneLedgerOnly(Microbatches):
    """What the first sink has shown is planned anew: only the last one was asked."""

    case = Case(partitions=1, sinks=("early", "early"), zombies=0, changes=("replan",))

    def asked(self, w, run):
        return w.sinks[-1:]


class RemovesTheEntryFirst(Microbatches):
    """A crash between the two: the offset log names an entry that is not there, and every later
    start is refused.
    """

    case = Case(records=1, partitions=1, crashes=2, zombies=0, changes=("replan",))

    def order_of_removal(self):
        return ("source log", "offset log")


class PublishesEveryAttempt(Microbatches):
    """What a failed attempt has staged is shown as well."""

    case = Case(records=1, partitions=1, sinks=("commit",), crashes=0, zombies=0, retries=1)

    def files_to_publish(self, run, task):
        return run.staged[task]


class FinishesBeforeItShows(Microbatches):
    """An epoch that is finished is never looked at again: nobody publishes it any more."""

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
    "reads before it claims": ReadsBeforeItClaims,
    "plans anew before it claims": ReplansBeforeItClaims,
    "claims one sink later": ClaimsOneSinkLater,
    "plans anew what has left": ReplansWhatHasLeft,
    "asks one ledger only": AsksOneLedgerOnly,
    "removes the entry before the offset": RemovesTheEntryFirst,
    "publishes every attempt": PublishesEveryAttempt,
    "finishes before it shows": FinishesBeforeItShows,
}
