"""The systems of P2's sections II, IV and V, each with its recovery and with broken ones.

All run one operation: it appends each input, a letter, to its state and emits the state (or the
last letters of it). It is sensitive to the order of its inputs, and a history such as ``"ab"`` says
what an element depends on: a snapshot holds an output's state if its history begins with it.

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
II, III.B: Fig. 1, Table II            `released_at_once`
III.F: all operations idempotent       `all_idempotent`
IV.A: MillWheel, strong productions    `strong_productions`
IV.B: Spark, micro-batches             `micro_batches`
IV.C: Flink, epochs                    `flink_epochs`
V: drifting state                      `drifting_state`; small: its agents and messages are not here
=====================================  =====================================================

Not modelled: what a snapshot costs, several operations, several partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations

from cutwater.semantics.delivery import EMPTY, Bag, Change, Element, Recovery, System, bag

__all__ = [
    "SYSTEMS",
    "all_idempotent",
    "drifting_state",
    "flink_epochs",
    "letters",
    "micro_batches",
    "released_at_once",
    "strong_productions",
]


def letters(text: str) -> tuple[Element, ...]:
    """The inputs with these letters.

    >>> print(*letters("ab"))
    in a in b
    """
    return tuple(Element("in", letter) for letter in text)


def _state(history: str) -> Bag:
    return bag(Element("state", history)) if history else EMPTY


def _out(history: str) -> Element:
    return Element("out", history)


def _history(kind: str, elements: Bag) -> str:
    """The longest history among the elements of a kind; empty if there is none."""
    return max((element.value for element in elements.of_kind(kind)), key=len, default="")


def _prefixes(history: str) -> list[str]:
    return [history[: n + 1] for n in range(len(history))]


def _without(inputs: Bag, history: str) -> Bag:
    return inputs - bag(*letters(history))


def _begins_with(snapshot: Element, output: Element) -> bool:
    """Does a snapshot hold the state that an output shows?"""
    return bool(snapshot.value.startswith(output.value))


def _unsaved(working: Bag, outputs: Bag, kind: str) -> Iterator[Change]:
    """A snapshot of the state is prepared: it is copied, once."""
    for state in working.of_kind("state"):
        copy = Element(kind, state.value)
        if copy not in working and copy not in outputs:
            yield bag(state), bag(state, copy)


def _restored(working: Bag, outputs: Bag, kind: str) -> Element | None:
    """A snapshot that a recovery has read back, and of which no state was made yet."""
    return next((element for element in working.of_kind(kind) if element in outputs), None)


@dataclass(frozen=True)
class _Windowed:
    """Outputs leave at once; snapshots are taken now and then."""

    window: int | None
    """How many letters an output has; None: all."""

    def shown(self, history: str) -> Element:
        return _out(history if self.window is None else history[-self.window :])

    def transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        restored = _restored(working, outputs, "snapshot")
        if restored:
            yield bag(restored), _state(restored.value)
        elif not working.of_kind("out"):  # one output channel, emptied in order
            history = _history("state", working)
            for x in working.of_kind("in"):
                after = history + x.value
                yield bag(x) + _state(history), _state(after) + bag(self.shown(after))
            yield from _unsaved(working, outputs, "snapshot")

    @staticmethod
    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        snapshots = [e for e in working.of_kind("snapshot") if e not in outputs]
        return [*working.of_kind("out"), *snapshots]

    def release_again(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        snapshot = _history("snapshot", outputs)
        saved = bag(Element("snapshot", snapshot)) if snapshot else EMPTY
        yield saved + _without(inputs, snapshot)

    def snapshot_only(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        snapshot = _history("snapshot", outputs)
        yield bag(Element("snapshot", snapshot)) if snapshot else EMPTY

    def nothing(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        yield EMPTY

    def any_order(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        """Table II, row 14: inputs that were shown are replayed, and what comes out is not."""
        snapshot = _history("snapshot", outputs)
        used = {letter for out in outputs.of_kind("out") for letter in out.value}
        again = sorted(used - set(snapshot))
        for order in permutations(again):
            history = snapshot + "".join(order)
            yield _state(history) + _without(inputs, history)

    def shown_order(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        shown = Bag(tuple(element for element in outputs if element.kind == "out"))
        for working in self.any_order(inputs, outputs):
            history = _history("state", working)
            if bag(*map(self.shown, _prefixes(history))) == shown:
                yield working


def released_at_once(recovery: str = "replay in any order", window: int | None = 2) -> System:
    """Outputs leave as soon as they are there (Fig. 1, Table II; with all letters, section II).

    The replay that keeps the order reads it off the outputs and computes the state inside F: it is
    no sub-multiset of A ∪ B, and Theorem 1 does not speak of it.
    """
    parts = _Windowed(window)
    recover: dict[str, Recovery] = {
        "replay in any order": parts.any_order,
        "replay in the order that outputs show": parts.shown_order,
        "replay and release again": parts.release_again,
        "last snapshot, no replay": parts.snapshot_only,
        "nothing": parts.nothing,
    }
    return System(
        "released at once",
        recovery,
        parts.transforms,
        parts.leaving,
        recover[recovery],
        snapshots=frozenset({"snapshot"}),
        holds=_begins_with,
    )


def all_idempotent(recovery: str = "replay everything") -> System:
    """Each input becomes one output, and the sink overwrites what is already there.

    "appending sink" is the same recovery where the sink does not.
    """
    is_upsert = recovery != "appending sink"

    def transforms(working: Bag, outputs: Bag) -> Iterator[Change]:
        for x in working.of_kind("in"):
            yield bag(x), bag(_out(x.value))

    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        return [e for e in working.of_kind("out") if not is_upsert or e not in outputs]

    recover: dict[str, Recovery] = {
        "replay everything": lambda inputs, outputs: (inputs,),
        "appending sink": lambda inputs, outputs: (inputs,),
        "no replay": lambda inputs, outputs: (EMPTY,),
    }
    return System("all idempotent", recovery, transforms, leaving, recover[recovery])


def strong_productions(recovery: str = "resend what is not recorded") -> System:
    """MillWheel: the result for an input is stored before anything else may depend on it.

    The state of the operation is its newest production, in B. Results are read from there.
    """
    is_weak = recovery == "release before the write"

    def transforms(working: Bag, outputs: Bag) -> Iterator[Change]:
        newest = _history("production", outputs)
        before = bag(Element("production", newest)) if newest else EMPTY
        if not working.of_kind("production"):  # one write at a time
            for x in working.of_kind("in"):
                after = newest + x.value
                early = bag(_out(after)) if is_weak else EMPTY
                yield bag(x) + before, bag(Element("production", after)) + early
        for stored in outputs.of_kind("production"):
            if _out(stored.value) not in working + outputs:
                yield bag(stored), bag(_out(stored.value))

    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        return [*working.of_kind("production"), *working.of_kind("out")]

    recover: dict[str, Recovery] = {
        "resend what is not recorded": lambda a, b: (_without(a, _history("production", b)),),
        "release before the write": lambda a, b: (_without(a, _history("production", b)),),
        "resend without removing duplicates": lambda a, b: (a,),
        "resend nothing": lambda a, b: (EMPTY,),
    }
    return System(
        "strong productions (MillWheel)",
        recovery,
        transforms,
        leaving,
        recover[recovery],
        snapshots=frozenset({"production"}),
        holds=_begins_with,
    )


@dataclass(frozen=True)
class _Batched:
    """Up to two inputs become one batch, which leaves whole; its last history is the state."""

    is_state_apart: bool
    """Is the state stored apart from the batch's outputs?"""

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
        for chosen in [*permutations(waiting, 1), *permutations(waiting, 2)]:
            added = "".join(x.value for x in chosen)
            batch = tuple(newest[-1] + more for more in _prefixes(added))
            made = {Element("batch", batch), Element(self.stored, batch)}
            yield bag(*chosen) + before, bag(*made)

    @staticmethod
    def leaving(working: Bag, outputs: Bag) -> list[Element]:
        return [*working.of_kind("store"), *working.of_kind("batch")]

    def from_the_newest(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        yield _without(inputs, self.newest(outputs)[-1])

    def newest_again(self, inputs: Bag, outputs: Bag) -> Iterator[Bag]:
        newest = self.newest(outputs)
        yield _without(inputs, newest[0][:-1])  # what the batch before it had


def micro_batches(recovery: str = "rerun the batch that did not finish") -> System:
    """Spark: a batch is worked on atomically, its outputs and its state leave together."""
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
        recover[recovery],
        shown=frozenset({"batch"}),
        snapshots=frozenset({parts.stored}),
        holds=lambda snapshot, output: snapshot.value[-1].startswith(output.value[-1]),
    )


@dataclass(frozen=True)
class _Epochs:
    """Outputs are computed at once and leave when a checkpoint that holds them is committed."""

    is_early: bool
    """Do outputs leave before the commit?"""
    has_pending: bool
    """Does a checkpoint hold the outputs that wait for it?"""

    def transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        restored = _restored(working, outputs, "checkpoint")
        if restored:
            pending = [_out(h) for h in _prefixes(restored.value) if _out(h) not in outputs]
            made = bag(*pending) if self.has_pending else EMPTY
            yield bag(restored), _state(restored.value) + made
            return
        history = _history("state", working)
        for x in working.of_kind("in"):
            after = history + x.value
            yield bag(x) + _state(history), _state(after) + bag(_out(after))
        yield from _unsaved(working, outputs, "checkpoint")

    def leaving(self, working: Bag, outputs: Bag) -> list[Element]:
        committed = outputs.of_kind("checkpoint")
        return [
            *[e for e in working.of_kind("checkpoint") if e not in outputs],
            *[
                out
                for out in working.of_kind("out")
                if self.is_early or any(_begins_with(c, out) for c in committed)
            ],
        ]


def _from_checkpoint(replay: Callable[[Bag, str], Bag]) -> Recovery:
    """F restores the newest checkpoint and replays inputs, given all of them and its history."""

    def recover(inputs: Bag, outputs: Bag) -> Iterable[Bag]:
        newest = _history("checkpoint", outputs)
        saved = bag(Element("checkpoint", newest)) if newest else EMPTY
        return (saved + replay(inputs, newest),)

    return recover


def flink_epochs(recovery: str = "newest checkpoint, replay behind it") -> System:
    """Flink: outputs wait for the commit of the checkpoint that holds them."""
    parts = _Epochs(
        recovery == "release before the commit", recovery != "pending outputs are dropped"
    )
    replay: dict[str, Callable[[Bag, str], Bag]] = {
        "newest checkpoint, replay behind it": _without,
        "release before the commit": _without,
        "pending outputs are dropped": _without,
        "replay from an older offset": lambda inputs, newest: inputs,
        "replay from a newer offset": lambda inputs, newest: EMPTY,
    }
    return System(
        "epoch commit (Flink)",
        recovery,
        parts.transforms,
        parts.leaving,
        _from_checkpoint(replay[recovery]),
        snapshots=frozenset({"checkpoint"}),
        holds=_begins_with,
    )


@dataclass(frozen=True)
class _Drifting:
    """Inputs are inserted where they belong; what that displaces is retracted before it left.

    t(x) is the letter, and producers send in its order; inside, inputs overtake each other.
    """

    is_filtering: bool
    """Does the barrier drop what is not behind the last output that the consumer has?"""
    is_speculation_saved: bool
    """May a snapshot hold an input while one before it is still on its way?"""

    @staticmethod
    def is_done(history: str, working: Bag) -> bool:
        """Is nothing on its way that belongs before the end of a history? The acker knows."""
        return not any(x.value < history[-1] for x in working.of_kind("in"))

    def transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        restored = _restored(working, outputs, "checkpoint")
        if restored:
            yield bag(restored), _state(restored.value) + self.emitted("", restored.value, outputs)
            return
        history = _history("state", working)
        for x in working.of_kind("in"):
            yield self.inserted(x, history, working, outputs)
        if history and (self.is_speculation_saved or self.is_done(history, working)):
            yield from _unsaved(working, outputs, "checkpoint")

    def inserted(self, x: Element, history: str, working: Bag, outputs: Bag) -> Change:
        after = "".join(sorted(history + x.value))
        before = after[: after.index(x.value)]
        displaced = [e for e in working.of_kind("out") if len(e.value) > len(before)]
        made = _state(after) + self.emitted(before, after, outputs)
        return bag(x, *displaced) + _state(history), made

    def emitted(self, before: str, after: str, outputs: Bag) -> Bag:
        """The outputs of an operation that goes from a history on, as far as they may leave."""
        histories = [h for h in _prefixes(after) if len(h) > len(before)]
        last = max((out.value[-1] for out in outputs.of_kind("out")), default="")
        return bag(*[_out(h) for h in histories if not self.is_filtering or h[-1] > last])

    def leaving(self, working: Bag, outputs: Bag) -> list[Element]:
        ready = [out for out in working.of_kind("out") if self.is_done(out.value, working)]
        first = min(ready, key=lambda out: len(out.value), default=None)
        unsaved = [e for e in working.of_kind("checkpoint") if e not in outputs]
        return [*unsaved, *([first] if first else [])]


def drifting_state(recovery: str = "newest snapshot, replay behind t") -> System:
    """Drifting state: work runs ahead, outputs leave in the order of t and wait for no snapshot."""
    parts = _Drifting(
        recovery != "last output is not asked for", recovery == "snapshot holds speculation"
    )

    def behind(inputs: Bag, newest: str, skipped: int = 0) -> Bag:
        missing = [x for x in inputs if not newest or x.value > newest[-1]]
        return bag(*missing[skipped:])

    replay: dict[str, Callable[[Bag, str], Bag]] = {
        "newest snapshot, replay behind t": behind,
        "last output is not asked for": behind,
        "snapshot holds speculation": behind,
        "replay begins one too late": lambda inputs, newest: behind(inputs, newest, 1),
    }
    return System(
        "drifting state (FlameStream)",
        recovery,
        parts.transforms,
        parts.leaving,
        _from_checkpoint(replay[recovery]),
        snapshots=frozenset({"checkpoint"}),
        holds=_begins_with,
    )


SYSTEMS: dict[Callable[[str], System], tuple[str, ...]] = {
    strong_productions: (
        "resend what is not recorded",
        "resend without removing duplicates",
        "resend nothing",
        "release before the write",
    ),
    micro_batches: (
        "rerun the batch that did not finish",
        "rerun the newest batch too",
        "skip the batch that did not finish",
        "state stored apart from outputs",
    ),
    flink_epochs: (
        "newest checkpoint, replay behind it",
        "replay from an older offset",
        "replay from a newer offset",
        "pending outputs are dropped",
        "release before the commit",
    ),
    drifting_state: (
        "newest snapshot, replay behind t",
        "replay begins one too late",
        "last output is not asked for",
        "snapshot holds speculation",
    ),
    all_idempotent: ("replay everything", "appending sink", "no replay"),
    released_at_once: (
        "replay in any order",
        "replay and release again",
        "last snapshot, no replay",
        "replay in the order that outputs show",
    ),
}
"""Each system and its recoveries; the first is its own, the others are broken variants of it."""
