"""Vectorised tasks: their types, and what they do as tasks."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from support.flows import vector_tasks as v

import cutwater as cw
from cutwater.errors import InputError
from cutwater.flow import VectorisedTask
from cutwater.vectors import Keys, run_batch


def test_a_vectorised_task_is_a_task():
    task = v.running_mean
    assert isinstance(task, cw.Task)
    assert isinstance(task, VectorisedTask)
    assert task.name == "running_mean"
    assert task.where.file.endswith("vector_tasks.py")
    assert (task.state_type, task.event_type, task.output_type) == (v.Total, v.Reading, v.Mean)
    after, outputs = task(v.Total(1, 2.0), v.Reading("a", 4.0))
    assert (after, outputs) == (v.Total(2, 6.0), [v.Mean("a", 3.0)])
    assert [type(n) for n in (after.count, after.sum)] == [int, float]


def test_outputs_by_every_annotation():
    def mean(annotation):
        def f(state, event, keys):
            return state, None

        f.__annotations__ = {"return": annotation}
        return cw.vectorised(initial=0)(f).output_type

    assert mean(tuple[int, v.Mean]) is v.Mean
    assert mean(tuple[int, v.Mean | None]) is v.Mean
    assert mean(tuple[int, cw.Emit[v.Mean]]) is v.Mean
    assert mean(tuple[int, cw.Emit[v.Mean] | None, np.ndarray]) is v.Mean
    assert mean(tuple[int, cw.Emit[v.Mean] | v.Mean]) is v.Mean
    assert mean(tuple[int, float, np.ndarray]) is float
    assert mean(tuple[int, cw.Emit]) is mean(tuple[int, None]) is mean(int)


def test_without_annotations_the_state_has_the_type_of_the_initial_one():
    task = cw.vectorised(initial=1.5)(lambda state, event, keys: (state, None))
    assert task.state_type is float
    assert task.layouts.event.columns == {"": "object"}


def test_deletion():
    state, outputs = v.in_threes(2, v.Reading("a", 1.0))
    assert (state, outputs) == (None, [v.Reading("a", 1.0)])


def test_a_name_of_its_own():
    task = cw.vectorised(initial=0, name="other")(v.running_mean.vector)
    assert (task.name, task.f.name) == ("other", "other")


def test_it_can_be_sent_by_name_of_its_parts():
    layouts = pickle.loads(pickle.dumps(v.running_mean.layouts))
    assert layouts == v.running_mean.layouts


def test_it_can_be_sent_to_another_process():
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")

    @cw.vectorised(initial=0)
    def count(seen: int, event: str, keys: cw.Keys) -> tuple[int, int]:
        counts = keys.running_count(start=seen)
        return keys.last(counts), counts

    assert count(1, "a") == (2, [2])
    again = cloudpickle.loads(cloudpickle.dumps(count))
    assert again(1, "a") == (2, [2])
    assert again.layouts == count.layouts


def test_all_of_a_bucket_at_once():
    task, keys = v.running_mean, Keys(np.array([0, 1, 0]), 2)
    readings = [v.Reading("a", 1.0), v.Reading("b", 5.0), v.Reading("a", 3.0)]
    outcome = run_batch(
        task,
        task.layouts.state.of_values([task.initial, v.Total(1, 1.0)]),
        task.layouts.event.of_values(readings),
        keys,
        task.layouts,
    )
    assert task.layouts.state.to_values(outcome.states) == [v.Total(2, 4.0), v.Total(2, 6.0)]
    assert task.layouts.output.to_values(outcome.outputs) == [
        v.Mean("a", 1.0),
        v.Mean("b", 3.0),
        v.Mean("a", 2.0),
    ]
    assert (outcome.rows, outcome.deleted) == (None, None)


@pytest.mark.parametrize(
    ("rows", "outputs", "found"),
    [
        ([0, 0, 2], [1, 2, 3], ([0, 0, 2], [1, 2, 3])),
        ([], [], ([], [])),
        ([True, False, True], [1, 2], ([0, 2], [1, 2])),
        ([True, False, True], [1, 2, 3], ([0, 2], [1, 3])),
        ([False, False, False], [], ([], [])),
        ([False, False, False], [1, 2, 3], ([], [])),
        ([True, False, True], 7, ([0, 2], [7, 7])),
    ],
)
def test_rows_and_their_outputs(rows, outputs, found):
    @cw.vectorised(initial=0)
    def task(state: int, event: int, keys: cw.Keys) -> tuple[int, cw.Emit[int]]:
        return state, cw.Emit(np.array(rows), outputs)

    columns = task.layouts.state.of_values([0]), task.layouts.event.of_values([1, 2, 3])
    outcome = run_batch(task, *columns, Keys(np.zeros(3, int), 1), task.layouts)
    assert (outcome.rows.tolist(), outcome.outputs[""].tolist()) == found


def test_what_is_given_cannot_be_changed_and_stays_as_it_was():
    task = v.changes_its_state
    state = task.layouts.state.of_values([0])
    event = task.layouts.event.of_values([v.Reading("a", 1.0)])
    with pytest.raises(InputError, match="changes an array that it was given"):
        run_batch(task, state, event, Keys(np.zeros(1, int), 1), task.layouts)
    state[""][0] = 5  # ours still can be


def test_another_value_error_is_not_mistaken_for_it():
    @cw.vectorised(initial=0)
    def fails(state: int, event: int, keys: cw.Keys) -> tuple[int, None]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails(0, 1)


def test_a_check_finds_it_in_another_process():
    report = cw.check(v.flow_of(v.running_mean), crashes=0, walks=0, max_states=50)
    (pure,) = [f for f in report.findings if f.check.startswith("purity")]
    assert "not with another hash seed" not in pure.extent


def test_a_check_names_what_an_impure_one_names():
    @cw.vectorised(initial=0.0)
    def drawn(state: float, event: v.Reading, keys: cw.Keys) -> tuple[float, float]:
        return state, np.random.random(len(keys))

    report = cw.check(v.flow_of(drawn), crashes=0, walks=0, max_states=50)
    impurity = next(f for f in report.violations if f.check == "purity of 'drawn'")
    assert "test_vector_tasks.py" in impurity.details[0]
    assert not [f for f in report.findings if f.check.startswith("batches")]


def test_without_numpy_there_is_a_sentence():
    """And a flow without vectorised tasks is none the worse."""
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "import cutwater as cw\n"
        "@cw.vectorised(initial=0)\n"
        "def f(state: int, event: int, keys: cw.Keys) -> tuple[int, None]: return state, None\n"
        "flow = cw.Flow('f'); flow.sink('out', flow.source('in', int).apply(f))\n"
        "try: cw.simulate(flow, {'in': [1]})\n"
        "except cw.CutwaterError as error: print(error)\n"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert "numpy is not installed" in printed
