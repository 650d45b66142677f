"""DataFrames with a watermark: what is late, and what is complete, as the simulator says."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.spark.agreement import parts_of

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Visit:
    number: int
    name: str
    at: int


def windows(late="keep", delay=3):
    flow = cw.Flow("windows")
    visits = flow.source("visits", Visit, time="at", watermark=cw.bounded_delay(delay), late=late)
    by_name = visits.key_by("name")
    flow.sink("windows", by_name.window(cw.tumbling(10)).aggregate(n=cw.agg.count()))
    flow.sink("all", visits)
    return flow


def epochs():
    """Times go up and down, so that some come late."""
    rng = random.Random(3)
    numbers = iter(range(1_000))
    return [
        [
            Visit(next(numbers), rng.choice("abc"), 12 * epoch + rng.randrange(-15, 15))
            for _ in range(30)
        ]
        for epoch in range(4)
    ]


def put(folder, epoch, visits):
    folder.mkdir(exist_ok=True)
    rows = [asdict(visit) for visit in visits]
    random.Random(epoch).shuffle(rows)
    path = folder / f"{epoch}.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    os.utime(path, (1_000_000 + epoch, 1_000_000 + epoch))


def frame(spark, folder):
    reader = spark.readStream.schema("number bigint, name string, at bigint")
    stream = reader.option("maxFilesPerTrigger", 1).parquet(str(folder))
    return cutwater_spark.frame(stream, order=["number"])


def run(spark, root, flow, **settings):
    return cutwater_spark.run(
        flow,
        spark,
        sources={"visits": frame(spark, root / "in")},
        sinks={name: root / name for name in ("windows", "all")},
        checkpoint=root / "checkpoint",
        **settings,
    )


def lines_of(folder):
    found = parts_of(folder).items()
    return {epoch: [line for part in parts for line in part] for epoch, parts in found}


def test_windows_over_a_dataframe_are_those_of_the_simulator(spark, tmp_path):
    """Also after a restart, and with what came late written to a side output."""
    given = epochs()
    for epoch in (0, 1):
        put(tmp_path / "in", epoch, given[epoch])
    run(spark, tmp_path, windows())
    for epoch in (2, 3):
        put(tmp_path / "in", epoch, given[epoch])
    result = run(spark, tmp_path, windows())
    wanted = cw.simulate(
        windows(), {"visits": [item for visits in given for item in (*visits, cw.BARRIER)]}
    )
    late = wanted.late_events["visits"]
    assert late, "the example has late events"
    assert result.late == {"visits": len(late)}
    kept = lines_of(tmp_path / "checkpoint" / "late-events" / "visits")
    found = [json.loads(line) for lines in kept.values() for line in lines]
    assert Counter(visit["number"] for visit in found) == Counter(v.number for v in late)
    for sink in ("windows", "all"):
        shown = lines_of(tmp_path / sink)
        for epoch in range(len(given)):
            encoded = Counter(as_line(value) for value in wanted.by_epoch(sink)[epoch])
            assert Counter(shown.get(epoch, [])) == encoded, f"{sink}, epoch {epoch}"


def as_line(value):
    return json.dumps(vars(value), separators=(",", ":")).encode()


def test_what_a_late_filter_cannot_do_is_reported(spark, tmp_path):
    for epoch, visits in enumerate(epochs()[:2]):
        put(tmp_path / "in", epoch, visits)
    with pytest.raises(RunError, match="late-event"):
        run(spark, tmp_path, windows("fail", delay=0))
    with pytest.raises(RunError, match="close-of-a-frame"):
        run(spark, tmp_path, windows(), close=True)
    source = {"visits": frame(spark, tmp_path / "in")}
    with pytest.raises(RunError, match="no-place-for-late-events"):
        cutwater_spark.transform(windows(), source, checkpoint=tmp_path / "query")
    numbered = cw.Flow("numbered")
    numbered.sink("out", numbered.source("visits", Visit).batch())
    with pytest.raises(RunError, match="no-times"):
        cutwater_spark.transform(numbered, source, checkpoint=tmp_path / "query")
    with pytest.raises(RunError, match="is bound to JsonLines"):
        cutwater_spark.transform(
            windows("drop"), {"visits": str(tmp_path)}, checkpoint=tmp_path / "query"
        )
