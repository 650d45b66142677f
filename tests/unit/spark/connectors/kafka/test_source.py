"""The source on a real broker: what a chunk holds never changes, or is refused."""

import pickle
import uuid
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from cutwater import Flow
from cutwater.errors import InputError, RunError
from cutwater.observers.kafka import KafkaObserver
from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.connectors.base.source import BAD, BadRecord, Chunk
from cutwater.spark.connectors.base.watermarks import Numbering
from cutwater.spark.connectors.kafka import checks as topics
from cutwater.spark.connectors.kafka import source as kafka_messages
from cutwater.spark.connectors.kafka.source import KafkaMessages
from cutwater.spark.microbatch.source_reader import shares
from cutwater.spark.storage.entry_log import EntryLog

pytestmark = pytest.mark.slow


@dataclass
class Order:
    number: int


FLOW = Flow("orders")
FLOW.source("orders", Order).sink("out")
STEP = FLOW.steps[0]


@pytest.fixture
def topic(broker):
    return broker.topic(partitions=2)


@pytest.fixture
def source(broker, topic):
    return KafkaMessages(topic=topic, servers=broker.servers)


def send(source, *numbers, partition=0):
    producer = Producer({"bootstrap.servers": source.servers})
    for number in numbers:
        value = number if isinstance(number, bytes | None) else b'{"number":%d}' % number
        producer.produce(source.topic, value, partition=partition)
    producer.flush()


def transaction(source):
    settings = {"bootstrap.servers": source.servers, "transactional.id": uuid.uuid4().hex}
    producer = Producer(settings)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def send_in(producer, source, *numbers, partition=0):
    for number in numbers:
        producer.produce(source.topic, b'{"number":%d}' % number, partition=partition)
    producer.flush()


def log_of(source, folder, tracker=None):
    return ChunkLog(source, Order, folder / "log", tracker)


def spans(chunks):
    return [(chunk.number, chunk.start, chunk.end) for chunk in chunks]


def read(source, chunks):
    reader = source.reader(Order)
    runs = [(chunk, run) for chunk in chunks for run in reader.batches(chunk)]
    return [
        (chunk.number, position, record.number)
        for chunk, run in runs
        for position, record in zip(run.positions, reader.decode(run), strict=True)
    ]


def code(error):
    return error.value.problems[0].code


# --- what is read -----------------------------------------------------------------------------


def test_every_message_is_read_once_with_its_partition_and_offset(source, tmp_path):
    log = log_of(source, tmp_path)
    assert (log.extend(), log.has_input()) == (0, False)
    send(source, 1, 2)
    send(source, 3, partition=1)
    assert log.has_input()
    assert log.extend() == 1
    assert read(source, log.read(1)) == [(0, 0, 1), (0, 1, 2), (1, 0, 3)]
    assert log.extend() == 1
    send(source, 4)
    assert log.extend() == 2
    assert read(source, log.read(2)) == [(0, 2, 4)]


def test_a_replay_reads_what_the_log_says_whatever_came_after(source, tmp_path):
    send(source, 1, 2)
    log_of(source, tmp_path).extend()
    send(source, 3)
    again = log_of(source, tmp_path)
    assert read(source, again.read(1)) == read(source, again.read(1)) == [(0, 0, 1), (0, 1, 2)]
    again.extend()
    assert read(source, again.read(2)) == [(0, 2, 3)]


def test_an_epoch_reads_no_more_rows_than_it_may_spread_over_partitions(source, tmp_path):
    send(source, *range(50))
    send(source, *range(8), partition=1)
    log = log_of(replace(source, max_rows_per_epoch=20), tmp_path)
    while log.extend() < 3:
        pass
    assert [spans(log.read(n)) for n in (1, 2, 3)] == [
        [(0, 0, 12), (1, 0, 8)],
        [(0, 12, 32)],
        [(0, 32, 50)],
    ]


def test_an_epoch_reads_about_as_many_bytes_as_it_may(source, tmp_path):
    send(source, *[b'{"number":1,"text":"%s"}' % (b"x" * 976)] * 1000)
    log = log_of(replace(source, max_bytes_per_epoch=100_000), tmp_path)
    log.extend()
    assert spans(log.read(1)) == [(0, 0, 100)]


def test_a_sample_ends_where_its_partition_ends(source, tmp_path):
    send(source, *range(150))
    send(source, *range(150), partition=1)
    log = log_of(source, tmp_path)
    log.extend()
    assert spans(log.read(1)) == [(0, 0, 150), (1, 0, 150)]


def test_a_run_that_catches_up_takes_what_was_there(source, tmp_path):
    send(source, 1)
    log = log_of(source, tmp_path)
    log.freeze()
    send(source, 2)
    send(source, 3, partition=1)
    log.extend()
    assert log.extend() == 1
    assert spans(log.read(1)) == [(0, 0, 1)]
    assert log.has_input()


def test_a_partition_that_is_added_is_read_from_its_beginning(broker, source, tmp_path):
    send(source, 1)
    log = log_of(replace(source, begin="latest"), tmp_path)
    log.extend()
    send(source, 2)
    log.extend()
    admin = broker.admin()
    admin.create_partitions([NewPartitions(source.topic, 3)])[source.topic].result()
    send(source, 7, partition=2)
    log.extend()
    assert [read(source, log.read(n)) for n in (1, 2, 3)] == [[], [(0, 1, 2)], [(2, 0, 7)]]


def test_what_comes_after_the_beginning_is_not_lost_if_the_first_epoch_had_none_of_it(
    source, tmp_path
):
    """Where a checkpoint began is known of all partitions once it has begun."""
    late = replace(source, begin="latest")
    send(source, 1)
    send(source, 1, partition=1)
    log = log_of(late, tmp_path)
    log.extend()
    send(source, 2)
    log.extend()
    send(source, 3, partition=1)
    again = log_of(late, tmp_path)
    assert read(source, again.read(again.extend())) == [(1, 1, 3)]


def caught_up(source, folder):
    """What a run that catches up reads; it knows what the folder says, and no more."""
    log = log_of(source, folder)
    before = newest = log.newest
    log.freeze()
    while log.extend() > newest:
        newest = log.newest
    return read(source, [c for n in range(before + 1, newest + 1) for c in log.read(n)])


def test_runs_that_begin_with_the_latest_read_what_comes_between_them(source, tmp_path):
    late = replace(source, begin="latest")
    send(source, 1)
    assert caught_up(late, tmp_path) == []
    send(source, 2, 3)
    send(source, 4, partition=1)
    assert caught_up(late, tmp_path) == [(0, 1, 2), (0, 2, 3), (1, 0, 4)]
    assert caught_up(late, tmp_path) == []


def test_a_run_that_is_killed_before_its_first_message_has_begun(source, tmp_path):
    late = replace(source, begin="latest")
    send(source, 1)
    log_of(late, tmp_path).extend()
    send(source, 2)
    again = log_of(late, tmp_path)
    assert read(source, again.read(again.extend())) == [(0, 1, 2)]


def test_the_beginning_reads_nothing_and_numbers_nothing(source, tmp_path):
    send(source, 1, 2)
    log = log_of(replace(source, begin="latest"), tmp_path, Numbering())
    beginning = log.read(log.extend())
    parts = [c for share in shares(source, beginning, 4, source.reader(Order)) for c in share]
    assert read(source, parts) == read(source, beginning) == []
    assert [source.measure(chunk) for chunk in beginning] == [0, 0]
    send(source, 3)
    (chunk,) = log.read(log.extend())
    assert (chunk.start, chunk.first, chunk.newest_after) == (2, 0, 1)


def test_a_checkpoint_that_began_with_its_first_message_goes_on(source, tmp_path):
    """Earlier versions noted the beginning only there."""
    send(source, 1, 2)
    send(source, 1, 2, partition=1)
    identity = topics.topics_of(source.cluster).find(source.topic).identity
    began = {"topic": source.topic, "topic_id": identity, "began": {"0": 1, "1": 1}}
    EntryLog(tmp_path / "log", "the log", generation=0).append([Chunk(0, 1, 2, began).to_json()])
    assert caught_up(replace(source, begin="latest"), tmp_path) == [(1, 1, 2)]


# --- transactions -----------------------------------------------------------------------------


def test_what_is_not_committed_is_not_read(source, tmp_path):
    send(source, 1)
    open_one = transaction(source)
    send_in(open_one, source, 2)
    send(source, 3)
    log = log_of(source, tmp_path)
    log.extend()
    assert spans(log.read(1)) == [(0, 0, 1)]
    open_one.commit_transaction()
    KafkaObserver(source.servers, source.topic).wait_until_decided()
    log.extend()
    assert read(source, log.read(2)) == [(0, 1, 2), (0, 2, 3)]


def test_aborted_messages_and_markers_are_passed_over_and_nothing_hangs(source, tmp_path):
    send(source, 1)
    lost = transaction(source)
    send_in(lost, source, 2, 3)
    lost.abort_transaction()
    KafkaObserver(source.servers, source.topic).wait_until_decided()
    log = log_of(source, tmp_path)
    log.extend()
    (chunk,) = log.read(1)
    assert (chunk.start, chunk.end) == (0, 4)
    assert read(source, [chunk]) == [(0, 0, 1)]
    rest = replace(chunk, start=1)
    assert read(source, [rest]) == []
    assert [read(source, [replace(rest, end=end)]) for end in (2, 3)] == [[], []]
    assert source.reader(Order).count(chunk) == 1


def test_a_chunk_is_cut_anywhere(source, tmp_path):
    send(source, *range(10))
    log = log_of(source, tmp_path)
    log.extend()
    (chunk,) = log.read(1)
    middle = source.cut(chunk, 4)
    parts = [replace(chunk, end=middle), replace(chunk, start=middle)]
    assert read(source, parts) == read(source, [chunk])
    assert len(read(source, parts[:1])) == 4


def test_many_messages_are_read_in_runs_and_in_order(source, tmp_path, monkeypatch):
    monkeypatch.setattr(kafka_messages, "KAFKA_BATCH_ROWS", 1000)
    send(source, *range(25_000))
    log = log_of(source, tmp_path)
    log.extend()
    assert [number for _, _, number in read(source, log.read(1))] == list(range(25_000))
    assert len(list(source.reader(Order).batches(log.read(1)[0]))) > 2


def test_records_are_numbered_over_partitions(source, tmp_path):
    send(source, 1, 2)
    send(source, 3, partition=1)
    log = log_of(source, tmp_path, Numbering())
    log.extend()
    assert [(chunk.first, chunk.newest_after) for chunk in log.read(1)] == [(0, 3), (2, 3)]


# --- bad records ------------------------------------------------------------------------------


def test_a_bad_message_has_a_place(source, tmp_path):
    send(source, None, b"{", b'{"number":"x"}', b"")
    log = log_of(source, tmp_path)
    log.extend()
    (chunk,) = log.read(1)
    reader = source.reader(Order)
    (run,) = reader.batches(chunk)
    for raw in run.raws:
        with pytest.raises(BAD):
            reader.decode_one(raw)
    assert [reader.preview(raw) for raw in run.raws] == [b"null", b"{", b'{"number":"x"}', b""]
    assert source.location(chunk, 2) == f"topic '{source.topic}', partition 0, offset 2"
    assert source.coordinates(chunk, 2) == {"topic": source.topic, "partition": 0, "offset": 2}


# --- refusals ---------------------------------------------------------------------------------


def expire(broker, source, offset):
    admin = broker.admin()
    place = TopicPartition(source.topic, 0, offset)
    admin.delete_records([place])[place].result()


def test_input_that_expired_before_it_was_planned_is_refused(broker, source, tmp_path):
    send(source, 1)
    log_of(source, tmp_path).extend()
    send(source, 2, 3, 4)
    expire(broker, source, 3)
    with pytest.raises(InputError) as error:
        log_of(source, tmp_path).extend()
    assert code(error) == "expired-input"
    assert "offset 1 is to be read next" in str(error.value)
    assert "before offset 3" in str(error.value)


def test_input_that_expired_after_the_beginning_is_refused(broker, source, tmp_path):
    late = replace(source, begin="latest")
    log_of(late, tmp_path).extend()
    send(source, 1, 2)
    expire(broker, source, 1)
    with pytest.raises(InputError) as error:
        log_of(late, tmp_path).extend()
    assert code(error) == "expired-input"


def test_input_that_expired_before_it_was_read_is_refused(broker, source, tmp_path):
    send(source, 1, 2, 3, 4)
    log = log_of(source, tmp_path)
    log.extend()
    expire(broker, source, 2)
    with pytest.raises(InputError) as error:
        read(source, log.read(1))
    assert code(error) == "expired-input"


def test_a_new_checkpoint_begins_with_what_is_left(broker, source, tmp_path):
    send(source, 1, 2, 3)
    expire(broker, source, 2)
    log = log_of(source, tmp_path)
    log.extend()
    assert read(source, log.read(1)) == [(0, 2, 3)]


def test_a_topic_that_was_made_again_is_refused(broker, source, tmp_path):
    send(source, 1, 2)
    log = log_of(source, tmp_path)
    log.extend()
    read(source, log.read(1))
    admin = broker.admin()
    admin.delete_topics([source.topic])[source.topic].result()
    with pytest.raises(InputError) as error:
        log.extend()
    assert code(error) == "unknown-topic"
    broker.topic(source.topic, partitions=2)
    send(source, 7, 8, 9)
    for attempt in (log, log_of(source, tmp_path)):
        with pytest.raises(InputError) as error:
            attempt.extend()
        assert code(error) == "another-topic"
    with pytest.raises(InputError) as error:
        read(source, log.read(1))
    assert code(error) == "another-topic"


def test_a_broker_that_knows_less_than_before_is_asked_again(source, tmp_path, monkeypatch):
    """Else a run that catches up would take an empty answer for the end."""
    send(source, *range(10))
    log = log_of(replace(source, max_rows_per_epoch=4), tmp_path)
    log.freeze()
    log.extend()
    true_ends = topics.Topics.ends
    answers = iter([{0: 0, 1: 0}, {}, {0: 4, 1: 0}])

    def ends(self, *asked, **how):
        return next(answers, None) or true_ends(self, *asked, **how)

    monkeypatch.setattr(topics.Topics, "ends", ends)
    assert log.extend() == 2
    assert spans(log.read(2)) == [(0, 4, 8)]
    monkeypatch.setattr(topics.Topics, "ends", lambda *asked, **how: {0: 5, 1: 0})
    monkeypatch.setattr(kafka_messages, "PATIENCE_S", 0.2)
    with pytest.raises(InputError) as error:
        log.extend()
    assert code(error) == "messages-lost"


def test_a_compacted_topic_is_not_replayable(broker, source):
    compacted = replace(source, topic=broker.topic(cleanup_policy="compact"))
    assert not compacted.replay().is_replayable
    assert "cleanup.policy=compact" in compacted.replay().because
    assert source.replay().is_replayable
    assert "keeps messages" in source.replay().provided


def test_a_topic_that_is_not_there_is_reported(source):
    (problem,) = replace(source, topic="nowhere").check("orders", STEP)
    assert problem.code == "unknown-topic"
    assert list(source.check("orders", STEP)) == []


def test_a_broker_that_is_not_there_is_reported(source, monkeypatch):
    monkeypatch.setattr(topics, "_CALL_S", 2)
    with pytest.raises(RunError) as error:
        list(replace(source, servers="127.0.0.1:1").check("orders", STEP))
    assert code(error) == "kafka-unreachable"


# --- without a broker -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"servers": "user:hush@there"}, "bad-servers"),
        ({"settings": {"sasl.password": "hush"}}, "secret-in-settings"),
        ({"settings": {"isolation.level": "read_uncommitted"}}, "setting-not-yours"),
        ({"begin": "now"}, "unknown-begin"),
        ({"topic": "../a"}, "bad-name"),
        ({"topic": ""}, "bad-name"),
        ({"max_rows_per_epoch": 0}, "no-progress"),
        ({"max_bytes_per_epoch": 0}, "no-progress"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, expected):
    settings = {"topic": "t", "servers": "there:9092", **change}
    (problem,) = KafkaMessages(**settings).problems("orders", STEP)
    assert problem.code == expected
    assert "hush" not in str(problem)


def test_chunks_and_settings_travel():
    source = KafkaMessages(topic="t", servers="there:9092", settings={"client.id": "x"})
    assert pickle.loads(pickle.dumps(source)) == source
    chunk = Chunk(1, 5, 9, {"topic": "t", "topic_id": "a", "began": {"0": 3}})
    assert Chunk.of_json(chunk.to_json()) == chunk
    assert (source.measure(chunk), source.partition_name(chunk)) == (4, "t 1")


def test_a_message_that_is_too_large_is_a_bad_record_alone(broker, source):
    source = replace(source, max_record_bytes=50)
    send(source, 1, b'{"number": 2, "more": "%s"}' % (b"x" * 100), 3)
    chunk = Chunk(
        0, 0, 3, {"topic_id": topics.topics_of(source.cluster).find(source.topic).identity}
    )
    reader = source.reader(Order)
    first, long, last = reader.batches(chunk)
    assert [*reader.decode(first), *reader.decode(last)] == [Order(1), Order(3)]
    assert list(long.positions) == [1]
    with pytest.raises(BadRecord, match="it has 125 bytes, and a record has at most 50"):
        reader.decode(long)
    assert reader.preview(long.raws[0]).startswith(b'{"number": 2')
