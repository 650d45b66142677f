"""The systems of P2's sections II to IV, each with its own recovery and with broken variants.

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
II, III.B: Fig. 1, Table II            `released_at_once`
III.F: all operations idempotent       `all_idempotent`
IV.A: MillWheel, strong productions    `strong_productions`
IV.B: Spark, micro-batches             `micro_batches`
=====================================  =====================================================

All but the idempotent one run the operation of `histories`; those that take checkpoints
are in `epochs`. Not modelled: what a snapshot costs, several operations or partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from cutwater.semantics.delivery.histories import (
    begins_with,
    chosen,
    longest,
    output_of,
    prefixes,
    restored_from,
    saved,
    state_after,
    unread,
    unsaved,
)
from cutwater.semantics.delivery.system import EMPTY, Bag, Change, Element, Recovery, System, bag

__all__ = ["all_idempotent", "micro_batches", "released_at_once", "strong_productions"]


@dataclass(frozen=True)
class _Windowed:
    """Outputs are released at once; a snapshot is taken after every second input."""

    window: int | None
    """The number of letters an output shows; None: all."""

    def shown(self, history: str) -> Element:
        return output_of(history if self.window is None else history[-self.window :])

    def transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        restored = restored_from(working, outputs, "snapshot")
        if restored:
            yield bag(restored), state_after(restored.value)
        elif not working.of_kind("out"):  # one output channel, drained in order
            history = longest("state", working)
            for x in working.of_kind("in"):
                after = history + x.value
                yield bag(x) + state_after(history), state_after(after) + bag(self.shown(after))
            if len(history) % 2 == 0:
                yield from unsaved(working, outputs, "snapshot")

    @staticmethod
    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        snapshots = [e for e in working.of_kind("snapshot") if e not in outputs]
        return [*working.of_kind("out"), *snapshots]

    def release_again(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        snapshot = longest("snapshot", outputs)
        yield saved("snapshot", snapshot) + unread(inputs, snapshot)

    def snapshot_only(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        yield saved("snapshot", longest("snapshot", outputs))

    def any_order(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        """Table II, row 14: inputs already in outputs are replayed, their outputs suppressed."""
        snapshot = longest("snapshot", outputs)
        used = {letter for out in outputs.of_kind("out") for letter in out.value}
        again = sorted(used - set(snapshot))
        for order in permutations(again):
            history = snapshot + "".join(order)
            yield state_after(history) + unread(inputs, history)

    def shown_order(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        shown = Bag(tuple(element for element in outputs if element.kind == "out"))
        for working in self.any_order(inputs, outputs):
            history = longest("state", working)
            if bag(*map(self.shown, prefixes(history))) == shown:
                yield working


def released_at_once(recovery: str = "replay in any order", window: int | None = 2) -> System:
    """Outputs are released as soon as they exist (Fig. 1, Table II; with all letters, section II).

    The replay that keeps the order reads it off the outputs and computes the state inside F: the
    result is not a sub-multiset of A ∪ B, so Theorem 1 does not apply to it.
    """
    parts = _Windowed(window)
    recover: dict[str, Recovery] = {
        "replay in any order": parts.any_order,
        "replay in the order that outputs show": parts.shown_order,
        "replay and release again": parts.release_again,
        "last snapshot, no replay": parts.snapshot_only,
    }
    return System(
        "released at once",
        recovery,
        parts.transforms,
        parts.leaving,
        chosen(recover, recovery),
        snapshots=frozenset({"snapshot"}),
        holds=begins_with,
    )


def all_idempotent(recovery: str = "replay everything") -> System:
    """Each input becomes one output, and the sink overwrites existing rows.

    "appending sink" is the same recovery with a sink that does not overwrite.
    """
    is_upsert = recovery != "appending sink"

    def transforms(working: Bag, outputs: Bag) -> Iterator[Change]:
        for x in working.of_kind("in"):
            yield bag(x), bag(output_of(x.value))

    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        return [e for e in working.of_kind("out") if not is_upsert or e not in outputs]

    recover: dict[str, Recovery] = {
        "replay everything": lambda inputs, outputs: (inputs,),
        "appending sink": lambda inputs, outputs: (inputs,),
        "no replay": lambda inputs, outputs: (EMPTY,),
    }
    return System("all idempotent", recovery, transforms, leaving, chosen(recover, recovery))


def strong_productions(recovery: str = "resend what is not recorded") -> System:
    """MillWheel: the result for an input is stored before anything else may depend on it.

    The state of the operation is its newest production, in B. Outputs are read from there.
    """
    is_weak = recovery == "release before the write"

    def transforms(working: Bag, outputs: Bag) -> Iterator[Change]:
        newest = longest("production", outputs)
        before = saved("production", newest)
        if not working.of_kind("production"):  # one write at a time
            for x in working.of_kind("in"):
                after = newest + x.value
                early = bag(output_of(after)) if is_weak else EMPTY
                yield bag(x) + before, bag(Element("production", after)) + early
        for stored in outputs.of_kind("production"):
            if output_of(stored.value) not in working + outputs:
                yield bag(stored), bag(output_of(stored.value))

    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        return [*working.of_kind("production"), *working.of_kind("out")]

    recover: dict[str, Recovery] = {
        "resend what is not recorded": lambda a, b: (unread(a, longest("production", b)),),
        "release before the write": lambda a, b: (unread(a, longest("production", b)),),
        "resend without removing duplicates": lambda a, b: (a,),
        "resend nothing": lambda a, b: (EMPTY,),
    }
    return System(
        "strong productions (MillWheel)",
        recovery,
        transforms,
        leaving,
        chosen(recover, recovery),
        snapshots=frozenset({"production"}),
        holds=begins_with,
    )


@dataclass(frozen=True)
class _Batched:
    """Up to two inputs form one batch, released atomically; its last history is the state."""

    is_state_apart: bool
    """Is the state stored separately from the batch's outputs?"""

    @property
    def stored(self) -> str:
        return "store" if self.is_state_apart else "batch"

    def newest(self, outputs: Bag) -> tuple[str, ...]:
        found = [element.value for element in outputs.of_kind(self.stored)]
        return max(found, key=lambda batch: len(batch[-1]), default=("",))

    def transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        if working.of_kind("batch") or working.of_kind("store"):
            return
        newest = self.newest(outputs)
        before = bag(Element(self.stored, newest)) if newest[-1] else EMPTY
        waiting = working.of_kind("in")
        for taken in [*permutations(waiting, 1), *permutations(waiting, 2)]:
            added = "".join(x.value for x in taken)
            batch = tuple(newest[-1] + more for more in prefixes(added))
            made = {Element("batch", batch), Element(self.stored, batch)}
            yield bag(*taken) + before, bag(*made)

    @staticmethod
    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        return [*working.of_kind("store"), *working.of_kind("batch")]

    def from_the_newest(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        yield unread(inputs, self.newest(outputs)[-1])

    def newest_again(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        newest = self.newest(outputs)
        yield unread(inputs, newest[0][:-1])  # the inputs that the previous batch covered


def micro_batches(recovery: str = "rerun the batch that did not finish") -> System:
    """Spark: a batch is processed atomically; its outputs and its state are released together."""
    parts = _Batched(recovery == "state stored apart from outputs")
    recover: dict[str, Recovery] = {
        "rerun the batch that did not finish": parts.from_the_newest,
        "state stored apart from outputs": parts.from_the_newest,
        "rerun the newest batch too": parts.newest_again,
        "skip the batch that did not finish": lambda inputs, outputs: (EMPTY,),
    }
    return System(
        "micro-batches (Spark)",
        recovery,
        parts.transforms,
        parts.leaving,
        chosen(recover, recovery),
        shown=frozenset({"batch"}),
        snapshots=frozenset({parts.stored}),
        holds=lambda snapshot, output: snapshot.value[-1].startswith(output.value[-1]),
    )
