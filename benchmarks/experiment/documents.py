"""The documents of all sides, and how many change records each of them causes.

Workers import this module by its name.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.append(str(EXAMPLES))

from inverted_index import corpus, document, words  # noqa: E402

__all__ = ["RATE", "due_changes", "write_corpus"]

RATE = 50.0
"""Documents a second, as in the paper."""


def write_corpus(file: Path) -> None:
    """A text on each line, for engines that do not import Python; words stay what they are."""
    file.write_text("".join(f"{' '.join(text.split())}\n" for text in corpus()))


def due_changes() -> Iterator[tuple[str, int]]:
    """For document 0, 1, ...: its name, and how many changes its name has when all its own are out.

    A document is out when so many rows have its name.
    """
    versions: dict[str, dict[str, tuple[int, ...]]] = {}
    totals: Counter[str] = Counter()
    number = 0
    while True:
        made = document(number)
        before, now = versions.get(made.name, {}), words(made.text)
        totals[made.name] += sum(before.get(w) != now.get(w) for w in {*before, *now})
        versions[made.name] = now
        yield made.name, totals[made.name]
        number += 1
