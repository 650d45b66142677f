"""The real-time engine on a standalone cluster of two workers, to PostgreSQL."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.spark.standalone_cluster import standalone_cluster

from cutwater.observers.postgres import PostgresObserver

FLOW = """
from dataclasses import dataclass

import cutwater as cw


@dataclass(frozen=True)
class Click:
    user: str
    at: int


@dataclass(frozen=True)
class Counted:
    user: str
    clicks: int


@cw.task(initial=0)
def count(seen: int, click: Click) -> tuple[int, list[Counted]]:
    return seen + 1, [Counted(click.user, seen + 1)]


flow = cw.Flow("clicks")
flow.sink("counts", flow.source("clicks", Click).key_by("user").apply(count))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_in_real_time_has_its_tasks_on_both_workers(postgres, tmp_path):
    (tmp_path / "job.py").write_text(textwrap.dedent(FLOW))
    (tmp_path / "in").mkdir()
    for number in range(4):
        rows = [{"user": f"u{n % 5}", "at": n} for n in range(10 * number, 10 * number + 10)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "in" / f"{number}.jsonl").write_text(text)
    (tmp_path / "run.toml").write_text(
        '[run]\ncheckpoint = "state"\nmode = "realtime"\npartitions = 2\n'
        '[sources.clicks]\nkind = "json-lines"\npath = "in"\n'
        f'[sinks.counts]\nkind = "postgres"\ntable = "counts"\ndsn = "{postgres.dsn}"\n'
        "create = true\n"
    )
    command = [Path(sys.executable).parent / "cutwater", "run", "job.py:flow"]
    with standalone_cluster(tmp_path, slots=2) as master:  # a reader and two partitions: 3 slots
        done = subprocess.run(
            [*command, "--config", "run.toml", "--master", master],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        executors = {path.parts[-4] for path in tmp_path.glob("worker-*/app-*/*/stderr")}
    rows = PostgresObserver(postgres.dsn, "counts").rows()
    assert sorted((row["user"], row["clicks"]) for row in rows) == [
        (f"u{user}", clicks) for user in range(5) for clicks in range(1, 9)
    ]
    assert executors == {"worker-0", "worker-1"}
