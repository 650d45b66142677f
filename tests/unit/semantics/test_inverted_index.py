"""The index that changes add up to is the one that is built from the last versions alone."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import inverted_index as example

Document = example.Document


def applied(changes):
    """The index after changes; the changes of a word come in the order of their numbers."""
    index, numbers = {}, {}
    for change in changes:
        numbers[change.word] = numbers.get(change.word, 0) + 1
        assert change.number == numbers[change.word]
        postings = index.setdefault(change.word, {})
        postings.pop(change.document, None)
        if change.positions:
            postings[change.document] = change.positions
        assert change.documents == len(postings)
    return {word: postings for word, postings in index.items() if postings}


def rebuilt(documents):
    """The index of the last versions, from scratch."""
    index = {}
    for name, text in {document.name: document.text for document in documents}.items():
        for place, word in enumerate(text.split()):
            index.setdefault(word, {}).setdefault(name, []).append(place)
    return {w: {d: tuple(ps) for d, ps in postings.items()} for w, postings in index.items()}


DOCUMENTS = st.lists(
    st.builds(
        Document,
        st.sampled_from("xyz"),
        st.lists(st.sampled_from(["to", "be", "or", "not"]), max_size=6).map(" ".join),
    ),
    max_size=12,
)


@given(DOCUMENTS, st.data())
def test_changes_add_up_to_the_index_of_the_last_versions(documents, data):
    marks = st.sampled_from([[], [cw.BARRIER], [cw.CRASH]])
    inputs = [each for document in documents for each in (document, *data.draw(marks))]
    simulation = cw.simulate(example.flow, {"documents": inputs})
    assert applied(simulation["changes"]) == rebuilt(documents)


def test_nothing_changes_for_a_version_that_is_the_same():
    same = [Document("x", "to be"), Document("x", "to be")]
    assert len(cw.simulate(example.flow, {"documents": same})["changes"]) == 2


@pytest.mark.parametrize("mutant", ["never taken back", "not counted"])
def test_a_wrong_index_is_noticed(mutant):
    documents = [Document("x", "to be"), Document("x", "to")]
    changes = list(cw.simulate(example.flow, {"documents": documents})["changes"])
    if mutant == "never taken back":
        assert applied(changes[:-1]) != rebuilt(documents)
    else:
        with pytest.raises(AssertionError):
            applied([changes[0], changes[0]])


def test_documents_of_the_stream_are_real_and_some_come_again():
    stream = [example.document(n) for n in range(500)]
    assert len({document.name for document in stream}) < len(stream)
    counts = {}
    for document in stream:
        for word, positions in example.words(document.text).items():
            counts[word] = counts.get(word, 0) + len(positions)
    often = sorted(counts.values(), reverse=True)
    assert often[0] > 20 * often[len(often) // 10]  # a few words have most of the work
