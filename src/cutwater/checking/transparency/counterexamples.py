"""Shrink counterexamples to failure transparency: fewer crashes, less input, fewer steps.

The result marks what does not matter: values that could be any, and crashes that could be of any
task. A counterexample is replayed from its trace file, or found again by the same search. Not by
hypothesis: a breadth-first search finds the shortest run, which it could only approach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cutwater.checking.transparency.explainability import failure_transparency, is_unexplained
from cutwater.jsonable import plain, shown
from cutwater.semantics.barrier_model import BarrierModel, Fail, Move, Recover, TakeBarrier
from cutwater.semantics.barriers import EventContent, Task
from cutwater.semantics.recording import record
from cutwater.trace import Trace

__all__ = ["Build", "CrashCounterexample", "Inputs", "find_counterexample"]

Inputs = Mapping[str, Sequence[Sequence[Any]]]
"""For each input stream its epochs, each a sequence of words."""

Build = Callable[[Inputs, int], BarrierModel]
"""Builds the model of an input with at most this many crashes."""


@dataclass(frozen=True)
class CrashCounterexample:
    """A run that no run without failures explains."""

    inputs: Inputs
    """The smallest input on which there is one."""
    crashes: int
    """The fewest crashes with which there is one."""
    moves: tuple[Move, ...]
    """The shortest such run."""
    trace: Trace
    any_value: frozenset[tuple[str, int, int]] = frozenset()
    """Stream, epoch from 0 and index of the inputs whose value did not matter."""
    any_task: frozenset[int] = frozenset()
    """Indices of the crashes that could be of any task."""

    def __str__(self) -> str:
        lines = []
        for stream, epochs in self.inputs.items():
            for number, words in enumerate(epochs):
                shown_words = [
                    shown(plain(word)) + ("*" if (stream, number, index) in self.any_value else "")
                    for index, word in enumerate(words)
                ]
                lines.append(f"{stream}, epoch {number + 1}: {', '.join(shown_words) or 'nothing'}")
        lines += [
            f"{index:>3}  {_formatted(move)}"
            + ("  # or any other task" if index in self.any_task else "")
            for index, move in enumerate(self.moves)
        ]
        return "\n".join([*lines, "* or any other value"] if self.any_value else lines)


def _formatted(move: Move) -> str:
    if isinstance(move, Recover):
        return "all recover"
    if isinstance(move, Fail):
        return f"{move.task} crashes"
    if isinstance(move, TakeBarrier):
        return f"{move.task} snapshots"
    content = move.message.content
    word = shown(plain(content.payload)) if isinstance(content, EventContent) else "a barrier"
    return f"{move.task} takes {word} from {move.message.stream}"


def find_counterexample(
    build: Build, inputs: Inputs, *, crashes: int = 2, max_states: int | None = None
) -> CrashCounterexample | None:
    """A run of a model that no failure-free run explains, shrunk; None if none was found.

    Parameters
    ----------
    build
        Builds the model of an input with at most this many crashes.
    inputs
        The input to begin with.
    """

    def found(inputs: Inputs, at_most: int) -> tuple[Move, ...] | None:
        model = build(inputs, at_most)
        result = failure_transparency(model, model.failure_free(), max_states=max_states)
        return None if result.counterexample is None else result.counterexample.actions

    if found(inputs, crashes) is None:
        return None
    fewest = next(count for count in range(crashes + 1) if found(inputs, count) is not None)
    least = _least(inputs, lambda inputs: found(inputs, fewest) is not None)
    moves = found(least, fewest)
    assert moves is not None
    model = build(least, fewest)
    trace = record(model.initial, moves, "counterexample", protocol=model.protocol)
    small = CrashCounterexample(least, fewest, moves, trace)
    return replace(
        small,
        any_value=_free_values(least, lambda inputs: found(inputs, fewest) is not None),
        any_task=frozenset(
            i for i, move in enumerate(moves) if _is_any_task(model, moves, i, move)
        ),
    )


def _least(inputs: Inputs, is_still: Callable[[Inputs], bool]) -> Inputs:
    """Remove whole epochs first, then single words, as long as possible."""
    least = {stream: tuple(map(tuple, epochs)) for stream, epochs in inputs.items()}
    number = max(map(len, least.values())) - 1
    while number >= 0:
        shorter = {stream: e[:number] + e[number + 1 :] for stream, e in least.items()}
        if all(shorter.values()) and is_still(shorter):
            least = shorter
        number -= 1
    for stream, number, index in reversed(_positions(least)):
        words = least[stream][number]
        shorter = _with_words(least, stream, number, words[:index] + words[index + 1 :])
        if is_still(shorter):
            least = shorter
    return least


def _positions(inputs: Inputs) -> list[tuple[str, int, int]]:
    return [
        (stream, number, index)
        for stream, epochs in inputs.items()
        for number, words in enumerate(epochs)
        for index in range(len(words))
    ]


def _with_words(
    inputs: Mapping[str, Any], stream: str, number: int, words: tuple[Any, ...]
) -> dict[str, Any]:
    epochs = inputs[stream]
    return {**inputs, stream: (*epochs[:number], words, *epochs[number + 1 :])}


def _free_values(
    inputs: Inputs, is_still: Callable[[Inputs], bool]
) -> frozenset[tuple[str, int, int]]:
    """Positions at which other words of the same type show it too: a new one, and known ones."""
    known = [word for epochs in inputs.values() for words in epochs for word in words]
    free = set()
    for stream, number, index in _positions(inputs):
        words = tuple(inputs[stream][number])
        others = _others(words[index], known)
        if others and all(
            is_still(
                _with_words(inputs, stream, number, (*words[:index], word, *words[index + 1 :]))
            )
            for word in others
        ):
            free.add((stream, number, index))
    return frozenset(free)


def _others(word: Any, known: Sequence[Any]) -> list[Any]:
    alike = [other for other in known if type(other) is type(word) and other != word]
    if isinstance(word, str):
        alike.append("".join(["other ", *alike]))
    if isinstance(word, (int, float)) and not isinstance(word, bool):
        alike.append(type(word)(1 + abs(word) + sum(map(abs, alike))))
    return alike[-2:]


def _is_any_task(model: BarrierModel, moves: Sequence[Move], index: int, move: Move) -> bool:
    """Would a crash of any other task show the same?"""
    tasks: Sequence[Task] = model.initial.graph.tasks
    if not isinstance(move, Fail) or len(tasks) < 2:
        return False
    return all(
        is_unexplained(
            model, model.failure_free(), [*moves[:index], Fail(t.name), *moves[index + 1 :]]
        )
        for t in tasks
    )
