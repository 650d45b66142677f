"""No trace and no note of a check gives a traceback."""

import pytest
from support.fuzz.checkpoints import Item, total
from support.fuzz.mutations import mutations, tolerate

import cutwater as cw
from cutwater.checking import explain
from cutwater.errors import CutwaterError
from cutwater.flow import checked
from cutwater.report import html, text
from cutwater.semantics import simulate
from cutwater.trace import read_trace, write_trace


@pytest.fixture
def flow():
    made = cw.Flow("totals")
    made.sink("out", made.source("items", Item).key_by("name").apply(total))
    return made


def test_a_trace_that_went_wrong_is_a_sentence(flow, tmp_path):
    inputs = {"items": [Item("a", 1), cw.BARRIER, Item("b", 2)]}
    file = tmp_path / "run.jsonl"
    write_trace(simulate(flow, inputs, trace=True).trace, file)

    def look():
        explanation = explain(read_trace(file))
        text.render_text(explanation)
        html.render_html(explanation)

    look()
    for data in mutations(file.read_bytes(), seed=2):
        file.write_bytes(data)
        tolerate(data, look, CutwaterError)


def test_a_note_of_a_check_that_went_wrong_is_none(flow, tmp_path, monkeypatch):
    monkeypatch.setattr(checked, "_file", lambda _: tmp_path / ".cutwater" / "checked.json")
    checked.note_check(flow, 3, 12)
    file = tmp_path / ".cutwater" / "checked.json"
    for data in mutations(file.read_bytes(), seed=3):
        file.write_bytes(data)
        tolerate(data, lambda: checked.noted_check(flow), CutwaterError)
        tolerate(data, lambda: checked.forget_check(flow), CutwaterError)
