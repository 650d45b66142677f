"""The template and asset files of the HTML pages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

__all__ = ["asset", "filled"]

_ASSETS = files("cutwater.report") / "assets"


def asset(name: str) -> str:
    """The text of an asset file of this package."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def filled(name: str, parts: Mapping[str, str]) -> str:
    """A template with each ``{{part}}`` replaced; inserted text is not substituted again."""
    before, *rest = asset(name).split("{{")
    pieces = [before]
    for piece in rest:
        part, after = piece.split("}}", 1)
        pieces += [parts[part], after]
    return "".join(pieces)
