"""Real time from a topic and a table to a topic and a function, by the command line."""

import json
import signal
from collections import defaultdict

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from support.faults.victims import start_cutwater, with_tests
from support.flows import orders_and_payments as job

import cutwater as cw
from cutwater.observers.kafka import KafkaObserver
from cutwater.testing.connectors.processes import kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FLOW = "support.flows.orders_and_payments:flow"
CONFIG = """
[run]
checkpoint = "state"
mode = "realtime"
readers = 2

[sources.orders]
kind = "kafka"
topic = "{orders}"
servers = "{servers}"

[sources.payments]
kind = "postgres"
table = "payments"
dsn = "{dsn}"
key = "id"
transaction = "xid"

[sinks.ordered]
kind = "kafka"
topic = "{ordered}"
servers = "{servers}"
key = "user"
ledger = "ledger-{ordered}"

[sinks.paid]
kind = "call"
function = "support.flows.orders_and_payments:note"
"""


class Shop:
    """A topic and a table to read, a topic and a folder to look at, and runs between them."""

    def __init__(self, folder, broker, postgres):
        self.folder, self._broker, self._postgres = folder, broker, postgres
        self.orders, ordered = broker.topic(partitions=3), broker.topic(partitions=2)
        self._ordered = KafkaObserver(broker.servers, ordered)
        self.calls = folder / "calls"
        self.calls.mkdir()
        columns = (
            'id bigint PRIMARY KEY, "user" text, xid xid8 NOT NULL DEFAULT pg_current_xact_id()'
        )
        postgres.execute(f"CREATE TABLE payments ({columns})")
        text = CONFIG.format(
            orders=self.orders, ordered=ordered, servers=broker.servers, dsn=postgres.dsn
        )
        (folder / "run.toml").write_text(text)

    def take(self, orders):
        """Put orders into the topic, each user's into one partition, and into the table."""
        producer = Producer({"bootstrap.servers": self._broker.servers})
        for order in orders:
            producer.produce(self.orders, json.dumps(vars(order)), order.user)
        producer.flush()
        values = ", ".join(f"({order.id}, '{order.user}')" for order in orders)
        self._postgres.execute(f'INSERT INTO payments (id, "user") VALUES {values}')

    def add_partitions(self, count):
        """Partitions that the topic did not have when the run began."""
        admin = AdminClient({"bootstrap.servers": self._broker.servers})
        for made in admin.create_partitions([NewPartitions(self.orders, count)]).values():
            made.result()

    def start(self, *options):
        config, calls = str(self.folder / "run.toml"), {job.CALLS: str(self.calls)}
        return start_cutwater("run", FLOW, "--config", config, *options, **with_tests(), **calls)

    def ordered(self):
        return by_user(self._ordered.rows())

    def paid(self):
        calls = [call.read_text().splitlines() for call in sorted(self.calls.iterdir())]
        return by_user(json.loads(line) for lines in calls for line in lines)

    def shows(self, sink, orders):
        """Is all of it there? Until then each user has a prefix."""
        wanted = expected(orders)[sink]
        seen = self.ordered() if sink == "ordered" else self.paid()
        assert all(wanted[user][: len(rows)] == rows for user, rows in seen.items())
        return seen == wanted


def by_user(rows):
    found = defaultdict(list)
    for row in rows:
        found[row["user"]].append((row["id"], row["number"]))
    return dict(found)


def expected(orders):
    shown = cw.simulate(job.flow, {"orders": orders, "payments": orders})
    return {sink: by_user(vars(row) for row in shown[sink]) for sink in ("ordered", "paid")}


@pytest.fixture
def shop(tmp_path, broker, postgres):
    return Shop(tmp_path, broker, postgres)


def test_from_kafka_and_postgres_to_kafka_and_a_function_with_a_kill(shop):
    """A kill of everything, and what comes meanwhile; each key's rows once and in order.

    Two readers share the partitions of the topic, also those that it gets while they run.
    """
    shop.take(job.orders(0, 50))
    killed = shop.start("--until", "stopped")
    try:
        wait_until(killed, lambda: shop.ordered() and shop.paid())
    finally:
        kill_all(killed)
    shop.take(job.orders(50, 90))
    process = shop.start("--until", "stopped")
    try:
        wait_until(process, lambda: shop.shows("ordered", job.orders(0, 90)))
        wait_until(process, lambda: shop.shows("paid", job.orders(0, 90)))
        shop.add_partitions(6)
        shop.take(job.orders(90, 130))
        wait_until(process, lambda: shop.shows("ordered", job.orders(0, 130)))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    finally:
        kill_all(process)
    assert process.returncode == 0, err
    assert "stopped, as requested" in out
    assert shop.shows("ordered", job.orders(0, 130))
    assert shop.shows("paid", job.orders(0, 130))
