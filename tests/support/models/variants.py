"""For each method of the barrier protocol and of its model a variant that overrides it.

What they do otherwise is what an author may well try. None of them says anything of reduction.
"""

from msgspec.structs import replace
from support.models.broken import numbered

from cutwater.semantics.barrier_model import BarrierModel, Barriers, Fail, TakeBarrier, TakeEvent
from cutwater.semantics.barriers import (
    LocalStep,
    Produce,
    Running,
    TaskState,
    greatest_common_epoch,
)


def with_state(c, number, state):
    return replace(c, states=(*c.states[:number], state, *c.states[number + 1 :]))


class LastGivesWay(Barriers):
    """The last task takes no event once the first has a snapshot."""

    def moves(self, c, number):
        moves = super().moves(c, number)
        if number < len(c.graph.tasks) - 1 or c.states[0].newest == 0:
            return moves
        return [move for move in moves if isinstance(move, TakeBarrier)]


class PassesSilentInputs(Barriers):
    """The barrier is taken of those inputs that show one."""

    def local(self, c, move):
        step = super().local(c, move)
        if not isinstance(move, TakeBarrier):
            return step
        shown = {m.stream for ms in Barriers.heads(c, c.graph.number[move.task]) for m in ms}
        kept = [a for a in step.actions if isinstance(a, Produce) or a.stream in shown]
        return LocalStep(tuple(kept), step.state)


class ReadsWhatIsThere(PassesSilentInputs):
    """An input that shows nothing is passed over."""

    def heads(self, c, number):
        heads = super().heads(c, number)
        return [messages for messages in heads if messages] or heads


class SilenceIsABarrier(PassesSilentInputs):
    """An input that shows nothing counts as one that shows a barrier."""

    @staticmethod
    def _is_barrier(messages, epoch):
        return not messages or Barriers._is_barrier(messages, epoch)

    def moves(self, c, number):
        return super().moves(c, number) if any(self.heads(c, number)) else ()


class CountsItsCalls(Barriers):
    """A task numbers what it emits, and no recovery reaches the number."""

    def local(self, c, move):
        step = super().local(c, move)
        if isinstance(move, TakeBarrier):
            return step
        return numbered(step)


class CrashesIntoItsSnapshot(Barriers):
    """A task that crashes writes what it has over its newest snapshot."""

    def step(self, c, move):
        after = super().step(c, move)
        if not isinstance(move, Fail):
            return after
        number = c.graph.number[move.task]
        archive = dict(c.states[number].archive)
        archive[max(archive)] = c.states[number].volatile.value
        failed = after.states[number].volatile
        return with_state(after, number, TaskState(tuple(archive.items()), failed))


class RecoversInPlace(Barriers):
    """A task that did not crash goes on with the value it has."""

    def recover(self, c):
        after = super().recover(c)
        for number, known in enumerate(c.states):
            if after is not None and isinstance(known.volatile, Running):
                right = after.states[number]
                running = Running(right.volatile.epoch, known.volatile.value)
                after = with_state(after, number, TaskState(right.archive, running))
        return after


PROTOCOLS = {
    "moves": LastGivesWay,
    "heads": ReadsWhatIsThere,
    "_is_barrier": SilenceIsABarrier,
    "local": CountsItsCalls,
    "step": CrashesIntoItsSnapshot,
    "recover": RecoversInPlace,
}
"""By the method of `Barriers` that the variant is about."""


class LastIsHeldBack(BarrierModel):
    """The last task takes no event once the first has a snapshot."""

    def actions(self, state):
        c = state.configuration
        last = c.graph.tasks[-1].name
        is_held = len(c.states) > 1 and c.states[0].newest > 0
        moves = super().actions(state)
        return [m for m in moves if not (is_held and isinstance(m, TakeEvent) and m.task == last)]


class LastForgets(BarrierModel):
    """The last task keeps nothing of an event once the first has a snapshot."""

    def step(self, state, action):
        after = super().step(state, action)
        c = state.configuration
        last = len(c.states) - 1
        if not isinstance(action, TakeEvent) or c.graph.number[action.task] != last:
            return after
        if last == 0 or c.states[0].newest == 0:
            return after
        return replace(after, configuration=with_state(after.configuration, last, c.states[last]))


class SeesWhoIsAhead(BarrierModel):
    """What is seen is the common epoch, and whether the first task is before the last."""

    def observation(self, state):
        states = state.configuration.states
        ahead = states[0].newest > states[-1].newest
        return greatest_common_epoch(state.configuration), ahead


MODELS = {"actions": LastIsHeldBack, "step": LastForgets, "observation": SeesWhoIsAhead}
"""By the method of `BarrierModel` that the variant is about."""
