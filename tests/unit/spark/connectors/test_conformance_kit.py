"""The conformance kit: our own connectors keep its laws, and each law rejects who breaks it."""

import csv
import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.connectors.broken_sinks import BROKEN, COMMITS, Right
from support.connectors.broken_sources import BROKEN_SOURCES, Listed
from support.faults.counting_victims import bound
from support.faults.pairs import PAIRS, make_pair

from cutwater.spark import csv as csv_files
from cutwater.spark import json_lines, kafka_messages, parquet, postgres_rows
from cutwater.spark.connectors.kafka import transactions
from cutwater.testing.connectors import KilledSink, KilledSource, SinkLaws, SourceLaws


def with_kafka_slow(names):
    return [pytest.param(name, marks=pytest.mark.slow if "kafka" in name else ()) for name in names]


class TestOurSinks(SinkLaws):
    @pytest.fixture(autouse=True, params=with_kafka_slow(PAIRS))
    def pair_name(self, request):
        self.name = request.param
        self.has_order = "delta" not in self.name
        yield
        transactions._writers.clear()
        transactions._ledgers.clear()

    def make_sink(self, folder):
        self.pair = make_pair(self.name, folder, self.request.getfixturevalue)
        return bound(self.pair.binding)

    def read(self, sink):
        self.pair.settle()
        return self.pair.observer.rows()


class TestOurSources(SourceLaws):
    @pytest.fixture(
        autouse=True, params=with_kafka_slow(["json", "csv", "parquet", "postgres", "kafka"])
    )
    def kind(self, request):
        self.make_source, self.append = getattr(self, f"_{request.param}")()
        self.files = 0

    def _json(self):
        def append(source, clicks):
            self._file(source).write_text("".join(json.dumps(vars(c)) + "\n" for c in clicks))

        return lambda folder: json_lines(str(_made(folder / "in")), 300), append

    def _csv(self):
        def append(source, clicks):
            with self._file(source).open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["key", "position"])
                writer.writerows((c.key, c.position) for c in clicks)

        return lambda folder: csv_files(str(_made(folder / "in")), max_bytes_per_epoch=300), append

    def _parquet(self):
        def append(source, clicks):
            table = pa.Table.from_pylist([vars(c) for c in clicks])
            pq.write_table(table, self._file(source), row_group_size=20)

        return lambda folder: parquet(str(_made(folder / "in")), max_rows_per_epoch=20), append

    def _postgres(self):
        def make(folder):
            server, table = self.request.getfixturevalue("postgres"), f"c{uuid.uuid4().hex[:12]}"
            server.execute(
                f"CREATE TABLE {table} (id bigserial PRIMARY KEY, key text, position bigint, "
                "xid xid8 NOT NULL DEFAULT pg_current_xact_id())"
            )
            return postgres_rows(
                table=table, dsn=server.dsn, key="id", transaction="xid", max_rows_per_epoch=20
            )

        def append(source, clicks):
            server = self.request.getfixturevalue("postgres")
            values = ", ".join(f"('{c.key}', {c.position})" for c in clicks)
            server.execute(f"INSERT INTO {source.table} (key, position) VALUES {values}")

        return make, append

    def _kafka(self):
        def make(folder):
            broker = self.request.getfixturevalue("broker")
            topic = broker.topic(partitions=2)
            return kafka_messages(topic=topic, servers=broker.servers, max_rows_per_epoch=20)

        def append(source, clicks):
            from confluent_kafka import Producer

            producer = Producer({"bootstrap.servers": source.servers})
            for c in clicks:
                value = json.dumps(vars(c)).encode()
                producer.produce(source.topic, value, partition=c.position % 2)
            producer.flush()

        return make, append

    def _file(self, source):
        self.files += 1
        return Path(source.path) / f"{self.files}.jsonl"


def _made(folder):
    folder.mkdir()
    return folder


LAWS = [name for name in vars(SinkLaws) if name.startswith("test_")]


class InMemory(SinkLaws):
    __test__ = False

    def __init__(self, kind, release):
        self.kind, self.release = kind, release

    def make_sink(self, folder):
        return self.kind(uuid.uuid4().hex, self.release)

    def read(self, sink):
        return list(sink.table.rows)


def broken_laws(kind, release, tmp_path, request):
    """The laws that a sink breaks, by running them all."""
    found = []
    for law in LAWS:
        laws = InMemory(kind, release)
        run = getattr(laws, law)
        more = [{"keep": keep} for keep in (True, False)] if law.endswith("takes_over") else [{}]
        for given in more:
            output = SinkLaws.output.__wrapped__(laws, tmp_path, request)
            try:
                run(output, **given)
            except (Exception, pytest.fail.Exception):
                found.append(law.removeprefix("test_"))
    return found


@pytest.mark.parametrize("release", ["early", "commit"])
def test_a_right_sink_keeps_all_laws(release, tmp_path, request):
    assert broken_laws(Right, release, tmp_path, request) == []


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_sink_is_rejected_by_its_law(kind, tmp_path, request):
    release = "commit" if kind in COMMITS else "early"
    assert BROKEN[kind] in broken_laws(kind, release, tmp_path, request)


SOURCE_LAWS = [name for name in vars(SourceLaws) if name.startswith("test_")]


class InAList(SourceLaws):
    __test__ = False

    def __init__(self, kind):
        self.kind = kind

    def make_source(self, folder):
        return self.kind(uuid.uuid4().hex)

    def append(self, source, clicks):
        source.values.extend(clicks)


def broken_source_laws(kind, tmp_path, request):
    found = []
    for law in SOURCE_LAWS:
        laws = InAList(kind)
        more = [{"weight": weight} for weight in (1, 3, 10_000)] if "is_cut" in law else [{}]
        for given in more:
            made = SourceLaws.input.__wrapped__(laws, tmp_path, request)
            try:
                getattr(laws, law)(made, **given)
            except Exception:
                found.append(law.removeprefix("test_"))
    return found


def test_a_right_source_keeps_all_laws(tmp_path, request):
    assert broken_source_laws(Listed, tmp_path, request) == []


@pytest.mark.parametrize("kind", BROKEN_SOURCES, ids=lambda kind: kind.__name__)
def test_a_broken_source_is_rejected_by_its_law(kind, tmp_path, request):
    assert BROKEN_SOURCES[kind] in broken_source_laws(kind, tmp_path, request)


class Drawn:
    """A run that only draws where it is to be killed."""

    def __init__(self):
        self.drawn = []

    def kill_at_random(self, rng):
        self.drawn.append(rng.random())

    def __getattr__(self, name):
        return lambda *_: None


def killed(kit, seed):
    made, run = kit(), Drawn()
    made.seed = seed
    made.test_kills_lose_double_and_reorder_nothing(run)
    return run.drawn


@pytest.mark.parametrize("kit", [KilledSink, KilledSource])
def test_a_random_kill_is_repeated_by_the_seed_it_prints(kit, capsys):
    drawn = killed(kit, None)
    seed = int(capsys.readouterr().out.rpartition("seed = ")[2])
    assert killed(kit, seed) == drawn
    assert killed(kit, seed + 1) != drawn
