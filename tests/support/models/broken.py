"""The protocol with one thing broken (after P1, Fig. 3a and what Definition 4.5 asks for)."""

from msgspec.structs import replace

from cutwater.semantics.barrier_model import Barriers, TakeBarrier, TakeEvent
from cutwater.semantics.barriers import (
    BARRIER,
    Consume,
    EventContent,
    LocalStep,
    Messages,
    Produce,
    Running,
    TaskState,
    event_step,
    output,
    recover_all,
)


def numbered(step):
    """The step with its outputs numbered by a count that no recovery reaches.

    It stands in the archive under epoch -1, which Definition 4.5 keeps as it is.
    """
    archive = dict(step.state.archive)
    count = archive.pop(-1, 0) + 1
    sent = tuple(
        Produce(a.stream, a.epoch, EventContent((count, a.content.payload)))
        for a in step.actions[1:]
    )
    kept = ((-1, count), *archive.items())
    return LocalStep((step.actions[0], *sent), TaskState(kept, step.state.volatile))


class Broken(Barriers):
    def recover(self, c):
        after = recover_all(c)
        return None if after is None else self.recovered(c, after)

    def recovered(self, c, after):
        """What it makes of the configuration that Definition 4.5 gives."""
        return after


class AnyEpoch(Broken):
    """Takes events of epochs that are not its own, and tags its output with its own."""

    def taken(self, c, number, is_taken):
        task, volatile = c.graph.tasks[number], c.states[number].volatile
        if not isinstance(volatile, Running):
            return []
        return [
            TakeEvent(task.name, message)
            for messages in self.heads(c, number)
            for message in messages
            if isinstance(message.content, EventContent) and is_taken(message.epoch, volatile.epoch)
        ]

    def local(self, c, move):
        if isinstance(move, TakeBarrier):
            return self.barrier(c, c.graph.number[move.task])
        number = c.graph.number[move.task]
        m = move.message
        step = event_step(c.graph.tasks[number], c.states[number], m.stream, m.content.payload)
        taken = Consume(m.stream, m.epoch, m.content)
        return LocalStep((taken, *step.actions[1:]), step.state)


class Uncoordinated(AnyEpoch):
    """(a) A task may snapshot at any step, takes events of any epoch and tags its output with its
    own (Fig. 3a). A barrier is passed over by the snapshot taken at its position.
    """

    def moves(self, c, number):
        moves = self.taken(c, number, lambda epoch, own: True)
        volatile = c.states[number].volatile
        last = max(m.epoch for m in c.inputs)
        if isinstance(volatile, Running) and volatile.epoch <= last:
            moves.append(TakeBarrier(c.graph.tasks[number].name))
        return moves

    def barrier(self, c, number):
        state = c.states[number]
        epoch, value = state.volatile.epoch, state.volatile.value
        passed = tuple(
            Consume(m.stream, m.epoch, BARRIER)
            for messages in self.heads(c, number)
            for m in messages
            if m.content is BARRIER
        )
        archive = (*state.archive, (epoch, value))
        return LocalStep(passed, TaskState(archive, Running(epoch + 1, value)))


class OneBarrierIsEnough(AnyEpoch):
    """(b) The barrier is taken when one input shows it; the others' older messages are then taken
    and tagged with the new epoch, and their barriers passed over.
    """

    def moves(self, c, number):
        moves = self.taken(c, number, lambda epoch, own: epoch <= own)
        volatile = c.states[number].volatile
        if isinstance(volatile, Running) and self.barriers(c, number, volatile.epoch):
            moves.append(TakeBarrier(c.graph.tasks[number].name))
        return moves

    def barriers(self, c, number, newest):
        return [
            m
            for messages in self.heads(c, number)
            for m in messages
            if m.content is BARRIER and m.epoch <= newest
        ]

    def barrier(self, c, number):
        task, state = c.graph.tasks[number], c.states[number]
        epoch, value = state.volatile.epoch, state.volatile.value
        barriers = self.barriers(c, number, epoch)
        late = [m for m in barriers if m.epoch < epoch]
        passed = tuple(Consume(m.stream, m.epoch, BARRIER) for m in late or barriers)
        if late:
            return LocalStep(passed, state)
        archive = (*state.archive, (epoch, value))
        sent = Produce(task.output, epoch, BARRIER)
        return LocalStep((*passed, sent), TaskState(archive, Running(epoch + 1, value)))


class KeepsMessages(Broken):
    """(c) A recovery keeps all messages: M' = M, the rest as Definition 4.5."""

    def recovered(self, c, after):
        return replace(after, messages=c.messages)


class OwnNewestSnapshot(Broken):
    """(d) Each task takes its value from its own newest snapshot; the rest as Definition 4.5."""

    def recovered(self, c, after):
        states = tuple(
            TaskState(right.archive, Running(right.volatile.epoch, state.archive[-1][1]))
            for state, right in zip(c.states, after.states, strict=True)
        )
        return replace(after, states=states)


class KeepsPositions(Broken):
    """(e) A recovery leaves the stream positions: N' = N."""

    def recovered(self, c, after):
        return replace(after, positions=c.positions)


class HiddenCounter(Broken):
    """(g) The task counts its calls where no recovery reaches, and emits the count."""

    def local(self, c, move):
        step = super().local(c, move)
        if isinstance(move, TakeBarrier):
            return step
        return numbered(step)


class SharedSnapshot(Broken):
    """(g) A snapshot is the live value itself, and changes with it."""

    def local(self, c, move):
        step = super().local(c, move)
        if isinstance(move, TakeBarrier):
            return step
        live = step.state.volatile
        archive = tuple((epoch, live.value) for epoch, _ in step.state.archive)
        return LocalStep(step.actions, TaskState(archive, live))


# -- these never show anything wrong: they show nothing more


class ForgetsInputs(Broken):
    """A recovery does not make the sources replay: M' = out(c)."""

    def recovered(self, c, after):
        return replace(after, messages=Messages(output(c)))


class RecoversOnlyTheFailed(Broken):
    """A recovery leaves the positions of tasks that did not crash."""

    def recovered(self, c, after):
        is_down = [not isinstance(state.volatile, Running) for state in c.states]
        positions = tuple(
            right if down else mine
            for down, right, mine in zip(is_down, after.positions, c.positions, strict=True)
        )
        return replace(after, positions=positions)


class StarvesTheLast(Broken):
    """The last task takes no barrier once it has seen an event."""

    def moves(self, c, number):
        moves = super().moves(c, number)
        if number < len(c.graph.tasks) - 1 or not c.positions[number][0]:
            return moves
        return [move for move in moves if not isinstance(move, TakeBarrier)]


UNSAFE = {
    "a": Uncoordinated,
    "b": OneBarrierIsEnough,
    "c": KeepsMessages,
    "d": OwnNewestSnapshot,
    "e": KeepsPositions,
    "g, hidden counter": HiddenCounter,
    "g, shared snapshot": SharedSnapshot,
}
