"""Two clocks on real Spark, against the simulator and the oracle."""

import msgspec
import pytest
from support.flows.beliefs import Believed, believed, bitemporal, draw
from support.spark.agreement import assert_agreement, expected, offsets_of, write_lines

from cutwater import spark as cutwater_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_beliefs_are_those_of_the_simulator_in_each_epoch(spark, tmp_path):
    invoices, rates = draw(3)
    write_lines(tmp_path / "in" / "invoices", invoices, 4)
    write_lines(tmp_path / "in" / "rates", rates, 3)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    names = ["invoices", "rates"]
    cutwater_spark.run(
        bitemporal.turnover,
        spark,
        sources={n: cutwater_spark.json_lines(str(tmp_path / "in" / n), 300) for n in names},
        sinks={"beliefs": out},
        checkpoint=checkpoint,
        permute=5,
        close=True,
    )
    offsets = offsets_of(checkpoint, names)
    wanted = expected(bitemporal.turnover, checkpoint, offsets, is_closed=True)
    assert_agreement(wanted, {"beliefs": out})
    rows = [msgspec.json.decode(line, type=Believed) for rows in wanted["beliefs"] for line in rows]
    assert len(rows) == len(set(rows))
    assert set(rows) == believed(invoices, rates)
