"""An inverted index that is kept up to date: documents in, changes of the index out.

The experiment of "Delivery, Consistency, and Determinism" (section VI). A document that comes again
takes back the words that it no longer has. Order matters, since the changes of a word are numbered;
and the work is unbalanced, since words follow Zipf's law.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import cutwater as cw

Positions = tuple[int, ...]


@dataclass(frozen=True)
class Document:
    """A text, or a new version of it."""

    name: str
    text: str


@dataclass(frozen=True)
class Posting:
    """Where a word stands in a document now; nowhere if it is gone."""

    word: str
    document: str
    positions: Positions
    was_there: bool
    """Had the document the word before?"""


@dataclass(frozen=True)
class Change:
    """A change of the index: it replaces what the index has for the word and the document."""

    word: str
    number: int
    """The changes of a word are numbered from 1."""
    document: str
    positions: Positions
    documents: int
    """How many documents have the word now."""


@dataclass(frozen=True)
class Word:
    """What is kept for each word."""

    changes: int = 0
    documents: int = 0


def words(text: str) -> dict[str, Positions]:
    """The words of a text, and where they stand."""
    found: dict[str, Positions] = {}
    for place, word in enumerate(re.findall(r"[a-z']+", text.lower())):
        found[word] = (*found.get(word, ()), place)
    return found


@cw.task(initial={})
def postings(
    before: dict[str, Positions], document: Document
) -> tuple[dict[str, Positions], list[Posting]]:
    """What differs from the last version of the document."""
    now = words(document.text)
    differing = sorted(w for w in {*before, *now} if before.get(w) != now.get(w))
    return now, [Posting(w, document.name, now.get(w, ()), w in before) for w in differing]


@cw.task(initial=Word())
def changes(word: Word, posting: Posting) -> tuple[Word, list[Change]]:
    """The next change of a word."""
    documents = word.documents + bool(posting.positions) - posting.was_there
    after = Word(word.changes + 1, documents)
    change = Change(posting.word, after.changes, posting.document, posting.positions, documents)
    return after, [change]


flow = cw.Flow("inverted_index")
documents = flow.source("documents", Document)
index = documents.key_by("name").apply(postings).key_by("word").apply(changes)
flow.sink("changes", index)

inputs = {
    "documents": [
        Document("a", "to be or not to be"),
        Document("b", "to do"),
        cw.BARRIER,
        Document("a", "to do is to be"),
    ],
}


@cache
def corpus() -> list[str]:
    """The paragraphs of Python's language reference, as they come with Python itself."""
    from pydoc_data.topics import topics

    texts = [text for _, text in sorted(topics.items())]
    paragraphs = [part for text in texts for part in re.split(r"\n\s*\n", text)]
    return [paragraph for paragraph in paragraphs if len(words(paragraph)) >= 10]


def document(n: int) -> Document:
    """The n-th document of an endless stream: every fifth is a new version of an earlier one."""
    texts = corpus()
    name = n // 2 if n % 5 == 0 else n
    return Document(f"d{name}", texts[n % len(texts)])
