"""A ``cutwater run`` whose engine fails as it is told: a line ``[KIND, COUNT, FOLDER]`` each.

The first so many starts fail, each as Spark, PostgreSQL, Kafka or the operating system would let
them; later ones end well. What is between the failure and the exit code is the real thing.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from support.endings.kinds import KINDS

import cutwater.cli.commands.run
import cutwater.spark.connectors.kafka.errors
import cutwater.spark.connectors.postgres.connections
import cutwater.spark.job.spec
import cutwater.spark.realtime.drive
import cutwater.spark.telemetry.run_log  # noqa: F401
from cutwater import cli

FLOW = """
from dataclasses import dataclass
import cutwater as cw

@dataclass(frozen=True)
class Item:
    name: str

flow = cw.Flow("items")
flow.sink("out", flow.source("items", Item))
"""


def engine(kind, count, folder):
    """What stands for `cutwater.spark`: fails while there are starts that shall."""

    def run(flow, **options):
        done = len(list(folder.glob("start-*")))
        (folder / f"start-{done}").touch()
        if done < count:
            KINDS[kind].fail()
        return SimpleNamespace(
            flow=flow.name,
            epochs=1,
            generation=done,
            is_stopped=False,
            mode="microbatch",
            rows={},
            bad_records={},
            late={},
        )

    return SimpleNamespace(run=run, json_lines=lambda *_, **__: None)


def run(kind, count, folder):
    """Run the command line with that engine."""
    cli.commands.run.spark_package = lambda: engine(kind, count, folder)
    (folder / "job.py").write_text(FLOW)
    cli.main(["run", f"{folder / 'job.py'}:flow", "--checkpoint", str(folder / "state")])


def start(kind, count, folder):
    """Start the command as a process of its own; its exit code."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 70
    try:
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        run(kind, count, folder)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve():
    """Start what each line asks for, and answer with its exit code; imports are made once."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        run("bug", 0, Path(folder))  # for what the command line imports when it is used
    for line in sys.stdin:
        kind, count, folder = json.loads(line)
        print(start(kind, count, Path(folder)), flush=True)


if __name__ == "__main__":
    serve()
