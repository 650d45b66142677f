"""The awkward states on Spark: what the simulator refuses comes back changed, or ends the run."""

from __future__ import annotations

import msgspec
import pytest
from conformance.test_toy_awkward_states import GOES_ON_WITH, ITEMS
from support.flows.awkward_states import (
    PATHS,
    Item,
    deep_in_a_field,
    emits_another_type,
    flow_of,
    shared_list,
)
from support.spark.agreement import parts_of

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import StepError

pytestmark = pytest.mark.spark


def all_in_one():
    """A sink for each task that Spark goes on with."""
    flow = cw.Flow("awkward")
    keyed = flow.source("items", Item).key_by("name")
    tasks = [task for task, _ in PATHS if task.name in GOES_ON_WITH]
    for task in [*tasks, shared_list]:
        flow.sink(f"out {task.name}", keyed.apply(task))
    return flow


def run(flow, spark, root):
    (root / "in").mkdir()
    lines = b"".join(msgspec.json.encode(item) + b"\n" for item in ITEMS)
    (root / "in" / "0.jsonl").write_bytes(lines)
    sinks = {step.name: root / step.name for step in flow.steps if step.verb == "sink"}
    cutwater_spark.run(
        flow,
        spark,
        sources={"items": cutwater_spark.json_lines(str(root / "in"), 1)},
        sinks=sinks,
        checkpoint=root / "checkpoint",
    )
    return {name: _shown(folder) for name, folder in sinks.items()}


def _shown(folder):
    parts = parts_of(folder)
    return [msgspec.json.decode(line) for n in sorted(parts) for part in parts[n] for line in part]


def test_states_come_back_as_the_codec_gives_them(spark, tmp_path):
    shown = run(all_in_one(), spark, tmp_path)
    given = [thing for item in ITEMS for thing in (item, cw.BARRIER)]
    shared = cw.simulate(flow_of(shared_list), {"items": given})["out"]
    assert shown.pop("out shared_list") == shared
    assert shown == {f"out {name}": values for name, values in GOES_ON_WITH.items()}


@pytest.mark.parametrize("task", [deep_in_a_field, emits_another_type], ids=lambda t: t.name)
def test_what_an_annotation_does_not_allow_ends_the_run(task, spark, tmp_path):
    with pytest.raises(StepError, match=f"apply '{task.name}'"):
        run(flow_of(task), spark, tmp_path)
