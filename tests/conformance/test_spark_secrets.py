"""On real Spark, with servers that ask for passwords: nothing that a run leaves has one in it."""

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from support.connectors import kafka_broker, postgres_server

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.observers.kafka import KafkaObserver
from cutwater.spark.embedded.session import embedded_session
from cutwater.spark.telemetry.run_log import logging_to

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECRETS = {
    "TOPIC_PASSWORD": kafka_broker.PASSWORD,
    "TABLE_PASSWORD": postgres_server.PASSWORD,
}
PARTS = (kafka_broker.PASSWORD, "pa55")
"""What is looked for: the parts of the passwords that are written the same everywhere."""
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "guarded",
}


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + item.size, [Item(item.name, state + item.size)]


def run_job(given):
    """Read a topic, write a topic and a table, all with passwords; print the settings of Spark."""
    root = Path(given["root"])
    flow = cw.Flow("totals")
    sums = flow.source("items", Item).key_by("name").apply(total)
    flow.sink("table", sums)
    flow.sink("topic", sums)
    cluster = {"servers": given["servers"], "settings": LOGIN, "password_env": "TOPIC_PASSWORD"}
    table = {"dsn": given["dsn"], "table": given["table"], "password_env": "TABLE_PASSWORD"}
    session = embedded_session(root / "scratch", master="local[2]")
    with logging_to(root / "run.jsonl", "totals") as log:
        cutwater_spark.run(
            flow,
            session,
            sources={"items": cutwater_spark.kafka_messages(topic=given["source"], **cluster)},
            sinks={
                "table": cutwater_spark.postgres_table(**table, release="early"),
                "topic": cutwater_spark.kafka_topic(
                    topic=given["sink"], ledger=given["ledger"], key="name", **cluster
                ),
            },
            checkpoint=root / "state",
            on_progress=log.note,
            notify=lambda text: log.event("notice", text=text),
        )
    print(session.sparkContext.getConf().toDebugString())
    session.stop()


@pytest.fixture
def given_servers(broker, postgres, tmp_path):
    schema = f"guarded_{uuid.uuid4().hex[:8]}"
    table = f"{schema}.sums"
    postgres.execute(
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {table} (name text, size bigint)",
        f"GRANT ALL ON SCHEMA {schema} TO guarded",
        f"GRANT ALL ON {table} TO guarded",
    )
    topics = {"source": broker.topic(), "sink": broker.topic()}
    producer = Producer({"bootstrap.servers": broker.servers})
    for number in range(10):
        producer.produce(topics["source"], b'{"name": "k%d", "size": 1}' % (number % 5))
    producer.flush()
    return {
        "root": str(tmp_path),
        "servers": broker.guarded,
        "dsn": postgres.dsn.replace("tester", "guarded"),
        "table": table,
        "ledger": f"ledger-{topics['sink']}",
        **topics,
    }


def test_nothing_that_a_run_leaves_has_a_secret_in_it(given_servers, broker, postgres, tmp_path):
    """In a process of its own: workers have the environment that Spark was started with."""
    script = tmp_path / "secret_job.py"
    script.write_text(
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import conformance.test_spark_secrets as here\n"
        f"here.run_job({given_servers!r})\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env={**os.environ, **SECRETS}
    )
    assert done.returncode == 0, done.stderr
    assert "spark.master" in done.stdout
    assert postgres.execute(f"SELECT count(*) FROM {given_servers['table']}") == [(10,)]
    assert len(list(KafkaObserver(broker.servers, given_servers["sink"]).rows())) == 10
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 20
    for part in PARTS:
        assert [path for path in written if part.encode() in path.read_bytes()] == []
        assert part not in done.stdout + done.stderr
    assert (tmp_path / "run.jsonl").read_text().count('"event": "epoch"') == 1


def test_a_wrong_password_for_a_topic_is_refused_and_not_shown(given_servers, monkeypatch):
    monkeypatch.setenv("WRONG_PASSWORD", "gue55ed")
    flow = cw.Flow("totals")
    flow.sink("out", flow.source("items", Item))
    source = cutwater_spark.kafka_messages(
        topic=given_servers["source"],
        servers=given_servers["servers"],
        settings=LOGIN,
        password_env="WRONG_PASSWORD",
    )
    root = Path(given_servers["root"])
    with pytest.raises(RunError) as refused:
        cutwater_spark.run(
            flow, sources={"items": source}, sinks={"out": root / "out"}, checkpoint=root / "state"
        )
    assert refused.value.problems[0].code == "kafka-login"
    assert "gue55ed" not in str(refused.value)
