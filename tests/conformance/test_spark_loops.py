"""Loops on real Spark, by both plans, against the simulator."""

import json

import pytest
from support.flows.components_by_log import components, graphs
from support.flows.telling import Item, telling_in_three
from support.flows.trails_by_log import Trail, walked, walking
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
from cutwater.spark import runner

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


@pytest.mark.parametrize("plan", ["log", "epoch"])
def test_a_body_that_concatenates_shows_the_same_in_any_number_of_buckets(
    spark, tmp_path, monkeypatch, plan
):
    """Both plans are that of the simulator, whatever the buckets; by the log, several take part."""
    flow = cw.Flow("concatenating")
    left = flow.source("trails", Trail).iterate(walking, plan=plan, name="walk")
    flow.sink("out", left.apply(walked, name="all that left"))
    walks = [Trail("abcde"[n % 5], "xyz"[n % 3] * (1 + n % 2), n % 3) for n in range(6)]
    write_lines(tmp_path / "in", walks, 3)
    shown = []
    for buckets in (1, 2, 16):
        monkeypatch.setattr(runner, "BUCKETS", buckets)
        out, checkpoint = tmp_path / f"out {buckets}", tmp_path / f"checkpoint {buckets}"
        cutwater_spark.run(
            flow,
            spark,
            sources={"trails": cutwater_spark.json_lines(str(tmp_path / "in"), 90)},
            sinks={"out": out},
            checkpoint=checkpoint,
            partitions=min(buckets, 2),
            permute=5,
        )
        offsets = offsets_of(checkpoint, ["trails"])
        numbers = input_epochs(offsets, ["trails"])
        wanted = expected(flow, checkpoint, by_input(offsets, numbers), is_closed=False)
        assert_agreement(wanted, {"out": out}, numbers=numbers)
        shown.append(wanted["out"])
    assert shown[0] == shown[1] == shown[2]
    assert len(shown[0]) > 1
    assert all(shown[0])


def counted(count: int, time: int, item: Item) -> tuple[int, list[str | cw.Notify]]:
    return count + 1, []


def announced(count: int, time: int) -> tuple[int, list[str | cw.Notify]]:
    """How many have come; from the first request on also of a later time."""
    told = f"{count} by {time}"
    return count, [told, cw.Notify(time + 2)] if time == 1 else [told]


@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "in one place"])
def test_notifications_at_depth_3_are_those_of_the_simulator(spark, tmp_path, keyed):
    flow = cw.Flow("told")
    source = flow.source("items", Item, time="at", watermark=cw.bounded_delay(1))
    flow.sink("out", telling_in_three(source.key_by("key") if keyed else source))
    asked = source.on_complete(counted, announced, initial=0, requests=[1, 900], name="asked")
    flow.sink("asked", asked)
    items = [Item("ab"[n % 2], n // 2, "xyz"[n % 3] * (1 + n % 3)) for n in range(6)]
    write_lines(tmp_path / "in", items, 3)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    cutwater_spark.run(
        flow,
        spark,
        sources={"items": cutwater_spark.json_lines(str(tmp_path / "in"), 90)},
        sinks={"out": out, "asked": tmp_path / "asked"},
        checkpoint=checkpoint,
        permute=5,
        close=True,
    )
    offsets = offsets_of(checkpoint, ["items"])
    wanted = expected(flow, checkpoint, offsets, is_closed=True)
    assert len(offsets) > 2
    assert any(wanted["out"])
    told = [json.loads(line) for epoch in wanted["asked"] for line in epoch]
    assert told == ["6 by 1", "6 by 3", "6 by 900"]
    assert_agreement(wanted, {"out": out, "asked": tmp_path / "asked"})
