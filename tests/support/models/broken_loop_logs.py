"""The protocol of a loop by a log with one rule broken, and the case in which it shows.

Each docstring is the sentence of docs/protocols.md: what goes wrong without the rule.
"""

from msgspec.structs import replace

from cutwater.semantics.protocols.loop_log import LoopLog
from cutwater.semantics.protocols.loop_log_world import FedBack, LoopCase, Token

ONE = ((Token("a", 1),),)
PAIR = ((Token("a", 1), Token("b", 1)),)
TWO = ((Token("a", 1),), (Token("b"),))
TWO_ROUNDS = ((Token("a", 2),),)
UNEVEN = ((Token("a", 2),), (Token("b"),))


class PlansBeforeTheCommit(LoopLog):
    """Epoch n + 1 is planned before n has published what it fed back: the input epoch appears to
    have converged, and is released without its later rounds.
    """

    case = LoopCase(inputs=ONE, crashes=0)

    def is_sealed(self, w):
        return len(w.plans) <= w.finished + 1


class CommitsBeforeItPublishes(LoopLog):
    """After a crash between commit and publication, the epoch is not replayed: what it fed back is
    lost.
    """

    case = LoopCase(inputs=ONE)

    def order_of_an_epoch(self):
        return ("commit", "log", "results", "sink")


class RoundIsReadTwice(LoopLog):
    """A run that keeps its position in the log in memory reads a round again after a restart."""

    case = LoopCase(inputs=TWO_ROUNDS)

    def next_round(self, w, run):
        start, end = super().next_round(w, run)
        return (start if len(w.plans) > run.first else 0), end


class ReplayReadsLaterRounds(LoopLog):
    """The replay of an epoch reads what that epoch itself has fed back before the crash."""

    case = LoopCase(inputs=TWO_ROUNDS)

    def rows_to_read(self, w, start, end):
        return super().rows_to_read(w, start, len(w.plans) if end > start else end)


class ReplayPublishesAgain(LoopLog):
    """A replay publishes its rows beside those from before the crash: each event is in the loop
    twice.
    """

    case = LoopCase(inputs=ONE)

    def is_published(self, w, what, epoch):
        return False


class OrderIsThePosition(LoopLog):
    """Events are processed in the order in which tasks wrote them, which differs between runs."""

    case = LoopCase(inputs=PAIR, crashes=0)

    def in_order(self, rows):
        is_of_the_log = any(isinstance(row, FedBack) for row in rows)
        return list(rows) if is_of_the_log else super().in_order(rows)


class SharedStateOverlaps(LoopLog):
    """An input epoch enters while an older one iterates: it misses what that adds to the state."""

    case = LoopCase(inputs=UNEVEN, is_state_shared=True, crashes=0)

    def room(self):
        return self.case.room


class OverlapOnOneState(LoopLog):
    """Input epochs that overlap are processed on one state: each sees the events of the others."""

    case = LoopCase(inputs=TWO, crashes=0)

    def state_of(self, number):
        return -1


class ReleasedBeforeTheFrontier(LoopLog):
    """An input epoch is released after one round, while its events are still in the loop."""

    case = LoopCase(inputs=TWO_ROUNDS, crashes=0)

    def leaving(self, inside, iterating):
        return inside[0] if inside else -1


class YoungerIsReleasedFirst(LoopLog):
    """A younger input epoch converges first and is released before an older one."""

    case = LoopCase(inputs=UNEVEN, crashes=0)

    def leaving(self, inside, iterating):
        return next((number for number in inside if number not in iterating), -1)


class RestartForgetsTheLoop(LoopLog):
    """A run that keeps in memory which input epochs are in the loop never releases them after a
    restart.
    """

    case = LoopCase(inputs=ONE)

    def inside(self, w, run):
        entered = tuple(plan.reads for plan in w.plans[run.first :] if plan.reads >= 0)
        return tuple(number for number in super().inside(w, run) if number in entered)


class RestartSkipsARound(LoopLog):
    """A restart counts the planned epoch as done: its round is lost."""

    case = LoopCase(inputs=ONE)

    def start(self, w):
        after = super().start(w)
        missing = ((),) * (len(w.plans) - len(w.states))
        return after and replace(after, finished=len(w.plans), states=(*w.states, *missing))


class ReplayOnLaterStates(LoopLog):
    """A replay processes its round on the state that the epoch left before the crash: events are
    in it twice.
    """

    case = LoopCase(inputs=ONE)

    def states_before(self, w, epoch):
        return w.states[-1] if w.states else ()


class LogIsCleanedOneRoundEarly(LoopLog):
    """What the newest epoch read is removed; after a power loss that epoch is replayed, and finds
    nothing.
    """

    case = LoopCase(inputs=TWO_ROUNDS, crashes=0, losses=1)

    def needed_of_log(self, w):
        return w.plans[-1].end


class ResultsAreCleanedByRound(LoopLog):
    """Results are removed while their input epoch is in the loop: it is released without them."""

    case = LoopCase(inputs=ONE, crashes=0)

    def needed_of_results(self, w):
        return len(w.plans) - 1


BROKEN = {
    (1, "plans before the commit"): PlansBeforeTheCommit,
    (1, "commits before it publishes"): CommitsBeforeItPublishes,
    (2, "a restart reads a round twice"): RoundIsReadTwice,
    (2, "a replay reads what was fed back later"): ReplayReadsLaterRounds,
    (3, "a replay publishes again"): ReplayPublishesAgain,
    (4, "the order is the position in the log"): OrderIsThePosition,
    (5, "input epochs overlap with a shared state"): SharedStateOverlaps,
    (5, "input epochs that overlap use one state"): OverlapOnOneState,
    (6, "released before the frontier has passed"): ReleasedBeforeTheFrontier,
    (6, "a younger input epoch is released first"): YoungerIsReleasedFirst,
    (7, "a restart forgets what is in the loop"): RestartForgetsTheLoop,
    (8, "a restart skips a round"): RestartSkipsARound,
    (8, "a replay uses the states it left"): ReplayOnLaterStates,
    (9, "the log is cleaned one round early"): LogIsCleanedOneRoundEarly,
    (9, "results are cleaned with their round"): ResultsAreCleanedByRound,
}
