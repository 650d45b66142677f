"""Drifting state as a model: the possible moves of its agents, and the faults.

The network reorders by nature: any message in flight may arrive next. Faults are counted
(`Faults`): messages are lost or duplicated, agents crash, one is partitioned for a while, one is
suspected wrongly and lives on as a zombie beside its successor. Each real fault entitles the
failure detector to one recovery; a suspicion without reason is a fault of its own.

Not modelled: failing producers (their logs are external), and storage that loses data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from cutwater.semantics.drifting.agents import (
    Barrier,
    ClusterState,
    Consumer,
    Coordinator,
    Down,
    Node,
    Process,
    Producer,
    SnapshotStorage,
)
from cutwater.semantics.drifting.elements import Element
from cutwater.semantics.drifting.messages import (
    Accepted,
    AskLast,
    Bound,
    Bundle,
    Claimed,
    ClaimGeneration,
    CommitSnapshot,
    Fetch,
    Fetched,
    Last,
    MessageBody,
    Passed,
    Ready,
    Received,
    ReplayInputs,
    Report,
    Sends,
    Start,
    StateStored,
    Store,
    TakeSnapshot,
    Work,
)
from cutwater.semantics.drifting.protocol import Drifting
from cutwater.semantics.drifting.system import (
    Crash,
    CutOff,
    Deliver,
    Duplicate,
    Faults,
    Heal,
    Key,
    Lose,
    Message,
    Move,
    Produce,
    Suspect,
    System,
    by_key,
    crashed,
    newest,
    put,
    replaced,
    spent,
    suspected,
)
from cutwater.semantics.overriding import overridden

__all__ = ["DriftingModel", "Observation"]


class Observation(NamedTuple):
    """What is observable from outside."""

    received: tuple[tuple[Element, ...], ...]
    """What each consumer has received."""
    is_quiescent: bool
    """Will nothing more happen unless there is a fault?"""


class DriftingModel:
    """All runs of a deployment, with a bounded number of faults.

    Examples
    --------
    >>> from cutwater.semantics.drifting.elements import Element, Grouping, Time
    >>> from cutwater.semantics.drifting.agents import Deployment
    >>> log = (Element(Time((1, 0)), "v1"), Element(Time((2, 0)), "v2"))
    >>> model = DriftingModel(Drifting(Deployment((Grouping(2),), (log,))))
    >>> model.actions(*model.initial_states())
    [Suspect(agent=None)]
    """

    def __init__(self, protocol: Drifting, faults: Faults | None = None) -> None:
        self.protocol = protocol
        self.deployment = protocol.deployment
        self.faults = faults or Faults()
        self.expected = self.deployment.expected()

    @property
    def is_reducible(self) -> bool:
        """Is it the unmodified protocol, or a variant for which `ample` is proven?"""
        return overridden(self.protocol, Drifting) <= self.protocol.harmless

    @property
    def is_acyclic(self) -> bool:
        """True if reducible: messages are consumed, and none is sent twice in a generation."""
        return self.is_reducible

    def initial_states(self) -> Iterable[System]:
        """Nothing runs; the first start is a recovery."""
        durable: list[tuple[Key, Process]] = [
            (("cluster state", 0), ClusterState()),
            (("storage", 0), SnapshotStorage()),
            *(((name, 0), Consumer()) for name in self.deployment.names("consumer")),
        ]
        return (System(tuple(sorted(durable, key=by_key)), frozenset(), self.faults),)

    def actions(self, state: System) -> list[Move]:
        """The moves of the protocol, then the faults."""
        return [*self._work(state), *self._faults(state)]

    def _work(self, state: System) -> Iterator[Move]:
        if state.reasons:
            yield Suspect()
        if state.cut_off is not None:
            yield Heal()
        for (agent, generation), process in state.processes:
            if isinstance(process, Producer) and self.protocol.produce(agent, process):
                yield Produce(agent, generation)
        yield from (Deliver(message) for message in self._arriving(state))

    def _faults(self, state: System) -> Iterator[Move]:
        left, running = state.faults, self._running(state)
        if left.crashes:
            yield from (Crash(agent, generation) for agent, generation in running)
        if left.suspicions:
            yield from (Suspect(a) for a, g in running if g == state.attempts and g)
        if left.partitions and state.cut_off is None:
            yield from (CutOff(agent) for agent in sorted({agent for agent, _ in running}))
        for message in self._arriving(state):
            if left.duplicates:
                yield Duplicate(message)
            if left.losses:
                yield Lose(message)

    @staticmethod
    def _running(state: System) -> list[Key]:
        """Agents that may fail: all but producers."""
        return [key for key, process in state.processes if not isinstance(process, Down | Producer)]

    def _arriving(self, state: System) -> list[Message]:
        known = dict(state.processes)
        return sorted(
            (
                message
                for message in state.network
                if state.cut_off not in (message.source, message.target)
                and (_is_start(message.body) or self._receiver(known, message))
            ),
            key=_in_words,
        )

    def _receiver(self, known: dict[Key, Process], message: Message) -> Key | None:
        """The process that accepts a message: that of its generation; None: none does."""
        agent = message.target
        for key in ((agent, 0), (agent, message.generation)):
            if not isinstance(known.get(key, Down()), Down):
                return key
        if self.protocol.is_fenced(message.body):
            return None
        running = [key for key, p in known.items() if key[0] == agent and not isinstance(p, Down)]
        return max(running, default=None)

    def step(self, state: System, action: Move) -> System:
        """The system after a move."""
        after = self._moved(state, action)
        return replace(after, network=frozenset(self._alive(after)))

    def _moved(self, state: System, action: Move) -> System:
        match action:
            case Suspect(agent):
                return suspected(state, agent)
            case Produce(agent, generation):
                return self._produced(state, (agent, generation))
            case Deliver(message):
                rest = replace(state, network=state.network - {message})
                return self._delivered(rest, message)
            case Duplicate(message):
                return self._delivered(spent(state, "duplicates", is_reason=False), message)
            case Lose(message):
                rest = replace(state, network=state.network - {message})
                return spent(rest, "losses")
            case Crash(agent, generation):
                return crashed(spent(state, "crashes"), (agent, generation))
            case CutOff(agent):
                return replace(spent(state, "partitions"), cut_off=agent)
            case Heal():
                return replace(state, cut_off=None)

    def _alive(self, state: System) -> Iterator[Message]:
        """The messages that some process may still accept: the others can be dropped."""
        known = dict(state.processes)
        for message in state.network:
            if _is_start(message.body):
                is_alive = message.generation > newest(known, message.target)
            else:
                is_fenced = self.protocol.is_fenced(message.body)
                is_alive = not is_fenced or self._receiver(known, message) is not None
            if is_alive:
                yield message

    def _produced(self, state: System, key: Key) -> System:
        producer = dict(state.processes)[key]
        assert isinstance(producer, Producer)
        produced = self.protocol.produce(key[0], producer)
        assert produced is not None
        return put(state, key, *produced, generation=key[1])

    def _delivered(self, state: System, message: Message) -> System:
        known = dict(state.processes)
        if _is_start(message.body):
            if message.generation <= newest(known, message.target):
                return state
            key = (message.target, message.generation)
            return put(replaced(state, key), key, *self._started(message), generation=key[1])
        receiver = self._receiver(known, message)
        assert receiver is not None
        process, sends = self._answered(known[receiver], message)
        return put(state, receiver, process, sends, generation=receiver[1] or message.generation)

    def _started(self, message: Message) -> tuple[Process, Sends]:
        match message.body:
            case Start() as body if message.target in self.deployment.names("node"):
                return self.protocol.start_node(body)
            case Start():
                return self.protocol.start_barrier(message.target)
            case ReplayInputs() as body:
                return self.protocol.on_replay(message.target, body)
        raise AssertionError(message)

    def _answered(self, process: Process, message: Message) -> tuple[Process, Sends]:
        """Apply the agent's rule for a message."""
        rules, me, source = self.protocol, message.target, message.source
        generation = message.generation
        match process, message.body:
            case Coordinator(), Claimed() as body:
                return rules.on_claimed(process, body)
            case Coordinator(), Ready():
                return rules.on_ready(process, source)
            case Coordinator(), Report() | Bound() as body:
                return rules.on_report(process, source, body)
            case Coordinator(), Accepted() as body:
                return rules.on_accepted(process, source, body)
            case ClusterState(), ClaimGeneration():
                return rules.on_claim(process, generation)
            case ClusterState(), CommitSnapshot() as body:
                return rules.on_commit(process, generation, body)
            case SnapshotStorage(), Store() as body:
                return rules.on_store(process, source, body)
            case SnapshotStorage(), Fetch() as body:
                return rules.on_fetch(process, source, body)
            case Node(), Fetched() as body:
                return rules.on_fetched(process, body)
            case Node(), Work() as body:
                return rules.on_work(process, me, source, body)
            case Node(), TakeSnapshot() as body:
                return rules.take_snapshot(process, body)
            case Node(), StateStored(at):
                return process, [("coordinator", Accepted(at))]
            case Barrier(), Last() as body:
                return rules.on_last(process, body)
            case Barrier(), Work() as body:
                return rules.on_output(process, me, source, body)
            case Barrier(), Passed(frontier):
                return rules.on_passed(process, me, frontier)
            case Barrier(), Received() as body:
                return rules.on_received(process, me, body)
            case Barrier(), TakeSnapshot() as body:
                return rules.promise(process, me, body)
            case Consumer(), AskLast():
                return rules.on_ask(process, generation, source)
            case Consumer(), Bundle() as body:
                return rules.on_bundle(process, generation, source, body)
        raise AssertionError(message)

    def observation(self, state: System) -> Observation:
        """What is observable: the outputs consumers have, and whether the system is quiescent."""
        consumers = (p for _, p in state.processes if isinstance(p, Consumer))
        return Observation(tuple(c.received for c in consumers), self.is_quiescent(state))

    def is_exactly_once(self, seen: Observation) -> bool:
        """Does every consumer have a prefix of the in-order fold, and all of it at quiescence?

        Outputs have unique times, so a prefix contains none twice.
        """
        pairs = list(zip(seen.received, self.expected, strict=True))
        is_prefix = all(got == wanted[: len(got)] for got, wanted in pairs)
        return is_prefix and (not seen.is_quiescent or all(got == wanted for got, wanted in pairs))

    def is_quiescent(self, state: System) -> bool:
        """Will nothing more happen unless there is a fault?"""
        return next(self._work(state), None) is None

    def ample(self, state: System, actions: Sequence[Move]) -> Sequence[Move] | None:
        """A delivery that can safely happen now; None if there is none.

        Its receiver loses what it learns in a crash, learns the same in any order, and at most
        sends something earlier because of it, which may then stay in flight arbitrarily long. So
        whatever can happen without the delivery can also happen after it. A recovery discards all
        of it. This does not hold if the message itself may be lost or duplicated.
        """
        if state.faults.losses or state.faults.duplicates:
            return None
        for action in actions:
            if isinstance(action, Deliver) and self._is_monotone(action.message):
                return (action,)
        return None

    def _is_monotone(self, message: Message) -> bool:
        """Does it only add to the knowledge of one process?

        Not for elements at a node, which speculates on their order. At a barrier it does: what is
        before the frontier is complete, and the rest is counted.
        """
        if isinstance(message.body, Work):
            return message.target in self.deployment.names("barrier")
        return isinstance(message.body, _MONOTONE)


_MONOTONE = (
    Accepted, Bound, Claimed, Fetch, Fetched, Last, Passed, Ready, Received, Report, StateStored,
    Store, TakeSnapshot,
)  # fmt: skip


@lru_cache(maxsize=100_000)
def _in_words(message: Message) -> str:
    """A sort key for messages that does not depend on hashes."""
    return repr(message)


def _is_start(body: MessageBody) -> bool:
    return isinstance(body, Start | ReplayInputs)
