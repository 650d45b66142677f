"""Paths through a model: found, replayed, shrunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from cutwater.checking.explorer.model import A, Model, S
from cutwater.errors import InputError, Problem

__all__ = ["Path", "replay", "shrink"]


@dataclass(frozen=True)
class Path(Generic[S, A]):
    """A run of a model: its initial state, its actions, and the states in between."""

    initial: S
    actions: tuple[A, ...]
    states: tuple[S, ...]
    """One more than there are actions: the first is `initial`."""
    loop: int | None = None
    """The index of the state that the last state equals: the run cycles forever; None: it ends."""

    @property
    def last(self) -> S:
        """The state it ends in."""
        return self.states[-1]

    def __len__(self) -> int:
        return len(self.actions)


def replay(model: Model[S, A], initial: S, actions: Sequence[A]) -> Path[S, A]:
    """The path of these actions; `InputError` at the first that is not enabled."""
    path = _replay(model, initial, actions)
    if len(path) < len(actions):
        at = len(path)
        raise InputError(
            Problem(
                "path-does-not-replay",
                f"action {at} of the path, {actions[at]!r}, is not possible at its position",
                "replay it on the model and the input it was found on",
            )
        )
    return path


def _replay(model: Model[S, A], initial: S, actions: Sequence[A]) -> Path[S, A]:
    states = [initial]
    for action in actions:
        if action not in model.actions(states[-1]):
            break
        states.append(model.step(states[-1], action))
    return Path(initial, tuple(actions[: len(states) - 1]), tuple(states))


def shrink(
    model: Model[S, A], path: Path[S, A], is_still: Callable[[Path[S, A]], bool]
) -> Path[S, A]:
    """A path from which no action can be removed, found by removing ever smaller pieces.

    `is_still` decides whether a shorter path still demonstrates the same.
    """
    actions = path.actions
    size = max(1, len(actions) // 2)
    while size >= 1:
        start, has_shrunk = 0, False
        while start < len(actions):
            shorter = (*actions[:start], *actions[start + size :])
            found = _replay(model, path.initial, shorter)
            if len(found) == len(shorter) and is_still(found):
                path, actions, has_shrunk = found, found.actions, True
            else:
                start += size
        if not has_shrunk or size > len(actions):
            size //= 2
    return path
