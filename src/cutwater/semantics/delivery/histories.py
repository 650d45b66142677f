"""Elements that carry histories: the operation that most systems of the paper run.

It appends each input, a letter, to its state and emits the state. It is order-sensitive, and a
history such as ``"ab"`` shows what an element depends on: a snapshot includes an output's state if
the snapshot's history begins with the output's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from cutwater.errors import InputError, Problem
from cutwater.semantics.delivery.system import EMPTY, Bag, Change, Element, bag

__all__ = [
    "begins_with",
    "chosen",
    "letters",
    "longest",
    "output_of",
    "prefixes",
    "restored_from",
    "saved",
    "state_after",
    "unread",
    "unsaved",
]


_R = TypeVar("_R")


def chosen(recoveries: Mapping[str, _R], name: str) -> _R:
    """The recovery with a name; raises `InputError` if there is none."""
    if name not in recoveries:
        raise InputError(
            Problem(
                "unknown-recovery",
                f"the system has no recovery {name!r}",
                f"it has: {', '.join(recoveries)}",
            )
        )
    return recoveries[name]


def letters(text: str) -> tuple[Element, ...]:
    """The inputs with these letters.

    >>> print(*letters("ab"))
    in a in b
    """
    return tuple(Element("in", letter) for letter in text)


def state_after(history: str) -> Bag:
    """The state after these inputs; empty before the first."""
    return bag(Element("state", history)) if history else EMPTY


def output_of(history: str) -> Element:
    """The output after these inputs."""
    return Element("out", history)


def longest(kind: str, elements: Bag) -> str:
    """The longest history among the elements of a kind; empty if there are none."""
    return max((element.value for element in elements.of_kind(kind)), key=len, default="")


def prefixes(history: str) -> list[str]:
    """All non-empty prefixes of a history, itself included."""
    return [history[: n + 1] for n in range(len(history))]


def unread(inputs: Bag, history: str) -> Bag:
    """The inputs that are not in a history."""
    return inputs - bag(*letters(history))


def saved(kind: str, history: str) -> Bag:
    """The snapshot with a history; none for an empty history."""
    return bag(Element(kind, history)) if history else EMPTY


def begins_with(snapshot: Element, output: Element) -> bool:
    """Does a snapshot include the state that an output shows?"""
    return bool(snapshot.value.startswith(output.value))


def unsaved(working: Bag, outputs: Bag, kind: str) -> Iterator[Change]:
    """Prepare a snapshot: copy the state, once."""
    for state in working.of_kind("state"):
        copy = Element(kind, state.value)
        if copy not in working and copy not in outputs:
            yield bag(state), bag(state, copy)


def restored_from(working: Bag, outputs: Bag, kind: str) -> Element | None:
    """A snapshot that a recovery has read back but not yet turned into a state; None: none."""
    return next((element for element in working.of_kind(kind) if element in outputs), None)
