"""Loops in loops, with notifications in the innermost."""

from dataclasses import dataclass

import cutwater as cw
from cutwater.times import in_rounds, rounds_of


@dataclass(frozen=True)
class Item:
    key: str
    at: int
    text: str


Held = tuple[tuple[cw.Product, str], ...]


def received(held: Held, time: cw.Product, item: Item) -> tuple[Held, list[Item | cw.Notify]]:
    *outer, innermost = rounds_of(time)
    ahead = in_rounds(time, (*outer, innermost + 2))
    return (*held, (time, item.text)), [cw.Notify(time), cw.Notify(ahead)]


def completed(held: Held, time: cw.Product) -> tuple[Held, list[Item | cw.Notify]]:
    here = "".join(text for at, text in held if at == time)
    rest = tuple((at, text) for at, text in held if at != time)
    return rest, [Item("told", time.first, here[1:] if here else f"{len(held)}")]


def is_open(item: Item) -> bool:
    return len(item.text) > 1


def telling(source: cw.Stream) -> cw.Stream:
    """Two loops with notifications in the inner one."""

    def inner(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        told = stream.on_complete(received, completed, initial=(), name="tell")
        return told.filter(is_open, name="inner again"), told

    def outer(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        told = stream.iterate(inner, name="inner")
        return told.filter(lambda item: len(item.text) == 2, name="outer again"), told

    return source.iterate(outer, name="outer")


def telling_in_three(source: cw.Stream) -> cw.Stream:
    """Notifications at depth 3."""

    def outermost(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
        told = telling(stream)
        return told.filter(lambda item: len(item.text) == 3, name="outermost again"), told

    return source.iterate(outermost, name="outermost")
