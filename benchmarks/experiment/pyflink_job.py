"""PyFlink: the inverted index in two Python functions, between the Java job's source and sinks.

    .venv-pyflink/bin/python pyflink_job.py SETTINGS

Settings with a dot in their names are Flink's own. It needs Java 11, 17 or 21; JAVA_HOME says
which.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Row, Types
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway

DOCUMENT = Types.ROW([Types.STRING(), Types.STRING()])
POSTING = Types.ROW([Types.STRING(), Types.STRING(), Types.STRING(), Types.BOOLEAN()])
CHANGE = Types.ROW([Types.STRING(), Types.LONG(), Types.STRING(), Types.STRING(), Types.LONG()])


def words(text: str) -> dict[str, list[int]]:
    """The words of a text, and where they stand."""
    found: dict[str, list[int]] = {}
    for place, word in enumerate(re.findall(r"[a-z']+", text.lower())):
        found.setdefault(word, []).append(place)
    return found


class Postings(KeyedProcessFunction):
    """What differs from the last version of a document."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kept = ValueStateDescriptor("words", Types.PICKLED_BYTE_ARRAY())
        self._state = runtime_context.get_state(kept)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        before, now = self._state.value() or {}, words(value[1])
        for word in sorted({*before, *now}):
            if before.get(word) != now.get(word):
                positions = json.dumps(now.get(word, []))
                yield Row(word, value[0], positions, word in before)
        self._state.update(now)


class Changes(KeyedProcessFunction):
    """The next change of a word."""

    def open(self, runtime_context: RuntimeContext) -> None:
        kept = ValueStateDescriptor("word", Types.PICKLED_BYTE_ARRAY())
        self._state = runtime_context.get_state(kept)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        word, document, positions, was_there = value
        number, documents = self._state.value() or (0, 0)
        documents += (positions != "[]") - was_there
        self._state.update((number + 1, documents))
        yield Row(word, number + 1, document, positions, documents)


def build(environment: StreamExecutionEnvironment, settings: dict[str, Any]) -> None:
    """The job, from the Java source to a Java sink."""
    jvm = get_gateway().jvm
    rate = float(settings["rate"])
    source = jvm.Documents(settings["corpus"], settings["began"], rate)
    documents = (
        environment._j_stream_execution_environment.addSource(source)
        .uid("documents")
        .setParallelism(1)
        .map(jvm.Rows.OfDocuments())
        .returns(DOCUMENT.get_java_type_info())
        .setParallelism(1)
    )
    changes = (
        DataStream(documents)
        .key_by(lambda document: document[0], key_type=Types.STRING())
        .process(Postings(), output_type=POSTING)
        .uid("postings")
        .key_by(lambda posting: posting[0], key_type=Types.STRING())
        .process(Changes(), output_type=CHANGE)
        .uid("changes")
    )
    is_exactly_once = settings["guarantee"] == "exactly-once"
    sink = jvm.ExactlyOnceTable if is_exactly_once else jvm.PlainTable
    rows = changes._j_data_stream.map(jvm.Rows.ToChanges())
    rows.addSink(sink(settings["url"], settings["table"])).uid("table")


def main() -> None:
    """Run until the process is ended."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    # Python inside the JVM does not know of a virtual environment.
    paths = [str(Path(__file__).resolve().parent), sysconfig.get_path("purelib")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    configuration = Configuration()
    configuration.set_string("python.executable", sys.executable)
    for name, value in settings.items():
        if "." in name:
            configuration.set_string(name, str(value))
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(environment, settings)
    environment.execute("inverted index")


if __name__ == "__main__":
    import pyflink_job  # so that its classes can be pickled by name

    pyflink_job.main()
