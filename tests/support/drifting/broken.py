"""Drifting state with one thing left out or done wrong.

They are there to be refuted, so they are searched reduced (`Drifting.harmless`). One is not:
`ReplaysFromBefore` says only from where producers replay, which no delivery depends on.
"""

from msgspec.structs import replace

from cutwater.semantics.drifting.elements import END_OF_INPUT, Time
from cutwater.semantics.drifting.messages import Work
from cutwater.semantics.drifting.protocol import Drifting


class ForgetsLast(Drifting):
    """A barrier does not take t_last from the last bundle."""

    harmless = frozenset({"last_of"})

    def last_of(self, bundle):
        return None


class TakesTheInputForLast(Drifting):
    """A barrier knows of which input it released something, not what."""

    harmless = frozenset({"last_of"})

    def last_of(self, bundle):
        return Time(bundle.t.root, ((len(self.deployment.flow), 0),)) if bundle else None


class ReleasesBeforeTheAcker(Drifting):
    """A barrier releases what it has, whatever is still on its way."""

    harmless = frozenset({"release_before"})

    def release_before(self, b):
        return END_OF_INPUT


class SnapshotsSpeculation(Drifting):
    """A snapshot holds all that a node has, inputs behind it included."""

    harmless = frozenset({"state_at"})

    def state_at(self, n, at):
        return n.groups or ()


class ReplaysFromBefore(Drifting):
    """Replay begins one input too early: the snapshot holds it already."""

    harmless = frozenset({"replay_from"})

    def replay_from(self, snapshot):
        return (max(0, snapshot[0] - 1), snapshot[1])


class ReplaysFromBeforeToUnnamedState(ReplaysFromBefore):
    """The same, where a state does not know which inputs it is made of: they count as others."""

    harmless = ReplaysFromBefore.harmless | frozenset({"state_at"})

    def state_at(self, n, at):
        return tuple(
            (place, replace(group, present=tuple(self.renamed(e) for e in group.present)))
            for place, group in super().state_at(n, at)
        )

    @staticmethod
    def renamed(element):
        return element._replace(t=Time((0, element.t.root[0])))


class ReplaysFromBehind(Drifting):
    """Replay begins one input too late."""

    harmless = frozenset({"replay_from"})

    def replay_from(self, snapshot):
        return (snapshot[0] + 1, snapshot[1]) if snapshot[0] else snapshot


class SendsTwoBundles(Drifting):
    """A barrier sends a bundle before the one before it was acknowledged."""

    most_unacknowledged = 2


class TakesOldElements(Drifting):
    """A node or a barrier takes elements of all generations."""

    harmless = frozenset({"is_fenced"})

    def is_fenced(self, body):
        return not isinstance(body, Work)


class TakesOldBundles(Drifting):
    """A consumer takes the bundles of any barrier."""

    harmless = frozenset({"is_current", "on_bundle"})

    def is_current(self, c, generation):
        return True

    def on_bundle(self, c, generation, source, body):
        # numbers count within a generation: those of an older barrier say nothing here
        c = replace(c, number=body.number - 1) if generation != c.generation else c
        return super().on_bundle(c, generation, source, body)


class SnapshotsWithoutBarriers(Drifting):
    """P2 as printed: a snapshot is complete when the nodes have accepted it."""

    harmless = frozenset({"accepting"})

    def accepting(self):
        return self.deployment.names("node")


class ReplaysBeforeAllAreReady(Drifting):
    """Producers replay as soon as the first node or barrier is ready."""

    harmless = frozenset({"on_ready"})

    def on_ready(self, c, source):
        if c.ready:
            return c, ()
        others = frozenset(self.deployment.workers) - {source}
        return super().on_ready(replace(c, ready=others), source)
