"""What may change between two runs: each row of the table in ``docs/operations.md`` is a script.

A flow runs on the toy Spark, then another one over the same checkpoint. Each start goes through
the real `run` up to where a session would begin, so what is refused is refused there.
"""

import json
import re
from dataclasses import dataclass, replace

import pytest
from support.repo.package import ROOT
from support.spark.changes import of_steps, of_times, of_types
from support.spark.changes.of_types import Seen, keeping
from support.spark.changes.script import (
    A,
    B,
    Count,
    Flows,
    Item,
    b,
    changed,
    counting,
    is_large,
    rows_from,
    total,
)

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.flow.steps import Sink
from cutwater.spark import runner

CHANGES = {
    **of_steps.SINKS_AND_SOURCES,
    **of_steps.STATEFUL_STEPS,
    **of_steps.KEYS,
    **of_types.STATES,
    **of_types.RECORDS,
    **of_types.COLUMNS,
    **of_times.TIMES,
    **of_times.AGGREGATES,
    **of_times.WHOLE,
}


@pytest.fixture
def flows(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        yield Flows(tmp_path, patch)


@pytest.mark.parametrize("change", CHANGES)
def test_what_becomes_of_a_change(flows, change):
    for step in CHANGES[change]:
        step(flows)


def test_the_number_of_buckets_changed(flows, monkeypatch):
    flows.run(counting(), [A])
    monkeypatch.setattr(runner, "BUCKETS", 32)
    assert flows.refused(counting()) == changed("it had 16 buckets and has 32")


# --- on Spark itself ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LongerSeen:
    count: int = 0
    name: str = ""
    total: int = 100


@cw.task(initial=LongerSeen(total=0), name="keep")
def keep_longer(seen: LongerSeen, item: Item) -> tuple[LongerSeen, list[Count]]:
    changed = replace(seen, count=seen.count + 1, total=seen.total + item.size)
    return changed, [Count(item.name, changed.count), Count("total", changed.total)]


def changed_in_many_ways():
    flow = cw.Flow("flow")
    items = flow.source("items", Item).filter(is_large)
    kept = items.key_by("name").apply(keep_longer)
    flow.sink("out", kept)
    flow.sink("more", kept)
    flow.sink("beside", items.key_by("name").apply(total))
    return flow


@pytest.mark.spark
def test_spark_resumes_with_a_step_a_sink_a_field_and_a_state_added(spark, tmp_path):
    def run(flow, name, *lines):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        sinks = {step.name: tmp_path / step.name for step in flow.steps if isinstance(step, Sink)}
        return cutwater_spark.run(
            flow,
            spark,
            sources={"items": tmp_path / "in"},
            sinks=sinks,
            checkpoint=tmp_path / "checkpoint",
        )

    run(keeping(Seen), "1.jsonl", B, B, A)
    assert sorted(row["count"] for row in rows_from(0, tmp_path / "out")) == [1, 1, 2]
    result = run(changed_in_many_ways(), "2.jsonl", B, A)
    shown = [b(3), {"name": "total", "count": 102}]
    assert (result.generation, result.epochs) == (2, 1)
    assert rows_from(1, tmp_path / "out") == shown
    assert rows_from(0, tmp_path / "more") == shown
    assert rows_from(0, tmp_path / "beside") == [b(2)]
    with pytest.raises(RunError, match="was removed, and its state would be lost"):
        run(keeping(Seen), "3.jsonl", B)


# --- the table ----------------------------------------------------------------------------------


def rows_of_the_table():
    text = (ROOT / "docs" / "operations.md").read_text()
    table = text.split("## What may change between two runs")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")]
    return [(change.strip().replace("`", ""), verdict.strip()) for change, verdict in rows[1:]]


@pytest.mark.parametrize(("change", "verdict"), rows_of_the_table())
def test_each_row_of_the_table_is_a_script_of_its_name(change, verdict):
    name = "test_" + re.sub(r"[^a-z]+", "_", change.lower()).strip("_")
    assert change in CHANGES or name in globals()
    assert verdict.startswith(("resumes", "refused"))
