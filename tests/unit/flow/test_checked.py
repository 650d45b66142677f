"""The note that a flow has been checked."""

import importlib.util

import pytest

from cutwater.flow.checked import forget_check, note_check, noted_check

FLOW = """
import cutwater as cw

def helper(value):
    return value + 1

def step(value: int) -> int:
    return helper(value)

flow = cw.Flow("steps")
flow.sink("out", flow.source("numbers", int).map(step))
"""


@pytest.fixture
def load(tmp_path):
    def load(text=FLOW):
        path = tmp_path / "checked_job.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("checked_job", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.flow

    return load


def test_what_was_noted_is_found_until_it_is_taken_back(load, tmp_path):
    flow = load()
    assert noted_check(flow) is None
    assert note_check(flow, 10, 212) == tmp_path / ".cutwater" / "checked.json"
    found = noted_check(load())
    assert (found.inputs, found.events) == (10, 212)
    forget_check(flow)
    assert noted_check(flow) is None


@pytest.mark.parametrize(
    ("before", "after"), [("return helper(value)", "return helper(2)"), ("value + 1", "value + 2")]
)
def test_another_flow_or_another_helper_was_not_checked(load, before, after):
    note_check(load(), 1, 1)
    assert noted_check(load(FLOW.replace(before, after))) is None
    assert noted_check(load()) is not None


def test_flows_of_one_folder_do_not_know_of_each_other(load):
    note_check(load(), 1, 1)
    other = load(FLOW.replace('"steps"', '"others"'))
    assert noted_check(other) is None
    note_check(other, 2, 2)
    forget_check(other)
    assert noted_check(load()).inputs == 1


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 1}', '{"format": 1, "flows": {"steps": 3}}']
)
def test_a_damaged_note_is_none(load, tmp_path, text):
    flow = load()
    note_check(flow, 1, 1)
    (tmp_path / ".cutwater" / "checked.json").write_text(text)
    assert noted_check(flow) is None
    note_check(flow, 1, 1)
    assert noted_check(flow) is not None


def test_another_version_checked_something_else(load, monkeypatch):
    flow = load()
    note_check(flow, 1, 1)
    monkeypatch.setattr("cutwater.flow.checked._version", lambda: "0.0.1")
    assert noted_check(flow) is None
