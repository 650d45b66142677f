"""The two systems of P2 that take checkpoints: Flink's (IV.C) and drifting state (V).

=====================================  =====================================================
P2                                     here
=====================================  =====================================================
IV.C: Flink, epochs                    `flink_epochs`
V: drifting state                      `drifting_state`
=====================================  =====================================================

Both restore the newest checkpoint and replay the inputs after it. In Flink an output waits for the
commit; with drifting state it waits for its turn in the order of t(x), while the checkpoint is
taken concurrently. A checkpoint includes the outputs that are not yet released. P2 saves states
only; then an output that waits in a barrier when the system fails is lost ("waiting outputs are
not saved").

Not modelled: the agents, their messages, several operations, several partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

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

__all__ = ["drifting_state", "flink_epochs"]


@dataclass(frozen=True)
class _Epochs:
    """Outputs are computed at once and released when a checkpoint that includes them commits."""

    is_early: bool
    """Are outputs released before the commit?"""
    has_waiting: bool
    """Does a checkpoint include the outputs that wait for it?"""

    def transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        restored = restored_from(working, outputs, "checkpoint")
        if restored:
            waiting = map(output_of, prefixes(restored.value) if self.has_waiting else ())
            made = bag(*[out for out in waiting if out not in outputs])
            yield bag(restored), state_after(restored.value) + made
            return
        history = longest("state", working)
        for x in working.of_kind("in"):
            after = history + x.value
            yield bag(x) + state_after(history), state_after(after) + bag(output_of(after))
        yield from unsaved(working, outputs, "checkpoint")

    def leaving(self, working: Bag, outputs: Bag) -> list[Element]:
        committed = outputs.of_kind("checkpoint")
        return [
            *[e for e in working.of_kind("checkpoint") if e not in outputs],
            *[
                out
                for out in working.of_kind("out")
                if self.is_early or any(begins_with(c, out) for c in committed)
            ],
        ]


def _from_checkpoint(replay: Callable[[Bag, str], Bag]) -> Recovery:
    """F restores the newest checkpoint; `replay` picks the inputs to replay, given its history."""

    def recover(inputs: Bag, outputs: Bag) -> Iterable[Bag]:
        newest = longest("checkpoint", outputs)
        return (saved("checkpoint", newest) + replay(inputs, newest),)

    return recover


def flink_epochs(recovery: str = "newest checkpoint, replay behind it") -> System:
    """Flink: outputs wait for the commit of the checkpoint that includes them."""
    parts = _Epochs(
        is_early=recovery == "release before the commit",
        has_waiting=recovery != "waiting outputs are not saved",
    )
    replay: dict[str, Callable[[Bag, str], Bag]] = {
        "newest checkpoint, replay behind it": unread,
        "release before the commit": unread,
        "waiting outputs are not saved": unread,
        "replay from an older offset": lambda inputs, newest: inputs,
        "replay from a newer offset": lambda inputs, newest: EMPTY,
    }
    return System(
        "epoch commit (Flink)",
        recovery,
        parts.transforms,
        parts.leaving,
        _from_checkpoint(chosen(replay, recovery)),
        snapshots=frozenset({"checkpoint"}),
        holds=begins_with,
    )


@dataclass(frozen=True)
class _Drifting:
    """Inputs are inserted where they belong; outputs this displaces are retracted before release.

    t(x) is the letter, and producers send in its order; inside, inputs overtake each other.
    """

    is_filtering: bool
    """Does the barrier drop outputs that are not after the last one the consumer has?"""
    has_waiting: bool
    """Does a snapshot include the outputs that are not yet released?"""
    is_speculation_saved: bool
    """May a snapshot include an input while an earlier one is still in flight?"""

    @staticmethod
    def is_done(history: str, working: Bag) -> bool:
        """Is nothing in flight that belongs before the end of a history? The acker knows."""
        return not any(x.value < history[-1] for x in working.of_kind("in"))

    def transforms(self, working: Bag, outputs: Bag) -> Iterator[Change]:
        restored = restored_from(working, outputs, "checkpoint")
        if restored:
            emitted_before = "" if self.has_waiting else restored.value
            made = self.emitted(emitted_before, restored.value, outputs)
            yield bag(restored), state_after(restored.value) + made
            return
        history = longest("state", working)
        for x in working.of_kind("in"):
            yield self.inserted(x, history, working, outputs)
        if history and (self.is_speculation_saved or self.is_done(history, working)):
            yield from unsaved(working, outputs, "checkpoint")

    def inserted(self, x: Element, history: str, working: Bag, outputs: Bag) -> Change:
        after = "".join(sorted(history + x.value))
        before = after[: after.index(x.value)]
        displaced = [e for e in working.of_kind("out") if len(e.value) > len(before)]
        made = state_after(after) + self.emitted(before, after, outputs)
        return bag(x, *displaced) + state_after(history), made

    def emitted(self, before: str, after: str, outputs: Bag) -> Bag:
        """The outputs of extending a history from `before` to `after` that may be released."""
        histories = [h for h in prefixes(after) if len(h) > len(before)]
        last = max((out.value[-1] for out in outputs.of_kind("out")), default="")
        return bag(*[output_of(h) for h in histories if not self.is_filtering or h[-1] > last])

    def leaving(self, working: Bag, outputs: Bag) -> list[Element]:
        ready = [out for out in working.of_kind("out") if self.is_done(out.value, working)]
        first = min(ready, key=lambda out: len(out.value), default=None)
        prepared = [e for e in working.of_kind("checkpoint") if e not in outputs]
        return [*prepared, *([first] if first else [])]


def drifting_state(recovery: str = "newest snapshot, replay behind t") -> System:
    """Drifting state: speculative work; outputs are released in order of t, before a snapshot."""
    parts = _Drifting(
        is_filtering=recovery != "last output is not asked for",
        has_waiting=recovery != "waiting outputs are not saved",
        is_speculation_saved=recovery == "snapshot holds speculation",
    )

    def behind(inputs: Bag, newest: str, skipped: int = 0) -> Bag:
        missing = [x for x in inputs if not newest or x.value > newest[-1]]
        return bag(*missing[skipped:])

    replay: dict[str, Callable[[Bag, str], Bag]] = {
        "newest snapshot, replay behind t": behind,
        "last output is not asked for": behind,
        "waiting outputs are not saved": behind,
        "snapshot holds speculation": behind,
        "replay begins one too late": lambda inputs, newest: behind(inputs, newest, 1),
    }
    return System(
        "drifting state (FlameStream)",
        recovery,
        parts.transforms,
        parts.leaving,
        _from_checkpoint(chosen(replay, recovery)),
        snapshots=frozenset({"checkpoint"}),
        holds=begins_with,
    )
