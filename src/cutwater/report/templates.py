"""The files that pages are made of."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

__all__ = ["asset", "filled"]

_ASSETS = files("cutwater.report") / "assets"


def asset(name: str) -> str:
    """The text of a file that comes with the package."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def filled(name: str, parts: Mapping[str, str]) -> str:
    """A page in which each ``{{part}}`` is replaced; what is put in is not looked at again."""
    before, *rest = asset(name).split("{{")
    pieces = [before]
    for piece in rest:
        part, after = piece.split("}}", 1)
        pieces += [parts[part], after]
    return "".join(pieces)
