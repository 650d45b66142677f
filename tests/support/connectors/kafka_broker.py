"""A Kafka broker on loopback, with its own data: it can be stopped, killed and started again."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from support.connectors import kafka_jars
from support.repo.not_run import need

from cutwater.spark.embedded.java import java_home

PATIENCE_S = 60
JVM = ["-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
LOGGING = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]

PASSWORD = "sesame-7f3a"
"""Of the user `guarded`, for the address that needs one."""
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded},LINKED://127.0.0.1:{linked},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded},LINKED://127.0.0.1:{link}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,LINKED:PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config={login} required user_guarded="{password}";
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
controlled.shutdown.enable=false
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=8388608
log.cleaner.delete.retention.ms=1000
log.initial.task.delay.ms=100
log.retention.check.interval.ms=500
"""


class Broker:
    """One node in combined mode; what it knows is in its folder, and stays there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        port, guarded, linked, link, controller = _free_ports(5)
        self.servers = f"127.0.0.1:{port}"
        self.guarded = f"127.0.0.1:{guarded}"
        self.link = (linked, link)
        """A port that clients are told to reach through another, where a proxy may stand."""
        settings = SETTINGS.format(
            port=port,
            guarded=guarded,
            linked=linked,
            link=link,
            controller=controller,
            data=folder / "data",
            login=LOGIN,
            password=PASSWORD,
        )
        (folder / "server.properties").write_text(settings)
        identity = uuid.uuid4().hex[:22]
        options = ("format", "-t", identity, "-c", str(folder / "server.properties"))
        self._java("kafka.tools.StorageTool", *options).wait(PATIENCE_S)

    def start(self) -> None:
        """Start it, on the same ports and data as before; return when it answers."""
        assert self._process is None
        self._process = self._java("kafka.Kafka", str(self._folder / "server.properties"))
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.1)

    def stop(self) -> None:
        """End it in an orderly way."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Let it hang, with all connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        """The end of its log."""
        return (self._folder / "log").read_text()[-4000:]

    def admin(self) -> AdminClient:
        """Something to look at it and change it with."""
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 2})

    def topic(self, name: str = "", partitions: int = 1, **config: str) -> str:
        """The name of a new topic; dots of its settings are written as underscores."""
        name = name or f"t-{uuid.uuid4().hex[:12]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, partitions, 1, config=settings)
        admin = self.admin()  # what is asked for ends with it
        admin.create_topics([new])[name].result(PATIENCE_S)
        while admin.list_topics(name, timeout=PATIENCE_S).topics[name].error is not None:
            time.sleep(0.01)  # the broker hears of it from its controller, a little later
        return name

    def _answers(self) -> bool:
        try:
            return bool(self.admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _end(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sign)
            self._process.wait(PATIENCE_S)
            self._process = None

    def _java(self, main: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [str(java_home() / "bin" / "java"), *JVM, *LOGGING]
        command += ["-cp", f"{kafka_jars.place()}/*", main, *arguments]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


@contextlib.contextmanager
def running_broker() -> Iterator[Broker]:
    """A broker that answers; it ends with the block, and its data goes."""
    if not kafka_jars.place().is_dir():
        need(f"Kafka {kafka_jars.VERSION} is not installed", provided_by="make services")
    folder = Path(tempfile.mkdtemp(prefix="cutwater-kafka-", dir=os.environ.get("TMPDIR")))
    broker = None
    try:
        broker = Broker(folder)
        broker.start()
        yield broker
    finally:
        if broker:
            broker.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One broker for all tests; each test makes topics of its own."""
    with running_broker() as running:
        yield running
