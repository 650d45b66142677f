"""``cutwater simulate``: what is shown, to people and to machines."""

import json

import pytest


def test_the_result_is_shown_by_sink_and_epoch(cli, write):
    write()
    done = cli("simulate", "job.py:flow")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "sums\n  epoch 1\n    Item(name='a', size=1)\n  epoch 2\n    Item(name='a', size=3)\n"
    )


def test_json_is_one_document(cli, write):
    write()
    done = cli("simulate", "job.py:flow", "--json")
    assert (done.code, done.err) == (0, "")
    a, b = {"name": "a", "size": 1}, {"name": "a", "size": 3}
    assert json.loads(done.out) == {
        "flow": "totals",
        "epochs": 3,
        "sinks": {"sums": [[a], [b], []]},
        "late": {"items": 0},
        "late_events": {"items": []},
    }


def test_an_epoch_size_cuts_inputs_without_barriers(cli, write):
    path = write()
    path.write_text(path.read_text() + "\nplain = {'items': [Item('a', n) for n in range(5)]}\n")
    done = cli("simulate", "job.py:flow", "--inputs", "job:plain", "--epoch-size", "2", "--json")
    assert [len(epoch) for epoch in json.loads(done.out)["sinks"]["sums"]] == [2, 2, 1, 0]


@pytest.mark.parametrize("inputs", ["job.py:more", "job:more", "other.py:more"])
def test_inputs_from_the_same_file_are_of_the_same_classes(cli, write, inputs):
    path = write()
    path.write_text(path.read_text() + "\nmore = {'items': [Item('b', 7)]}\n")
    write("from job import Item\nmore = {'items': [Item('b', 7)]}\n", "other.py")
    done = cli("simulate", "job.py:flow", "--inputs", inputs)
    assert (done.code, done.err) == (0, "")
    assert "Item(name='b', size=7)" in done.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--inputs", "job.py:number"], "not-inputs"),
        (["--inputs", "job.py:nothing"], "unknown-name"),
        (["--inputs", "gone.py:inputs"], "no-such-file"),
    ],
)
def test_wrong_inputs_are_a_sentence(cli, write, arguments, code):
    write()
    done = cli("simulate", "job.py:flow", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: [{code}]")


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ("{'itms': []}", "unknown-source"),
        ("{}", "missing-input"),
        ("{'items': ['x']}", "record-type"),
        ("{'items': 3}", "not-inputs"),
    ],
)
def test_inputs_that_do_not_fit_are_a_sentence(cli, write, inputs, code):
    path = write()
    path.write_text(path.read_text() + f"\nwrong = {inputs}\n")
    done = cli("simulate", "job.py:flow", "--inputs", "job.py:wrong")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: [{code}")
    assert "Traceback" not in done.err


def test_an_epoch_has_at_least_one_event(cli, write):
    path = write()
    path.write_text(path.read_text() + "\nplain = {'items': [Item('a', 1)]}\n")
    done = cli("simulate", "job.py:flow", "--inputs", "job.py:plain", "--epoch-size", "0")
    assert done.code == 2
    assert "Traceback" not in done.err


def test_a_step_that_fails_is_a_sentence(cli, write):
    path = write()
    path.write_text(path.read_text().replace("state + item.size, [Item", "state / 0, [Item"))
    done = cli("simulate", "job.py:flow")
    assert (done.code, done.out) == (2, "")
    assert "[step-failed] apply 'total' (" in done.err
    assert "ZeroDivisionError" in done.err


ODD = """
import cutwater as cw
from fractions import Fraction

flow = cw.Flow("[red] odd [bold]")
flow.sink("[red][b]", flow.source("[x]", int).map(lambda n: Fraction(n, 3)))
inputs = {"[x]": [1]}
"""


def test_brackets_are_not_markup(cli, write):
    write(ODD)
    done = cli("simulate", "job.py:flow")
    assert (done.code, done.err) == (0, "")
    assert done.out == "[red][b]\n  epoch 1\n    Fraction(1, 3)\n"


def test_values_that_json_does_not_have_are_shown_as_python_does(cli, write):
    write(ODD)
    done = cli("simulate", "job.py:flow", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["sinks"] == {"[red][b]": [["Fraction(1, 3)"], []]}


@pytest.mark.parametrize("value", ["{(n, n): 1}", "2**90", "float('nan')", "'\\ud800'", "{n: {n}}"])
def test_json_is_json_or_a_sentence(cli, write, value):
    write(ODD.replace("Fraction(n, 3)", value))
    done = cli("simulate", "job.py:flow", "--json")
    if done.code == 0:
        json.loads(done.out)
    else:
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(("error: [not-json]", "error: [lost-in-a-sink]"))
