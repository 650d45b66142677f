"""docs/experiment.md shows the results beside it, by the functions of the benchmark."""

import doctest
import importlib
import json
import re
import sys
from itertools import islice

import pytest
from support.repo.package import ROOT

FOLDER = ROOT / "benchmarks" / "experiment"
NAMES = ("documents", "figures", "flink_home", "inverted_index", "observer", "results", "sides")
OURS, FLINK = "Cutwater, real time", "Flink"


@pytest.fixture(scope="module")
def experiment():
    """The modules of the benchmark by their names, which others may have, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        for name in NAMES:
            patch.delitem(sys.modules, name, raising=False)
        found = {name: importlib.import_module(name) for name in NAMES}
        yield found
        for name in NAMES:
            del sys.modules[name]


@pytest.fixture
def results(experiment):
    return experiment["results"]


@pytest.fixture
def page():
    return (ROOT / "docs" / "experiment.md").read_text()


@pytest.fixture
def measured(results):
    kept = json.loads((ROOT / "docs" / "experiment.json").read_text())
    return [results.Measured.of_json(side) for side in kept["sides"]]


def side(results, engine, interval, *p50s, guarantee="exactly-once"):
    """A side whose percentiles are p50, and twice, three times and four times as much."""
    found = [
        p50 and {f"p{n}": p50 * times for times, n in enumerate(results.PERCENTILES, start=1)}
        for p50 in p50s
    ]
    return results.Measured(engine, guarantee, "", interval, found)


def test_the_table_of_the_page_is_that_of_the_results(page, results, measured):
    found = re.search(r"<!-- by benchmarks/experiment -->\n((?:\|.*\n)+)", page)
    assert found[1] == results.table(measured)


def test_the_page_says_what_holds_and_what_does_not(page, experiment, measured):
    sides, results = experiment["sides"], experiment["results"]
    sentences = results.sentences(measured, sides.OURS, [sides.FLINK, sides.PYFLINK])
    has_figures = any(side.values("p50") for side in measured)
    assert bool(sentences) == has_figures
    assert ("Nothing was measured yet" in page) == (not has_figures)
    assert [sentence for sentence in sentences if f"- {sentence}\n" not in page] == []


@pytest.mark.parametrize("name", ["figures", "observer", "results"])
def test_examples_of_the_benchmark(experiment, name):
    result = doctest.testmod(experiment[name])
    assert (result.failed, result.attempted > 0) == (0, True)


def test_a_row_has_the_medians_and_every_p50(results):
    row = results.table([side(results, OURS, 50, 20.0, 30.0, 25.0)]).splitlines()[2]
    assert row == (
        "| Cutwater, real time | exactly-once | 50 ms | 25 (20, 30, 25) | 50 | 75 | 100 |"
    )


def test_a_repetition_that_failed_is_reported(results):
    row = results.table([side(results, OURS, None, 20.0, None)]).splitlines()[2]
    assert "| — | 20 (20); 1 of 2 failed | 40 |" in row


def test_a_side_of_which_nothing_was_measured_is_reported(results):
    row = results.table([side(results, OURS, None, None)]).splitlines()[2]
    assert "| not measured; 1 of 1 failed |" in row


def test_what_was_to_be_shown_holds(results):
    sides = [side(results, OURS, 50, 20.0), side(results, OURS, 1000, 21.0)]
    sides += [side(results, FLINK, 50, 40.0), side(results, FLINK, 1000, 600.0)]
    sentences = results.sentences(sides, OURS, [FLINK])
    assert sentences[0].endswith("within 10 %: holds (1.05x)")
    assert sentences[1].endswith("it grows: holds (15.0x)")
    assert sentences[2] == (
        "Cutwater, real time / Flink, p50: 0.50 at 50 ms, 0.04 at 1000 ms; "
        "ahead at every interval: holds"
    )
    assert len(sentences) == 6


def test_what_was_to_be_shown_does_not_hold(results):
    sides = [side(results, OURS, 50, 20.0), side(results, OURS, 1000, 23.0)]
    sides += [side(results, FLINK, 50, 19.0), side(results, FLINK, 1000, 19.0)]
    sentences = results.sentences(sides, OURS, [FLINK])
    assert sentences
    assert all("does NOT hold" in sentence for sentence in sentences)


def test_ratios_are_of_the_same_repetition(results):
    """In one that failed on a side there is none."""
    sides = [side(results, OURS, 50, 10.0, None, 30.0), side(results, FLINK, 50, 20.0, 1.0, 100.0)]
    assert "p50: 0.40 at 50 ms;" in results.sentences(sides, OURS, [FLINK])[0]


def test_a_panel_has_the_sides_of_its_interval_and_those_without(experiment, results):
    sides = [side(results, OURS, None, 5.0, guarantee="none"), side(results, FLINK, 50, 9.0)]
    sides += [side(results, FLINK, 500, 99.0), side(results, OURS, 50, None)]
    assert experiment["figures"].bars(sides, 50) == [
        ("Cutwater, real time, none", [5.0, 10.0, 15.0, 20.0]),
        ("Flink, exactly-once", [9.0, 18.0, 27.0, 36.0]),
    ]


def test_a_document_is_out_with_the_last_of_its_changes(experiment):
    """The oracle of the example: the changes of all documents, counted by name."""
    index = experiment["inverted_index"]
    due = list(islice(experiment["documents"].due_changes(), 40))
    assert due[0] == ("d0", len(index.words(index.document(0).text)))
    assert due[5][0] == due[2][0] == "d2"
    assert due[5][1] > due[2][1]


def test_words_of_the_corpus_file_are_those_of_the_corpus(experiment, tmp_path):
    index = experiment["inverted_index"]
    experiment["documents"].write_corpus(tmp_path / "corpus")
    lines = (tmp_path / "corpus").read_text().splitlines()
    assert list(map(index.words, lines)) == list(map(index.words, index.corpus()))


def test_sides_have_files_of_their_own(experiment):
    sides = experiment["sides"].SIDES
    assert len({side.file for side in sides}) == len({side.name for side in sides}) == len(sides)


def test_flink_begins_with_its_newest_checkpoint(experiment, tmp_path):
    sides = experiment["sides"]
    place = sides.Place(tmp_path, "dsn", "url", "table", 50.0)
    flink = next(s for s in sides.SIDES if s.engine == sides.FLINK and s.interval_ms == 500)
    assert "execution.state-recovery.path" not in flink._checkpoints(place)
    done = tmp_path / "checkpoints" / "job" / "chk-7"
    done.mkdir(parents=True)
    (tmp_path / "checkpoints" / "job" / "chk-8").mkdir()  # not complete
    (done / "_metadata").touch()
    settings = flink._checkpoints(place)
    assert settings["execution.checkpointing.interval"] == "500 ms"
    assert settings["execution.state-recovery.path"] == f"file://{done}"
