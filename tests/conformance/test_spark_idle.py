"""A source that is quiet, on Spark: the others go on, and a restart finds the same decision."""

import json
import threading
from dataclasses import dataclass

import pytest
from support.spark.agreement import assert_agreement, expected, offsets_of, parts_of

import cutwater as cw
from cutwater import spark as cutwater_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE_SECONDS = 300
"""After this the run is stopped in any case, and the test fails."""


@dataclass(frozen=True)
class Item:
    name: str
    at: int


def flow_of_two_sources():
    flow = cw.Flow("quiet")
    rule = cw.bounded_delay(2)
    busy, quiet = (flow.source(name, Item, time="at", watermark=rule) for name in ("busy", "quiet"))
    windows = busy.merge(quiet).key_by("name").window(cw.tumbling(10))
    flow.sink("windows", windows.aggregate(n=cw.agg.count()))
    return flow


def put(root, source, name, *times):
    folder = root / "in" / source
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps({"name": "x", "at": at}) + "\n" for at in times)
    (folder / name).write_text(text)


def test_the_others_go_on_and_what_was_decided_stays(spark, tmp_path):
    flow = flow_of_two_sources()
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    put(tmp_path, "busy", "1", 3, 25)
    put(tmp_path, "quiet", "1", 4)

    def stop():
        for query in spark.streams.active:
            query.stop()

    def run(until, idle_after, on_progress=lambda _progress: None):
        return cutwater_spark.run(
            flow,
            spark,
            sources={
                "busy": cutwater_spark.json_lines(str(tmp_path / "in" / "busy")),
                "quiet": cutwater_spark.json_lines(
                    str(tmp_path / "in" / "quiet"), idle_after=idle_after
                ),
            },
            sinks={"windows": out},
            checkpoint=checkpoint,
            until=until,
            on_progress=on_progress,
        )

    def rows():
        parts = [part for parts in parts_of(out).values() for part in parts]
        return [json.loads(line) for part in parts for line in part]

    def assert_agrees():
        offsets = offsets_of(checkpoint, ["busy", "quiet"])
        assert_agreement(expected(flow, checkpoint, offsets), {"windows": out})

    def held(step):
        found = cutwater_spark.read_frontiers(checkpoint).steps
        return next((f.completed, [h.label for h in f.holders]) for f in found if f.step == step)

    run("caught-up", None)
    assert rows() == []
    assert held("window") == (1, ["quiet"])
    deadline = threading.Timer(PATIENCE_SECONDS, stop)
    deadline.start()
    try:
        run("stopped", 0.001, lambda _progress: stop() if rows() else None)
    finally:
        deadline.cancel()
    assert [row["n"] for row in rows()] == [2]
    assert cutwater_spark.describe(checkpoint).sources["quiet"].is_idle
    assert held("window") == (22, ["busy", "quiet"])
    # A lost commit replays the epoch of the decision, without idle_after this time.
    commits = [path for path in (checkpoint / "spark" / "commits").iterdir() if path.name.isdigit()]
    newest = max(commits, key=lambda path: int(path.name))
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    put(tmp_path, "quiet", "2", 21, 22, 23)
    put(tmp_path, "busy", "2", 50)
    result = run("caught-up", None)
    assert result.late["quiet"] == 2
    assert result.late["busy"] == 0
    assert_agrees()
