"""PyFlink: a running count by key in a `KeyedProcessFunction`, one Python call for each event.

    .venv-pyflink/bin/python pyflink_count.py FOLDER [--state long] [--mode process]

Flink's own CSV reader, that of its tables, reads the files. Python runs inside the JVM
(``python.execution-mode: thread``), with parallelism 2, the heap state backend and a checkpoint
every second to a local folder. The state is a `ValueState` with a dataclass, pickled; ``--state
long`` keeps a bare number instead. Outputs go to Flink's own discarding sink. The process function
notes the time at every 1,000th event: see `steady` for what is timed.

It needs Java 11, 17 or 21; JAVA_HOME says which.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment
from steady import arguments, expected_sum, report

EVERY = 1_000

TABLE = """CREATE TABLE readings (`position` BIGINT, `key` STRING, `value` BIGINT) WITH (
    'connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv',
    'csv.ignore-parse-errors' = 'true')"""
QUERY = "SELECT `key`, `value` FROM readings WHERE `key` <> 'key'"
"""Without the header of each file."""


@dataclass
class Count:
    """What is kept for each key."""

    count: int = 0


class Ticking(KeyedProcessFunction):
    """Notes when events are done, and what the counts add up to, in a file at the end."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        self._ticks: list[tuple[float, int]] = []
        self._sum = 0
        self._events = 0
        self._state = runtime_context.get_state(self.descriptor())

    def descriptor(self) -> ValueStateDescriptor:
        """Of the state."""
        raise NotImplementedError

    def note(self, count: int) -> None:
        """One more event is done."""
        self._sum += count
        self._events += 1
        if self._events == EVERY:
            self._ticks.append((time.monotonic(), EVERY))
            self._events = 0

    def close(self) -> None:
        if self._events:
            self._ticks.append((time.monotonic(), self._events))
        told = json.dumps([self._ticks, self._sum])
        (Path(self._folder) / f"{uuid.uuid4()}.json").write_text(told)


class RunningPickled(Ticking):
    """A dataclass as state."""

    def descriptor(self) -> ValueStateDescriptor:
        return ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY())

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        state = self._state.value() or Count()
        state.count += 1
        self._state.update(state)
        self.note(state.count)
        yield value[0], state.count


class RunningLong(Ticking):
    """A number as state."""

    def descriptor(self) -> ValueStateDescriptor:
        return ValueStateDescriptor("count", Types.LONG())

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._state.value() or 0) + 1
        self._state.update(count)
        self.note(count)
        yield value[0], count


def execute(folder: Path, function: Ticking, mode: str, checkpoints: str) -> None:
    """Run the job to the end."""
    settings = Configuration()
    settings.set_string("python.execution-mode", mode)
    settings.set_string("execution.checkpointing.interval", "1 s")
    settings.set_string("execution.checkpointing.dir", f"file://{checkpoints}")
    settings.set_string("parallelism.default", "2")
    settings.set_string("python.executable", sys.executable)
    settings.set_string("restart-strategy.type", "none")
    settings.set_string("pipeline.object-reuse", "true")
    environment = StreamExecutionEnvironment.get_execution_environment(settings)
    tables = StreamTableEnvironment.create(environment)
    tables.execute_sql(TABLE.format(folder=folder.absolute()))
    readings = tables.to_data_stream(tables.sql_query(QUERY))
    counted = readings.key_by(lambda row: row[0], key_type=Types.STRING()).process(
        function, output_type=Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    sinks = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink
    counted.sink_to(Sink(sinks.v2.DiscardingSink()))
    environment.execute("counts")


def main() -> None:
    """Run the job and print what was measured."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--state", choices=("pickled", "long"), default="pickled")
    parser.add_argument("--mode", choices=("thread", "process"), default="thread")
    given = parser.parse_args()
    # Python inside the JVM does not know of a virtual environment.
    paths = [str(Path(__file__).resolve().parent), sysconfig.get_path("purelib")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as told:
        kind = RunningLong if given.state == "long" else RunningPickled
        execute(given.folder / "csv", kind(told), given.mode, scratch)
        answers = [json.loads(path.read_text()) for path in Path(told).iterdir()]
    report(
        [tuple(tick) for ticks, _ in answers for tick in ticks],
        is_right=sum(total for _, total in answers) == expected_sum(given.rounds, given.keys),
        how=f"{given.mode} mode, {given.state} state, parallelism 2, 1 s checkpoints",
    )


if __name__ == "__main__":
    import pyflink_count  # so that its classes can be pickled by name

    pyflink_count.main()
