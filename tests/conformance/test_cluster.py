"""The same flow, unchanged, on a standalone cluster of two workers."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.spark.agreement import parts_of
from support.spark.standalone_cluster import standalone_cluster

FLOW = """
from dataclasses import dataclass

import cutwater as cw
from labels import label


@dataclass(frozen=True)
class Click:
    user: str
    at: int


@cw.task(initial=0)
def count(seen: int, click: Click) -> tuple[int, list[str]]:
    return seen + 1, [label(click.user, seen + 1)]


flow = cw.Flow("clicks")
clicks = flow.source("clicks", Click, time="at", watermark=cw.bounded_delay(2))
flow.sink("counts", clicks.key_by("user").apply(count))
flow.sink(
    "windows",
    clicks.key_by("user").window(cw.tumbling(10)).aggregate(clicks=cw.agg.count()),
)
inputs = {"clicks": [Click(f"u{n % 5}", n) for n in range(40)]}
"""

LABELS = """
def label(user, number):
    return f"{user}:{number}"
"""


def lines(folder: Path) -> list[str]:
    return sorted(line.decode() for parts in parts_of(folder).values() for p in parts for line in p)


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_runs_on_a_cluster_as_it_runs_in_memory(tmp_path):
    job, labels = tmp_path / "job.py", tmp_path / "labels.py"
    job.write_text(textwrap.dedent(FLOW))
    labels.write_text(textwrap.dedent(LABELS))
    (tmp_path / "in").mkdir()
    for number in range(4):
        rows = [{"user": f"u{n % 5}", "at": n} for n in range(10 * number, 10 * number + 10)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "in" / f"{number}.jsonl").write_text(text)
    cutwater = [Path(sys.executable).parent / "cutwater"]

    def command(*arguments):
        done = subprocess.run([*cutwater, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with standalone_cluster(tmp_path) as master:
        places = ["--source", "clicks=in", "--sink", "counts=counts", "--sink", "windows=windows"]
        cap = ["--max-bytes-per-epoch", "600", "--close", "--checkpoint", "state"]
        command("run", "job.py:flow", *places, *cap, "--master", master)
        executors = list(tmp_path.glob("worker-*/app-*/*/stderr"))
    simulated = json.loads(command("simulate", "job.py:flow", "--json"))["sinks"]
    for sink in ("counts", "windows"):
        expected = [value for epoch in simulated[sink] for value in epoch]
        assert sorted(map(json.loads, lines(tmp_path / sink)), key=str) == sorted(expected, key=str)
    assert len({path.parts[-4] for path in executors}) == 2
