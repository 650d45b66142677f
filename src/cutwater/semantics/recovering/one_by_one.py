"""Recovery that is not atomic: tasks recover one by one (P1, section 4.3).

P1's F-Recover is one step of the whole system. "In practice, it may be implemented as an
asynchronous atomic step, which allows tasks to start processing before all have been recovered."
Here it is so: a coordinator that does not fail, a failure detector that finds every crash and may
also suspect live tasks, and tasks that learn of a recovery one after another, while messages and
snapshots from before it are still in flight.

=====================================  =====================================================
P1, section 4.3                        here
=====================================  =====================================================
the implicit coordinator               `Coordinator`
an eventually perfect failure          `Suspect`, of a task that has crashed, or (``mistakes``
detector                               times) of one that has not
durable snapshot storage               ``World.stored``
a replayable input                     ``RecoveryCase.epochs``: a source seeks to an offset
recovery, task by task                 `Recover`
output, by epoch                       ``World.published``
=====================================  =====================================================

What makes it correct is one number, the **generation**, which the coordinator raises with each
recovery:

- a task stamps messages with its generation (`RecoveryRules.stamp`) and drops older ones; newer
  ones wait until the task has recovered too (`RecoveryRules.verdict`);
- an epoch is committed when all tasks have stored it in the valid generation
  (`RecoveryRules.counts`);
- all tasks recover, including those that did not crash (`RecoveryRules.must_recover`).

A task that recovers is the same process as before. A zombie, presumed dead but running beside its
successor, is in `protocols.microbatch` and `protocols.realtime`.

The graph has two sources, a task that forwards each word with the one before it, so that the order
in which it reads the sources is visible, and a sink.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

__all__ = [
    "Coordinator",
    "Message",
    "RecoveryCase",
    "RecoveryModel",
    "RecoveryMove",
    "RecoveryRules",
    "RecoveryVerdict",
    "StoredSnapshot",
    "TaskState",
    "World",
    "is_all_published",
    "is_explained",
]

_SOURCES = (0, 1)
_MIDDLE, _SINK = 2, 3
_TASKS = ("a", "b", "middle", "sink")
_CHANNELS = ((0, _MIDDLE), (1, _MIDDLE), (_MIDDLE, _SINK))

RecoveryVerdict = Literal["take", "drop", "wait"]


class RecoveryCase(msgspec.Struct, frozen=True):
    """The bounds of an exploration."""

    epochs: tuple[tuple[str | None, str | None], ...] = (("a", "x"), ("b", None))
    """For each epoch what each source reads; None: nothing."""
    crashes: int = 1
    """How many tasks may crash, one after another."""
    mistakes: int = 1
    """How often the failure detector suspects a task that is up."""


class Message(msgspec.Struct, frozen=True, cache_hash=True):
    """A word, or the barrier of an epoch."""

    generation: int
    word: str | None
    """None: a barrier."""


class TaskState(msgspec.Struct, frozen=True, cache_hash=True):
    """The volatile state of a task."""

    generation: int = 1
    """The newest recovery it has learned of."""
    epoch: int = 0
    """The epoch that it is in."""
    state: Any = ()
    """For a source: has it read the word of the epoch? For the middle task: its last word. For the
    sink: the words of the epoch."""
    is_up: bool = True


class StoredSnapshot(msgspec.Struct, frozen=True, cache_hash=True):
    """A snapshot: the state of a task at the end of an epoch."""

    task: int
    epoch: int
    generation: int
    """The generation that the task was in."""
    state: Any


class Coordinator(msgspec.Struct, frozen=True, cache_hash=True):
    """What the coordinator knows; it does not fail."""

    generation: int = 1
    committed: int = 0
    """The number of committed epochs."""
    cuts: tuple[int, ...] = ()
    """For each of them the generation of its snapshots."""


class World(msgspec.Struct, frozen=True, cache_hash=True):
    """Tasks, channels, storage, the coordinator, and what an observer sees."""

    tasks: tuple[TaskState, ...]
    channels: tuple[tuple[Message, ...], ...]
    stored: frozenset[StoredSnapshot]
    coordinator: Coordinator
    published: tuple[tuple[str, ...], ...]
    """For each committed epoch the words at the sink."""
    crashes: int
    mistakes: int


class RecoveryMove(msgspec.Struct, frozen=True):
    """A step, by its rule."""

    rule: str
    task: int = -1
    channel: int = -1

    def __str__(self) -> str:
        who = f"{_TASKS[self.task]} " if self.task >= 0 else ""
        by = f" from {_TASKS[_CHANNELS[self.channel][0]]}" if self.channel >= 0 else ""
        return f"{who}{_WORDS[self.rule]}{by}"


_WORDS = {
    "read": "reads its next word",
    "barrier": "takes the barrier",
    "take": "takes a word",
    "crash": "crashes",
    "suspect": "is suspected; a new generation",
    "recover": "recovers",
    "commit": "the coordinator commits an epoch",
}
_FAULTS = ("crash", "suspect")


class RecoveryRules:
    """The rules that make recovery task by task correct; override one to break it."""

    def stamp(self, task: TaskState) -> int:
        """The generation that a task stamps its messages with."""
        return task.generation

    def verdict(self, task: TaskState, message: Message) -> RecoveryVerdict:
        """What a task does with the next message on a channel."""
        if message.generation < task.generation:
            return "drop"
        return "take" if message.generation == task.generation else "wait"

    def counts(self, stored: StoredSnapshot, coordinator: Coordinator) -> bool:
        """Does a snapshot count for the commit of its epoch?"""
        return stored.generation == coordinator.generation

    def must_recover(self, task: TaskState, coordinator: Coordinator) -> bool:
        """Does a task have to recover?"""
        return task.generation < coordinator.generation


class RecoveryModel:
    """All executions of a case, as a `Model`.

    Examples
    --------
    >>> model = RecoveryModel(case=RecoveryCase(crashes=0, mistakes=0))
    >>> (world,) = model.initial_states()
    >>> [str(move) for move in model.actions(world)]
    ['a reads its next word', 'b reads its next word']
    """

    def __init__(
        self, rules: RecoveryRules | None = None, case: RecoveryCase | None = None
    ) -> None:
        self.rules, self.case = rules or RecoveryRules(), case or RecoveryCase()

    def initial_states(self) -> Iterable[World]:
        """Nothing is read."""
        tasks = tuple(TaskState(state=self._first(number)) for number in range(len(_TASKS)))
        channels: tuple[tuple[Message, ...], ...] = ((),) * len(_CHANNELS)
        budget = (self.case.crashes, self.case.mistakes)
        return (World(tasks, channels, frozenset(), Coordinator(), (), *budget),)

    def _first(self, number: int) -> Any:
        return False if number in _SOURCES else "" if number == _MIDDLE else ()

    def actions(self, state: World) -> list[RecoveryMove]:
        """The possible moves, faults last."""
        moves = [move for n in range(len(_TASKS)) for move in self._moves(state, n)]
        if self._committable(state):
            moves.append(RecoveryMove("commit"))
        return [*moves, *self._faults(state)]

    def _moves(self, state: World, number: int) -> Iterable[RecoveryMove]:
        task = state.tasks[number]
        if self.rules.must_recover(task, state.coordinator):
            yield RecoveryMove("recover", number)
        if not task.is_up:
            return
        if number in _SOURCES:
            if task.epoch < len(self.case.epochs):
                is_read = task.state or self.case.epochs[task.epoch][number] is None
                yield RecoveryMove("barrier" if is_read else "read", number)
            return
        heads = {c: state.channels[c][0] for c in _into(number) if state.channels[c]}
        verdicts = {c: self.rules.verdict(task, message) for c, message in heads.items()}
        for channel, message in heads.items():
            if verdicts[channel] == "take" and message.word is not None:
                yield RecoveryMove("take", number, channel)
        barriers = [c for c in heads if verdicts[c] == "take" and heads[c].word is None]
        if barriers == _into(number):
            yield RecoveryMove("barrier", number)

    def _faults(self, state: World) -> Iterable[RecoveryMove]:
        for number, task in enumerate(state.tasks):
            if task.is_up and state.crashes:
                yield RecoveryMove("crash", number)
            is_of_now = task.generation == state.coordinator.generation
            if is_of_now and (not task.is_up or state.mistakes):
                yield RecoveryMove("suspect", number)

    def _committable(self, state: World) -> bool:
        epoch = state.coordinator.committed
        who = {
            stored.task
            for stored in state.stored
            if stored.epoch == epoch and self.rules.counts(stored, state.coordinator)
        }
        return len(who) == len(_TASKS)

    def step(self, state: World, action: RecoveryMove) -> World:
        """The world after a step, without the messages that can be dropped."""
        return self._without_dropped(self._after(state, action))

    def _without_dropped(self, state: World) -> World:
        """Drop messages at once: no other step can tell when that happens."""
        for channel, (_, receiver) in enumerate(_CHANNELS):
            task, waiting = state.tasks[receiver], state.channels[channel]
            while task.is_up and waiting and self.rules.verdict(task, waiting[0]) == "drop":
                waiting = waiting[1:]
            if waiting is not state.channels[channel]:
                state = replace(state, channels=_with(state.channels, channel, waiting))
        return state

    def _after(self, state: World, action: RecoveryMove) -> World:
        number = action.task
        match action.rule:
            case "read":
                return self._read(state, number)
            case "take":
                return self._taken(state, number, action.channel)
            case "barrier":
                return self._with_barriers(state, number)
            case "commit":
                return self._committed(state)
            case "recover":
                return self._recovered(state, number)
            case "crash":
                down = replace(state.tasks[number], is_up=False, state=None)
                return _with_task(replace(state, crashes=state.crashes - 1), number, down)
        return self._suspected(state, number)

    def _read(self, state: World, number: int) -> World:
        task = state.tasks[number]
        word = self.case.epochs[task.epoch][number]
        return self._sent(_with_task(state, number, replace(task, state=True)), number, word)

    def _taken(self, state: World, number: int, channel: int) -> World:
        task, word = state.tasks[number], state.channels[channel][0].word
        state = _without_first(state, channel)
        assert word is not None
        if number == _SINK:
            return _with_task(state, number, replace(task, state=(*task.state, word)))
        sent = f"{word} after {task.state}" if task.state else word
        return self._sent(_with_task(state, number, replace(task, state=word)), number, sent)

    def _with_barriers(self, state: World, number: int) -> World:
        """Rule I-Border: take the barriers of all inputs, store the state, pass the barrier on."""
        for channel in _into(number):
            state = _without_first(state, channel)
        task = state.tasks[number]
        snapshot = StoredSnapshot(number, task.epoch, task.generation, task.state)
        state = replace(state, stored=state.stored | {snapshot})
        kept = task.state if number == _MIDDLE else self._first(number)
        after = replace(task, epoch=task.epoch + 1, state=kept)
        return self._sent(_with_task(state, number, after), number, None)

    def _sent(self, state: World, number: int, word: str | None) -> World:
        message = Message(self.rules.stamp(state.tasks[number]), word)
        for channel, (sender, _) in enumerate(_CHANNELS):
            if sender == number:
                longer = (*state.channels[channel], message)
                state = replace(state, channels=_with(state.channels, channel, longer))
        return state

    def _committed(self, state: World) -> World:
        """The coordinator commits an epoch: what the sink stored of it becomes visible."""
        known = state.coordinator
        counted = [
            stored
            for stored in state.stored
            if stored.epoch == known.committed
            and stored.task == _SINK
            and self.rules.counts(stored, known)
        ]
        newest = max(counted, key=lambda stored: stored.generation)
        cuts = (*known.cuts, newest.generation)
        known = replace(known, committed=known.committed + 1, cuts=cuts)
        published = (*state.published, newest.state)
        return replace(state, coordinator=known, published=published)

    def _suspected(self, state: World, number: int) -> World:
        """The detector suspects a task: the coordinator begins a generation."""
        is_mistake = state.tasks[number].is_up
        known = replace(state.coordinator, generation=state.coordinator.generation + 1)
        return replace(state, coordinator=known, mistakes=state.mistakes - is_mistake)

    def _recovered(self, state: World, number: int) -> World:
        """One task restores the newest committed epoch."""
        known = state.coordinator
        kept = self._first(number)
        if number == _MIDDLE and known.committed:
            kept = self._stored(state, number).state
        back = TaskState(known.generation, known.committed, kept)
        return _with_task(state, number, back)

    def _stored(self, state: World, number: int) -> StoredSnapshot:
        """The snapshot that a task restores: that of the newest committed epoch."""
        known = state.coordinator
        found = [s for s in state.stored if (s.task, s.epoch) == (number, known.committed - 1)]
        of_cut = [s for s in found if s.generation == known.cuts[-1]]
        return (of_cut or sorted(found, key=lambda stored: stored.generation))[0]

    def observation(self, state: World) -> tuple[tuple[str, ...], ...]:
        """What is published, epoch by epoch."""
        return state.published

    def is_at_rest(self, state: World) -> bool:
        """Can only faults still happen?"""
        return all(move.rule in _FAULTS for move in self.actions(state))


def is_explained(case: RecoveryCase, published: Sequence[Sequence[str]]) -> bool:
    """Is the published output that of a run without failures (P1, Definition 5.2)?

    Each epoch has its words once, and each word says which came before it.
    """
    before = ""
    for words, expected in zip(published, case.epochs, strict=False):
        if sorted(word.split(" after ")[0] for word in words) != sorted(filter(None, expected)):
            return False
        for word in words:
            name, _, after = word.partition(" after ")
            if after != before:
                return False
            before = name
    return True


def is_all_published(model: RecoveryModel, state: World) -> bool:
    """At rest: is every epoch published?

    A crashed task is eventually suspected, so nothing is at rest while one is down.
    """
    is_down = any(not task.is_up for task in state.tasks)
    return is_down or not model.is_at_rest(state) or len(state.published) == len(model.case.epochs)


def _into(number: int) -> list[int]:
    return [c for c, (_, receiver) in enumerate(_CHANNELS) if receiver == number]


def _with(parts: Sequence[Any], number: int, part: Any) -> tuple[Any, ...]:
    return (*parts[:number], part, *parts[number + 1 :])


def _with_task(state: World, number: int, task: TaskState) -> World:
    return replace(state, tasks=_with(state.tasks, number, task))


def _without_first(state: World, channel: int) -> World:
    return replace(state, channels=_with(state.channels, channel, state.channels[channel][1:]))
