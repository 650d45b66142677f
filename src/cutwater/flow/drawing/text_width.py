"""Text that fits: an upper bound on its width in any common font, and truncation.

No font is shipped and none is measured: each kind of character has a width at the upper end of
what the usual sans-serif fonts give it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

__all__ = ["BADGE", "LEGEND", "NAME", "SMALL", "TITLE", "VERB", "Font", "clean"]

# In ems, regular weight; the widest of DejaVu Sans, Verdana and the system fonts.
_WIDTHS = {
    "iIjl|'": 0.36,
    " .,:;!/\\": 0.42,
    'ft()[]-"': 0.47,
    "rJs°*`_": 0.58,
    "{}ħ": 0.72,
    "wGOQCD&+<>=~#^¬±×÷…–—→ŵŉ": 0.90,
    "mMW@%©®¼½¾ÆæŒœĦŴ": 1.08,
    "ЉЊЖШЩЮЫшщюжфыФ": 1.20,
}
_WIDTH = {char: width for chars, width in _WIDTHS.items() for char in chars}
_BOLD = 1.12
_LATIN, _UPPER, _ALPHABET, _SQUARE, _EMOJI = 0.67, 0.80, 0.92, 1.0, 1.3
_TYPICAL = 0.65  # for text that is squeezed to fit anyway

# What XML does not allow, noncharacters, and marks that reverse the text direction.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u200e\u200f\u202a-\u202e]")
_TURNING = re.compile("[\u2066-\u2069\u061c]")


@dataclass(frozen=True, slots=True)
class Font:
    """A size in pixels, and a weight."""

    size: float
    is_bold: bool = False

    def width(self, text: str) -> float:
        """An upper bound on the width of a text in pixels.

        Examples
        --------
        >>> Font(10).width("iii") < Font(10).width("mmm") < Font(10, is_bold=True).width("mmm")
        True
        """
        ems = sum(map(_ems, text))
        return ems * self.size * (_BOLD if self.is_bold else 1.0)

    def fit(self, text: str, room: float) -> str:
        """The text, or as much of it as fits followed by an ellipsis.

        Examples
        --------
        >>> Font(10).fit("running_average", 60)
        'running_…'
        """
        if self.width(text) <= room:
            return text
        end = len(text)
        while end and self.width(text[:end] + "…") > room:
            end -= 1
        return text[:end].rstrip() + "…"

    def is_certain(self, text: str) -> bool:
        """Is the width of every character known? If not, the text must be squeezed to fit."""
        return all(_is_common(char) for char in text)


TITLE = Font(19, is_bold=True)
NAME = Font(14.5, is_bold=True)
VERB = Font(11)
SMALL = Font(11.5)
BADGE = Font(11.5, is_bold=True)
LEGEND = Font(11.5)


def clean(text: str) -> str:
    """The text as one drawable line: single spaces, and � for what has no glyph.

    Examples
    --------
    >>> clean("  two\\n lines\\x00 ")
    'two lines�'
    """
    line = " ".join(text.split())
    return _TURNING.sub("�", _UNPRINTABLE.sub("�", line))


def _ems(char: str) -> float:
    if char in _WIDTH:
        return _WIDTH[char]
    if unicodedata.combining(char):
        return 0.0
    if ord(char) < 0x180:
        return _UPPER if char.isupper() else _LATIN
    if _is_wide(char):
        return _EMOJI if unicodedata.category(char) == "So" else _SQUARE
    return _ALPHABET if _is_common(char) else _TYPICAL


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _is_common(char: str) -> bool:
    """Is it of a script that all fonts draw alike: European alphabets, or East Asian squares?"""
    point = ord(char)
    is_alphabet = point < 0x180 or 0x370 <= point < 0x3E0 or 0x400 <= point < 0x460
    return is_alphabet or char in "‘’“”…–—→" or _is_wide(char)
