"""Two clocks on our runtime without a JVM, killed at named points, against simulator and oracle."""

import msgspec
import pytest
from support.flows.beliefs import Believed, believed, bitemporal, draw
from support.spark.agreement import assert_agreement, expected
from support.spark.toy_spark import POINTS, ToySpark, make_job

from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import check_support
from cutwater.spark.telemetry.frontiers import FrontierTracker, Position
from cutwater.spark.telemetry.topology import topology_of
from cutwater.times import Product


def write(root, name, items, size):
    for number, start in enumerate(range(0, len(items), size)):
        lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items[start : start + size])
        (root / "in" / name / f"{number:02}").write_bytes(lines)


def run(root, *, buckets=2, kills=(), seed=1):
    flow = bitemporal.turnover
    check_support(spark_plan(flow))
    invoices, rates = draw(seed)
    job = make_job(flow, root, max_bytes_per_epoch=1, permute=3, buckets=buckets)
    write(root, "invoices", invoices, 4)
    write(root, "rates", rates, 3)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, 1)
        toy.run_to_the_end(list(kills), close=True)
    wanted = expected(flow, root / "checkpoint", toy.offsets, is_closed=True)
    assert_agreement(wanted, {"beliefs": job.sinks["beliefs"].root})
    rows = [
        msgspec.json.decode(line, type=Believed) for epoch in wanted["beliefs"] for line in epoch
    ]
    assert len(rows) == len(set(rows))
    assert set(rows) == believed(invoices, rates)
    assert sum(map(bool, wanted["beliefs"])) > 2
    return wanted["beliefs"]


def test_beliefs_are_those_of_the_simulator_in_each_epoch_for_any_number_of_buckets(tmp_path):
    shown = [run(tmp_path / str(buckets), buckets=buckets) for buckets in (1, 2, 16)]
    assert shown[0] == shown[1] == shown[2]


def test_a_step_behind_two_clocks_has_a_frontier_by_each_and_says_who_holds_which(tmp_path):
    job = make_job(bitemporal.turnover, tmp_path)
    tracker = FrontierTracker(topology_of(job))
    tracker.move([Position("invoices", completed=6), Position("rates", completed=2)])
    found = {step.step: step for step in tracker.steps()}
    assert found["beliefs"].completed == Product(6, 2)
    assert [each.source for each in found["beliefs"].holders] == ["invoices", "rates"]
    assert found["by currency"].completed == 6
    asked = {step.step: step for step in tracker.steps("5")}
    assert [each.source for each in asked["beliefs"].holders] == ["rates"]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_changes_nothing(tmp_path, point):
    assert run(tmp_path, kills=["never", point, "never", point])
