"""What is around a real-time run: where its records come from, and where its rows go."""

from confluent_kafka import Producer
from support.faults.counting_victims import CountingVictim
from support.faults.onlooker import Onlooker, by_bucket, by_key
from support.faults.own_flow import OTHER
from support.faults.pairs import make_pair
from support.faults.realtime_run import ASKED, RealTimeRun, append_lines

from cutwater.spark import json_lines, kafka_messages


class Postgres:
    """From a file that grows to a table."""

    part_of = staticmethod(by_bucket)
    flow = "support.faults.own_flow:flow_to"

    def __init__(self, folder, request):
        self.server = request.getfixturevalue("postgres")
        self.pair = make_pair("postgres-early", folder, request.getfixturevalue)
        self.source = json_lines(str(folder / "in"), grows=True)
        self.append = append_lines(folder / "in" / "1.jsonl")
        self.readers, self.more_sources = 1, {}


class TwoSources(Postgres):
    """From two files that grow, by key, over two levels, to a table."""

    part_of = staticmethod(by_key)

    def __init__(self, folder, request):
        super().__init__(folder, request)
        self.more_sources = {OTHER: json_lines(str(folder / "more"), grows=True)}
        self.flow = "support.faults.own_flow:two_sources_to"
        self._append = append_lines(folder / "more" / "1.jsonl")
        self._append_first, self.append = self.append, self._append_by_key

    def _append_by_key(self, clicks):
        is_first = {True: self._append_first, False: self._append}
        for here, append in is_first.items():
            append([each for each in clicks if (int(each.key[1:]) % 2 == 0) == here])


class Kafka:
    """From a topic, read by two readers, to a topic."""

    part_of = staticmethod(by_key)
    flow = Postgres.flow

    def __init__(self, folder, request):
        self.server = request.getfixturevalue("broker")
        self.pair = make_pair("kafka-early", folder, request.getfixturevalue)
        topic = self.server.topic(partitions=3)
        self.source = kafka_messages(topic=topic, servers=self.server.servers)
        self.readers, self.more_sources = 2, {}
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": self.server.servers, "enable.idempotence": True}
        )

    def append(self, clicks):
        for each in clicks:
            line = f'{{"key":"{each.key}","position":{each.position}}}'
            self._producer.produce(self._topic, line, each.key)
        self._producer.flush()


def make_run(folder, request, kind, *, master="local[*]", conf=None, **asked):
    """A run that has not started, and the server that its rows go to."""
    around = {"postgres": Postgres, "two-sources": TwoSources, "kafka": Kafka}[kind](
        folder, request
    )
    victim = CountingVictim(
        folder,
        around.pair,
        source=around.source,
        more_sources=around.more_sources,
        append=around.append,
        master=master,
        conf=conf or {},
        asked={**ASKED, "readers": around.readers, **asked},
    )
    victim.flow = around.flow
    return RealTimeRun(victim, Onlooker(around.pair.observer.rows, around.part_of)), around.server
