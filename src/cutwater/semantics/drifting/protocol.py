"""The rules of drifting state: snapshots, recovery and output (P2, sections V.A and V.B).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
V.A.1, snapshotting                    ``on_report``, ``take_snapshot``, ``promise``,
                                       ``on_accepted``, ``on_commit``
V.A.2, last output element             ``_released``, ``on_bundle``, ``on_received``, ``on_ask``
V.B, recovery                          ``on_claim``, ``on_claimed``, ``start_node``,
                                       ``start_barrier``, ``on_ready``, ``on_replay``
=====================================  =====================================================

Each agent is a state and rules that answer messages; the first start is a recovery. Where we extend
P2 or differ from it (2026-11-18):

- P2 leaves barriers out of the snapshot. Then a snapshot may be complete while an output before it
  is still at its barrier, and a crash loses it: replay begins after it. So a barrier accepts
  snapshot k only when its consumer has everything before k. Outputs still wait for no snapshot.
- Every recovery has a generation, claimed from the cluster state before anything else. Messages
  carry it, and processes of another generation reject them; a consumer rejects bundles of an older
  generation than the one that last asked it. P2 does not mention zombies: nodes that were
  suspected but are alive.
- Bundles are numbered within a generation, so that a consumer recognises duplicates.
- A lost message is not resent: as in P2, everything restarts from the last snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from cutwater.semantics.drifting.agents import (
    Barrier,
    ClusterState,
    Consumer,
    Coordinator,
    Deployment,
    Node,
    Producer,
    SnapshotStorage,
)
from cutwater.semantics.drifting.elements import (
    EMPTY,
    END_OF_INPUT,
    Acker,
    Change,
    Element,
    Root,
    Time,
    collected,
    due,
    regroup,
    settled_group,
)
from cutwater.semantics.drifting.messages import (
    Accepted,
    AskLast,
    Bound,
    Bundle,
    Claimed,
    CommitSnapshot,
    Fetch,
    Fetched,
    Groups,
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

__all__ = ["Drifting"]


class Drifting:
    """The rules; a variant overrides those it changes.

    A rule takes the state of the agent, its name, and a message: its source, generation and body.
    It returns the next state and the messages to send.
    """

    harmless: frozenset[str] = frozenset()
    """The overridden rules of a variant for which its author has proven that a monotone delivery
    may still happen at any time (see `DriftingModel.ample`). A variant that overrides any other
    rule is searched exhaustively. Refuting a variant needs no proof: a refuting run is its own."""
    most_unacknowledged = 1
    """The most bundles in flight to a consumer."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment

    def is_fenced(self, body: MessageBody) -> bool:
        """Is a message accepted only in its own generation?"""
        return True

    # coordinator

    def on_claimed(self, c: Coordinator, body: Claimed) -> tuple[Coordinator, Sends]:
        """V.B: restart all workers from the snapshot."""
        # PREMISE: this is no copy
        if c.acker is not None:
            return c, ()
        # STATE
        start = self.replay_from(body.snapshot)
        acker = Acker((start,) * len(self.deployment.producers))
        # RESULT
        return (
            replace(c, acker=acker, snapshot=body.snapshot),
            [(name, Start(body.snapshot)) for name in self.deployment.workers],
        )

    def on_ready(self, c: Coordinator, source: str) -> tuple[Coordinator, Sends]:
        """V.B: when all are ready, the producers replay."""
        # PREMISE: this is no copy
        if source in c.ready:
            return c, ()
        # STATE
        after = replace(c, ready=c.ready | {source})
        # RESULT
        is_complete = len(after.ready) == len(self.deployment.workers)
        replay = ReplayInputs(self.replay_from(c.snapshot))
        return after, [(p, replay) for p in self.deployment.producers if is_complete]

    def replay_from(self, snapshot: Root) -> Root:
        """The first input that the snapshot does not cover."""
        return snapshot

    def on_report(
        self, c: Coordinator, source: str, body: Report | Bound
    ) -> tuple[Coordinator, Sends]:
        """The acker records messages, announces a new frontier, and may start a snapshot."""
        # PREMISE: the generation has begun
        if c.acker is None:
            return c, ()
        # STATE
        if isinstance(body, Report):
            acker = c.acker.report([body.done], body.sent)
        else:
            acker = c.acker.advance(self.deployment.producers.index(source), body.bound, body.sent)
        after, sends = self._next_snapshot(replace(c, acker=acker))
        # RESULT
        if acker.frontier > c.acker.frontier:
            passed = Passed(acker.frontier)
            sends = [*((name, passed) for name in self.deployment.names("barrier")), *sends]
        return after, sends

    def _next_snapshot(self, c: Coordinator) -> tuple[Coordinator, Sends]:
        """V.A.1: start the next snapshot whose inputs are all done."""
        # PREMISE: no snapshot is in progress
        if c.accepted is not None or c.acker is None:
            return c, ()
        frontier = c.acker.frontier
        at = next((s for s in self.deployment.snapshots if c.snapshot < s <= frontier), None)
        if at is None:
            return c, ()
        # RESULT
        return (
            replace(c, snapshot=at, accepted=frozenset()),
            [(name, TakeSnapshot(at)) for name in self.deployment.workers],
        )

    def on_accepted(self, c: Coordinator, source: str, body: Accepted) -> tuple[Coordinator, Sends]:
        """V.A.1: when all have accepted, commit the snapshot as the one to recover from."""
        # PREMISE: it is for the snapshot in progress
        if c.accepted is None or body.at != c.snapshot:
            return c, ()
        # STATE
        accepted = c.accepted | {source}
        if not accepted.issuperset(self.accepting()):
            return replace(c, accepted=accepted), ()
        after, sends = self._next_snapshot(replace(c, accepted=None))
        # RESULT
        return after, [("cluster state", CommitSnapshot(body.at)), *sends]

    def accepting(self) -> Iterable[str]:
        """The agents that must accept a snapshot to make it complete."""
        return self.deployment.workers

    # cluster state and storage

    def on_claim(self, s: ClusterState, generation: int) -> tuple[ClusterState, Sends]:
        """Grant a claim, unless a newer generation has claimed; then send no answer."""
        # PREMISE
        if generation < s.generation:
            return s, ()
        # STATE, RESULT
        return ClusterState(generation, s.snapshot), [("coordinator", Claimed(s.snapshot))]

    def on_commit(
        self, s: ClusterState, generation: int, body: CommitSnapshot
    ) -> tuple[ClusterState, Sends]:
        """Record a complete snapshot, if it is of the newest generation."""
        # PREMISE
        if generation != s.generation:
            return s, ()
        # STATE
        return ClusterState(generation, body.at), ()

    def on_store(
        self, s: SnapshotStorage, source: str, body: Store
    ) -> tuple[SnapshotStorage, Sends]:
        """Store a state."""
        kept = s.states | {(body.at, source, body.groups)}
        return SnapshotStorage(kept), [(source, StateStored(body.at))]

    def on_fetch(
        self, s: SnapshotStorage, source: str, body: Fetch
    ) -> tuple[SnapshotStorage, Sends]:
        """Return a state; every complete snapshot has one."""
        found = (groups for at, node, groups in s.states if (at, node) == (body.snapshot, source))
        return s, [(source, Fetched(next(found, ())))]

    # producers

    def on_replay(self, name: str, body: ReplayInputs) -> tuple[Producer, Sends]:
        """V.B: seek to the first input that the snapshot does not cover."""
        log = self._log(name)
        first = sum(element.t.root < body.snapshot for element in log)
        after = Producer(first, first)
        return after, [("coordinator", self._bound(name, after))]

    def produce(self, name: str, p: Producer) -> tuple[Producer, Sends] | None:
        """Send the next input; None if there is none."""
        # PREMISE
        log = self._log(name)
        if p.next == len(log):
            return None
        # STATE
        after = Producer(p.first, p.next + 1)
        # RESULT
        element = log[p.next]
        target = self.deployment.node_of(0, element.value)
        return after, [
            (target, Work(p.next, 0, Change(element))),
            ("coordinator", self._bound(name, after)),
        ]

    def _bound(self, name: str, p: Producer) -> Bound:
        log = self._log(name)
        bound = log[p.next].t.root if p.next < len(log) else END_OF_INPUT
        return Bound(bound, tuple((log[n].t.root, (name, n)) for n in range(p.first, p.next)))

    def _log(self, name: str) -> tuple[Element, ...]:
        return self.deployment.inputs[self.deployment.producers.index(name)]

    # nodes

    def start_node(self, body: Start) -> tuple[Node, Sends]:
        """V.B: fetch the state."""
        return Node(), [("storage", Fetch(body.snapshot))]

    def on_fetched(self, n: Node, body: Fetched) -> tuple[Node, Sends]:
        """V.B: ready with the state of the snapshot."""
        # PREMISE: this is no copy
        if n.groups is not None:
            return n, ()
        # STATE, RESULT
        return replace(n, groups=body.groups), [("coordinator", Ready())]

    def on_work(self, n: Node, me: str, source: str, body: Work) -> tuple[Node, Sends]:
        """Process speculatively: send the resulting changes, and report both to the acker."""
        # PREMISE: this is no copy
        name = (source, body.number)
        if name in n.seen:
            return n, ()
        # STATE
        step, element = body.step, body.change.element
        grouping = self.deployment.flow[step]
        groups = dict(n.groups or ())
        address = (step, grouping.key(element.value))
        groups[address], changes = regroup(grouping, step, groups.get(address, EMPTY), body.change)
        works = [Work(n.sent + i, step + 1, change) for i, change in enumerate(changes)]
        after = Node(tuple(sorted(groups.items())), n.sent + len(works), n.seen | {name})
        # RESULT
        names = tuple((w.change.element.t.root, (me, w.number)) for w in works)
        report = Report((element.t.root, name), names)
        return after, [*((self._next(me, w), w) for w in works), ("coordinator", report)]

    def _next(self, me: str, work: Work) -> str:
        if work.step < len(self.deployment.flow):
            return self.deployment.node_of(work.step, work.change.element.value)
        return me.replace("node", "barrier")

    def take_snapshot(self, n: Node, body: TakeSnapshot) -> tuple[Node, Sends]:
        """V.A.1: store the state; evict what no window needs any more."""
        groups = n.groups or ()
        flow = self.deployment.flow
        kept = tuple((p, collected(flow[p[0]], group, body.at)) for p, group in groups)
        return replace(n, groups=kept), [("storage", Store(body.at, self.state_at(n, body.at)))]

    def state_at(self, n: Node, at: Root) -> Groups:
        """A node's part of a snapshot: what depends on inputs before it, and no more."""
        flow = self.deployment.flow
        return tuple((p, settled_group(flow[p[0]], group, at)) for p, group in n.groups or ())

    # barriers

    def start_barrier(self, me: str) -> tuple[Barrier, Sends]:
        """V.B: request the last bundle."""
        return Barrier(), [(me.replace("barrier", "consumer"), AskLast())]

    def on_last(self, b: Barrier, body: Last) -> tuple[Barrier, Sends]:
        """V.B: ready with t_last."""
        # PREMISE: this is no copy
        if b.is_ready:
            return b, ()
        # STATE, RESULT
        return replace(b, last=self.last_of(body.bundle), is_ready=True), [("coordinator", Ready())]

    def last_of(self, bundle: Element | None) -> Time | None:
        """t_last, from the last bundle."""
        return bundle.t if bundle else None

    def on_output(self, b: Barrier, me: str, source: str, body: Work) -> tuple[Barrier, Sends]:
        """Hold an output until it is due, and report it; drop what was already released."""
        # PREMISE: this is no copy
        name, (element, sign) = (source, body.number), body.change
        if name in b.seen:
            return b, ()
        # STATE
        counts = Counter(dict(b.outputs))
        if b.last is None or element.t > b.last:
            counts[element] += sign
        outputs = frozenset((e, n) for e, n in counts.items() if n)
        after, sends = self._released(replace(b, outputs=outputs, seen=b.seen | {name}), me)
        # RESULT
        return after, [("coordinator", Report((element.t.root, name))), *sends]

    def on_passed(self, b: Barrier, me: str, frontier: Root) -> tuple[Barrier, Sends]:
        """The frontier has advanced: release what is due."""
        return self._released(replace(b, frontier=max(b.frontier, frontier)), me)

    def on_received(self, b: Barrier, me: str, body: Received) -> tuple[Barrier, Sends]:
        """The consumer has acknowledged a bundle: the next one may be sent."""
        left = tuple(bundle for bundle in b.unacknowledged if bundle[0] > body.number)
        return self._released(replace(b, unacknowledged=left), me)

    def promise(self, b: Barrier, me: str, body: TakeSnapshot) -> tuple[Barrier, Sends]:
        """A snapshot starts; accept it once everything before it has been released."""
        after = replace(b, promised=body.at, frontier=max(b.frontier, body.at))
        return self._released(after, me)

    def release_before(self, b: Barrier) -> Root:
        """The frontier before which outputs may be released."""
        return b.frontier

    def _released(self, b: Barrier, me: str) -> tuple[Barrier, Sends]:
        """V.A.2: send what is due, and accept a snapshot that waited for it."""
        sends: list[tuple[str, MessageBody]] = []
        waiting = due(dict(b.outputs), self.release_before(b), b.last)
        for output in waiting[: max(0, self.most_unacknowledged - len(b.unacknowledged))]:
            b = self._sent(b, output)
            sends.append((me.replace("barrier", "consumer"), Bundle(b.number, output)))
        at = b.promised
        if at is not None and not any(root < at for root in self._held(b)):
            b = replace(b, promised=None)
            sends.append(("coordinator", Accepted(at)))
        return b, sends

    @staticmethod
    def _sent(b: Barrier, output: Element) -> Barrier:
        number = b.number + 1
        return replace(
            b,
            last=output.t,
            number=number,
            unacknowledged=(*b.unacknowledged, (number, output.t.root)),
            outputs=frozenset((e, n) for e, n in b.outputs if e.t > output.t),
        )

    @staticmethod
    def _held(b: Barrier) -> Iterator[Root]:
        """The inputs of outputs that the consumer may not have yet."""
        yield from (root for _, root in b.unacknowledged)
        yield from (element.t.root for element, _ in b.outputs)

    # consumers

    def on_ask(self, c: Consumer, generation: int, source: str) -> tuple[Consumer, Sends]:
        """V.A.2: return the last bundle, and fence older barriers from now on."""
        # PREMISE
        if generation < c.generation:
            return c, ()
        # STATE
        after = c if generation == c.generation else Consumer(generation, 0, c.received)
        # RESULT
        return after, [(source, Last(c.received[-1] if c.received else None))]

    def on_bundle(
        self, c: Consumer, generation: int, source: str, body: Bundle
    ) -> tuple[Consumer, Sends]:
        """V.A.2: receive an output together with its t, and acknowledge it."""
        # PREMISE: it is not from an older barrier; a duplicate is acknowledged again
        if not self.is_current(c, generation):
            return c, ()
        # STATE
        if body.number == c.number + 1:
            c = Consumer(c.generation, body.number, (*c.received, body.output))
        # RESULT
        return c, [(source, Received(body.number))] if body.number <= c.number else []

    def is_current(self, c: Consumer, generation: int) -> bool:
        """May the barrier of this generation still deliver?"""
        return generation == c.generation
