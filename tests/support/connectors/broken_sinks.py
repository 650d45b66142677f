"""A sink in memory that keeps all laws of sinks, and others, each of which breaks one."""

from dataclasses import dataclass, field, replace
from typing import Any

from cutwater.errors import Problem
from cutwater.spark.connectors import (
    EXACTLY_ONCE,
    Guarantee,
    Receipt,
    SinkConnector,
    already_claimed,
    fenced,
)


@dataclass
class Table:
    """What a sink in memory holds: rows, and a ledger."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    staged: dict[int, list[Any]] = field(default_factory=dict)
    done: dict[tuple[int, int], int] = field(default_factory=dict)
    published: int = -1
    owner: tuple[str, int] | None = None


TABLES: dict[str, Table] = {}
"""By name: a sink that is copied to another process would find its table there as well."""


@dataclass(frozen=True)
class Right(SinkConnector):
    """A sink that keeps all laws."""

    name: str
    release: str = "early"
    accepts: str = field(default="records", init=False)

    @property
    def table(self):
        return TABLES.setdefault(self.name, Table())

    @property
    def location(self):
        return f"table {self.name}"

    def guarantee(self):
        return Guarantee(EXACTLY_ONCE, "keeps rows and ledger together")

    def newest_epoch(self, name, query_id):
        newest = max([self.table.published, *(epoch for epoch, _ in self.table.done)], default=-1)
        return newest if self._is_owner(query_id) else None

    def generation(self, name):
        return self.table.owner[1] if self.table.owner else 0

    def _is_owner(self, query_id):
        return self.table.owner is not None and self.table.owner[0] == query_id

    def check(self, name, query_id, next_epoch):
        if self.table.owner and not self._is_owner(query_id):
            return [Problem("another-checkpoint", "it is another's", "leave it")]
        if self.table.owner and self.newest_epoch(name, query_id) >= next_epoch:
            return [Problem("output-ahead", "it is ahead", "leave it")]
        return []

    def claim(self, claim):
        held = self.table.owner
        if held and (held[0] != claim.query_id or held[1] > claim.generation):
            raise already_claimed(self.location, claim, held[1])
        self.table.staged.clear()
        self.table.owner = (claim.query_id, claim.generation)

    def take_over(self, claim, *, keep):
        rows = self.table.rows if keep else []
        TABLES[self.name] = Table(rows, owner=(claim.query_id, claim.generation))

    def fence(self, claim, epoch):
        if self.table.owner != (claim.query_id, claim.generation):
            raise fenced(epoch, self.location, claim, self.generation(""))

    def write(self, claim, epoch, record, buckets):
        self.fence(claim, epoch)
        new = [b for b in buckets if (epoch, b.label) not in self.table.done]
        rows = [vars(value) for bucket in new for value in bucket.values]
        if self.release == "commit":
            return Staged(claim.sink, tuple((b.label, tuple(b.values)) for b in new))
        self.table.rows += rows
        self.table.done.update({(epoch, b.label): len(b.orders) for b in new})
        return Receipt(claim.sink)

    def publish(self, claim, epoch, receipts):
        if self.release == "commit":
            self.fence(claim, epoch)
            for label, values in (part for each in receipts for part in each.parts):
                if (epoch, label) not in self.table.done:
                    self.table.rows += [vars(value) for value in values]
                    self.table.done[epoch, label] = len(values)
        self.table.published = max(self.table.published, epoch)

    def released(self, claim, epoch):
        return "rows" if any(done >= epoch for done, _ in self.table.done) else None

    def row_count(self, claim):
        return sum(self.table.done.values())


@dataclass(frozen=True)
class Staged(Receipt):
    """What a task has not released."""

    parts: tuple = ()


class DoublesRetries(Right):
    """Knows nothing of what was written before."""

    def write(self, claim, epoch, record, buckets):
        self.table.done.clear()
        return super().write(claim, epoch, record, buckets)


class FencesNobody(Right):
    def fence(self, claim, epoch):
        pass


class LetsAnyoneClaim(Right):
    def claim(self, claim):
        self.table.owner = (claim.query_id, claim.generation)


class ShowsTooSoon(Right):
    """Says that it commits, and shows rows at once."""

    def write(self, claim, epoch, record, buckets):
        replace(self, release="early").write(claim, epoch, record, buckets)
        return Staged(claim.sink)


class ShowsTooLate(Right):
    """Says that it releases early, and shows rows with the epoch."""

    def write(self, claim, epoch, record, buckets):
        object.__setattr__(self, "last", buckets)
        return Receipt(claim.sink)

    def publish(self, claim, epoch, receipts):
        super().write(claim, epoch, None, self.last)
        super().publish(claim, epoch, receipts)


class Reorders(Right):
    def write(self, claim, epoch, record, buckets):
        before = len(self.table.rows)
        found = super().write(claim, epoch, record, buckets)
        self.table.rows[before:] = self.table.rows[before:][::-1]
        return found


class LosesATask(Right):
    def publish(self, claim, epoch, receipts):
        super().publish(claim, epoch, receipts[:1])


class RefusesNobody(Right):
    def check(self, name, query_id, next_epoch):
        return []


class KeepsTheOldOwner(Right):
    def take_over(self, claim, *, keep):
        super().take_over(claim, keep=keep)
        self.table.owner = None

    def fence(self, claim, epoch):
        if self.table.owner and self.table.owner[0] == claim.query_id:
            super().fence(claim, epoch)


class DeletesWhatStays(Right):
    def take_over(self, claim, *, keep):
        super().take_over(claim, keep=not keep)


class CountsNothing(Right):
    def row_count(self, claim):
        return 0


class SaysNothingWasReleased(Right):
    def released(self, claim, epoch):
        return None


class SaysAllWasReleased(Right):
    def released(self, claim, epoch):
        return "perhaps"


class ForgetsHowFarItIs(Right):
    def newest_epoch(self, name, query_id):
        return -1


class CannotTravel(Right):
    def __reduce__(self):
        raise TypeError("a connection")


BROKEN = {
    DoublesRetries: "a_task_that_is_retried_shows_its_rows_once",
    FencesNobody: "a_newer_generation_fences_a_task",
    LetsAnyoneClaim: "an_older_generation_cannot_claim",
    ShowsTooSoon: "rows_are_seen_when_the_release_says_so",
    ShowsTooLate: "rows_are_seen_when_the_release_says_so",
    Reorders: "epochs_are_released_in_order",
    LosesATask: "epochs_are_released_in_order",
    RefusesNobody: "another_checkpoint_is_refused",
    KeepsTheOldOwner: "another_checkpoint_takes_over",
    DeletesWhatStays: "another_checkpoint_takes_over",
    CountsNothing: "the_ledger_says_how_far_the_output_is",
    SaysNothingWasReleased: "the_ledger_says_what_was_released_of_an_epoch",
    SaysAllWasReleased: "the_ledger_says_what_was_released_of_an_epoch",
    ForgetsHowFarItIs: "the_ledger_says_how_far_the_output_is",
    CannotTravel: "it_can_be_serialised",
}
COMMITS = {ShowsTooSoon, LosesATask}
