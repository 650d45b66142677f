"""Loops on real Spark, by both plans, against the simulator."""

import pytest
from support.flows.components_by_log import components, graphs
from support.flows.telling import Item, telling_in_three
from support.spark.agreement import (
    assert_agreement,
    by_input,
    expected,
    input_epochs,
    offsets_of,
    write_lines,
)

import cutwater as cw
from cutwater import spark as cutwater_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_loop_by_a_log_shows_what_the_simulator_shows_for_each_input(spark, tmp_path):
    path = [graphs.Edge(n, n + 1) for n in (4, 2, 3, 0, 1)]
    write_lines(tmp_path / "in", path, 3)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    settings = {
        "sources": {"edges": cutwater_spark.json_lines(str(tmp_path / "in"), 90)},
        "sinks": {"components": out},
        "checkpoint": checkpoint,
    }
    first = cutwater_spark.run(components, spark, permute=5, **settings)
    assert cutwater_spark.describe(checkpoint).loop.round is None, "caught up: the loop is empty"
    cutwater_spark.run(components, spark, close=True, **settings)
    offsets = offsets_of(checkpoint, ["edges"])
    ending = len(offsets) - first.epochs
    numbers = [*input_epochs(offsets[: first.epochs], ["edges"]), *[2] * ending]
    assert first.epochs > 5
    assert ending == 2, "what is behind the loop ends when the loop is empty"
    wanted = expected(components, checkpoint, by_input(offsets, numbers), is_closed=True)
    assert_agreement(wanted, {"components": out}, numbers=numbers)
    assert wanted["components"][1]


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "in one place"])
def test_notifications_at_depth_3_are_those_of_the_simulator(spark, tmp_path, keyed):
    flow = cw.Flow("told")
    source = flow.source("items", Item, time="at", watermark=cw.bounded_delay(1))
    flow.sink("out", telling_in_three(source.key_by("key") if keyed else source))
    items = [Item("ab"[n % 2], n // 2, "xyz"[n % 3] * (1 + n % 3)) for n in range(6)]
    write_lines(tmp_path / "in", items, 3)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    cutwater_spark.run(
        flow,
        spark,
        sources={"items": cutwater_spark.json_lines(str(tmp_path / "in"), 90)},
        sinks={"out": out},
        checkpoint=checkpoint,
        permute=5,
        close=True,
    )
    offsets = offsets_of(checkpoint, ["items"])
    wanted = expected(flow, checkpoint, offsets, is_closed=True)
    assert len(offsets) > 2
    assert any(wanted["out"])
    assert_agreement(wanted, {"out": out})
