"""The sink on a real broker; what a reader sees is all that counts."""

import contextlib
import itertools
import os
import pickle
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from support.connectors.end_txn_proxy import end_txn_proxy

from cutwater.endings import CHANGE, exit_code
from cutwater.errors import ConnectorError, RunError
from cutwater.observers.kafka import KafkaObserver
from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.kafka import ledger as ledgers
from cutwater.spark.connectors.kafka import transactions
from cutwater.spark.connectors.kafka.ledger import KafkaLedger, owner_key, writer_key
from cutwater.spark.connectors.kafka.sink import KafkaTopic

pytestmark = pytest.mark.slow


@dataclass
class Total:
    user: str
    total: int


@pytest.fixture
def topic(broker):
    return broker.topic(partitions=3)


@pytest.fixture
def sink(broker, topic):
    return KafkaTopic(
        topic=topic, servers=broker.servers, key="user", release="early", ledger=f"l-{topic}"
    )


@pytest.fixture
def claim(tmp_path):
    return Claim("flow", "total", uuid.uuid4().hex, 1, str(tmp_path))


@pytest.fixture
def seen(broker, topic):
    return KafkaObserver(broker.servers, topic)


def bucket(label, *totals, user=None):
    lines = [b'{"user":"%s","total":%d}\n' % ((user or f"u{label}").encode(), t) for t in totals]
    return BucketRows(label, [t.to_bytes(8, "big") for t in totals], lines)


def totals(observer):
    observer.wait_until_decided()
    return {key: [row["total"] for row in rows] for key, rows in observer.by_key().items()}


@pytest.fixture(autouse=True)
def nothing_known():
    forget()
    yield
    forget()


def forget():
    """As a new process has it: nothing is connected, nothing known."""
    transactions._writers.clear()
    transactions._ledgers.clear()


def put(sink, claim, epoch, *buckets):
    return sink.write(claim, epoch, Total, buckets)


def code(error):
    return error.value.problems[0].code


# --- early ------------------------------------------------------------------------------------


def test_rows_of_a_key_are_in_one_partition_and_in_order(sink, claim, seen):
    sink.claim(claim)
    for epoch in range(3):
        put(sink, claim, epoch, bucket(1, epoch * 10, epoch * 10 + 1), bucket(2, epoch))
    assert totals(seen) == {b"u1": [0, 1, 10, 11, 20, 21], b"u2": [0, 1, 2]}
    places = {message.key: message.partition for message in seen.messages()}
    assert len({(m.key, m.partition) for m in seen.messages()}) == len(places)
    assert sink.row_count(claim) == 9


@pytest.mark.parametrize("is_new_process", [False, True])
def test_a_task_that_is_tried_again_after_it_wrote_writes_nothing(
    sink, claim, seen, is_new_process
):
    sink.claim(claim)
    put(sink, claim, 0, bucket(1, 5), bucket(2, 6))
    if is_new_process:
        forget()
    put(sink, claim, 0, bucket(1, 5), bucket(2, 6))
    assert totals(seen) == {b"u1": [5], b"u2": [6]}


def test_a_bucket_that_moved_to_another_task_is_known(sink, claim, seen):
    """The number of partitions may change while an epoch is half written."""
    sink.claim(claim)
    put(sink, claim, 4, bucket(1, 5), bucket(3, 6))
    forget()
    later = replace(claim, generation=2)
    sink.claim(later)
    put(sink, later, 4, bucket(2, 8), bucket(3, 6))
    put(sink, later, 4, bucket(1, 5))
    put(sink, later, 4, bucket(2, 8), bucket(3, 6))
    assert totals(seen) == {b"u1": [5], b"u2": [8], b"u3": [6]}


@pytest.mark.parametrize("is_new_process", [False, True])
def test_a_task_that_is_behind_another_writes_where_tasks_do_not_wait(
    sink, claim, seen, is_new_process
):
    """Ticks: each task is as far as it is, and only its own progress says what it has written."""
    claim = replace(claim, is_bulk_synchronous=False)
    sink.claim(claim)
    put(sink, claim, 5, bucket(1, 5))
    put(sink, claim, 6, bucket(1, 6))
    if is_new_process:
        forget()
    put(sink, claim, 4, bucket(2, 4))
    put(sink, claim, 5, bucket(1, 5))
    put(sink, claim, 5, bucket(2, 5))
    assert totals(seen) == {b"u1": [5, 6], b"u2": [4, 5]}


def test_two_attempts_at_the_same_time_write_once(sink, claim, seen):
    """The one that was overtaken can commit no more, and sees that the other did."""
    sink.claim(claim)
    scope, slot = sink._scope(claim), "bucket-1"
    slow = transactions._Writer(scope, slot)
    slow._producer.begin_transaction()
    slow._produce(sink._messages(bucket(1, 5).values))
    forget()
    put(sink, claim, 0, bucket(1, 5))
    with pytest.raises(Exception, match="fenced"):
        slow._producer.commit_transaction()
    put(sink, claim, 0, bucket(1, 5))
    assert totals(seen) == {b"u1": [5]}


def test_attempts_that_keep_overtaking_each_other_write_once(sink, claim, seen, monkeypatch):
    sink.claim(claim)
    monkeypatch.setattr(os, "getpid", threading.get_ident)  # each thread as a process of its own
    start = threading.Barrier(2)

    def attempt():
        start.wait(60)
        for epoch in range(5):
            put(sink, claim, epoch, bucket(1, epoch))

    with ThreadPoolExecutor(2) as pool:
        for attempts in [pool.submit(attempt) for _ in range(2)]:
            attempts.result()
    assert totals(seen) == {b"u1": [0, 1, 2, 3, 4]}


def test_a_zombie_with_an_open_transaction_is_ended_by_the_next_generation(sink, claim, seen):
    sink.claim(claim)
    put(sink, claim, 0, bucket(1, 5))
    zombie = next(iter(transactions._writers.values()))
    zombie._producer.begin_transaction()
    zombie._produce(sink._messages(bucket(1, 6).values))
    zombie._note(b'["x","y","z","owner"]', b'{"format":1,"generation":1}')
    zombie._producer.flush()
    forget()
    later = replace(claim, generation=2)
    sink.claim(later)
    with pytest.raises(Exception, match="fenced"):
        zombie._producer.commit_transaction()
    put(sink, later, 1, bucket(1, 6))
    assert totals(seen) == {b"u1": [5, 6]}


def test_a_zombie_that_begins_after_the_takeover_is_refused(sink, claim, seen):
    sink.claim(claim)
    put(sink, claim, 0, bucket(1, 5))
    sink.claim(replace(claim, generation=2))
    forget()
    with pytest.raises(RunError) as error:
        put(sink, claim, 1, bucket(1, 6))
    assert code(error) == "fenced"
    assert "generation 2 has taken over from generation 1" in str(error.value)
    assert totals(seen) == {b"u1": [5]}


def test_a_run_that_wakes_after_a_newer_one_took_the_topic_is_refused(sink, claim, seen):
    later = replace(claim, generation=2)
    sink.claim(later)
    with pytest.raises(RunError) as error:
        sink.claim(claim)
    assert code(error) == "fenced"
    assert "generation 2 has taken over from generation 1" in str(error.value)
    assert sink.generation("total") == 2
    put(sink, later, 0, bucket(1, 5))
    assert totals(seen) == {b"u1": [5]}


def while_reading_the_ledger(monkeypatch, happens):
    """Let something happen once, after a run that takes over has read the ledger."""
    real = KafkaLedger.read

    def read(ledger, **how):
        found = real(ledger, **how)
        monkeypatch.setattr(KafkaLedger, "read", real)
        happens()
        return found

    monkeypatch.setattr(KafkaLedger, "read", read)


def test_a_run_that_sleeps_between_reading_and_writing_the_ledger_is_refused(
    sink, claim, seen, monkeypatch
):
    later = replace(claim, generation=2)
    sink.claim(replace(claim, generation=0))
    while_reading_the_ledger(monkeypatch, lambda: sink.claim(later))
    with pytest.raises(RunError) as error:
        sink.claim(claim)
    assert code(error) == "fenced"
    assert sink.generation("total") == 2
    put(sink, later, 0, bucket(1, 5))
    assert totals(seen) == {b"u1": [5]}


def test_a_newer_run_takes_the_topic_though_an_older_one_came_between(
    sink, claim, seen, monkeypatch
):
    later = replace(claim, generation=2)
    sink.claim(replace(claim, generation=0))
    while_reading_the_ledger(monkeypatch, lambda: sink.claim(claim))
    sink.claim(later)
    assert sink.generation("total") == 2
    forget()
    with pytest.raises(RunError) as error:
        put(sink, claim, 0, bucket(1, 4))
    assert code(error) == "fenced"
    put(sink, later, 0, bucket(1, 5))
    assert totals(seen) == {b"u1": [5]}


def test_a_run_that_dies_while_it_takes_the_topic_holds_nobody_up(sink, claim, seen):
    sink.claim(claim)
    scope = sink._scope(replace(claim, generation=2))
    dying = transactions._producer(scope, scope.owner_id, transactions.LastError())
    dying.begin_transaction()
    dying.produce(scope.ledger, b'{"format":1,"generation":2}', owner_key(scope.account), 0)
    dying.flush()
    later = replace(claim, generation=3)
    sink.claim(later)
    put(sink, later, 0, bucket(1, 5))
    assert totals(seen) == {b"u1": [5]}


def test_a_zombie_with_a_connection_of_its_own_is_refused(sink, claim, seen):
    sink.claim(claim)
    put(sink, claim, 0, bucket(1, 5))
    kept = dict(transactions._writers)
    forget()
    later = replace(claim, generation=2)
    sink.claim(later)
    put(sink, later, 1, bucket(1, 6))
    transactions._writers.clear()
    transactions._writers.update(kept)
    with pytest.raises(RunError) as error:
        put(sink, claim, 1, bucket(1, 6))
    assert code(error) == "fenced"
    assert totals(seen) == {b"u1": [5, 6]}


def test_what_writers_announced_is_forgotten_once_they_are_ended(sink, claim):
    for generation in range(1, 4):
        now = replace(claim, generation=generation)
        sink.claim(now)
        put(sink, now, generation, bucket(1, 5), bucket(2, 6))
    ledger = sink._look("total")
    account = sink._scope(claim).account
    assert ledger.writers(account) == [(3, "bucket-1")]
    assert sink.generation("total") == 3


# --- commit -----------------------------------------------------------------------------------


@pytest.fixture
def staging(sink):
    return replace(sink, release="commit")


def test_an_epoch_appears_when_the_driver_publishes_it(staging, claim, seen):
    staging.claim(claim)
    receipts = [
        put(staging, claim, 0, bucket(1, 5, 7), bucket(2, 6)),
        put(staging, claim, 0, bucket(3, 1)),
    ]
    assert seen.rows() == []
    staging.publish(claim, 0, pickle.loads(pickle.dumps(receipts)))
    assert totals(seen) == {b"u1": [5, 7], b"u2": [6], b"u3": [1]}
    assert list(claim.staging.iterdir()) == []
    assert staging.row_count(claim) == 4


def test_an_attempt_that_nobody_names_is_not_published(staging, claim, seen):
    staging.claim(claim)
    put(staging, claim, 0, bucket(1, 5))
    staging.publish(claim, 0, [put(staging, claim, 0, bucket(1, 5))])
    assert totals(seen) == {b"u1": [5]}
    staging.claim(replace(claim, generation=2))
    assert list(claim.staging.iterdir()) == []


@pytest.mark.parametrize("is_new_process", [False, True])
def test_an_epoch_is_published_once(staging, claim, seen, is_new_process):
    """The driver may die after the transaction and before Spark knows."""
    staging.claim(claim)
    staging.publish(claim, 0, [put(staging, claim, 0, bucket(1, 5))])
    if is_new_process:
        forget()
        claim = replace(claim, generation=2)
        staging.claim(claim)
    staging.publish(claim, 0, [put(staging, claim, 0, bucket(1, 5))])
    staging.publish(claim, 7, [put(staging, claim, 7, bucket(1, 6))])
    assert totals(seen) == {b"u1": [5, 6]}


def test_a_driver_that_was_presumed_dead_publishes_nothing(staging, claim, seen):
    staging.claim(claim)
    staging.publish(claim, 0, [put(staging, claim, 0, bucket(1, 5))])
    receipt = put(staging, claim, 1, bucket(1, 6))
    kept = claim.staging.joinpath("kept")
    kept.write_bytes(b'{"user":"u1","total":6}\n')
    staging.claim(replace(claim, generation=2))
    claim.staging.joinpath("kept").write_bytes(b'{"user":"u1","total":6}\n')
    with pytest.raises(RunError) as error:
        staging.publish(claim, 1, [replace(receipt, path=str(kept))])
    assert code(error) == "fenced"
    with pytest.raises(RunError) as error:  # its own file was swept
        staging.publish(claim, 1, [receipt])
    assert code(error) == "fenced"
    assert totals(seen) == {b"u1": [5]}


def test_an_epoch_that_was_released_early_in_part_is_not_published_whole(
    sink, staging, claim, seen
):
    sink.claim(claim)
    put(sink, claim, 3, bucket(1, 5))
    later = replace(claim, generation=2)
    staging.claim(later)
    with pytest.raises(RunError) as error:
        staging.publish(later, 3, [put(staging, later, 3, bucket(1, 5), bucket(2, 6))])
    assert code(error) == "released-early"
    staging.publish(later, 4, [put(staging, later, 4, bucket(1, 7))])
    assert totals(seen) == {b"u1": [5, 7]}


def test_an_epoch_that_was_published_whole_is_not_released_early_again(sink, staging, claim, seen):
    staging.claim(claim)
    staging.publish(claim, 3, [put(staging, claim, 3, bucket(1, 5))])
    later = replace(claim, generation=2)
    sink.claim(later)
    put(sink, later, 3, bucket(1, 5))
    assert totals(seen) == {b"u1": [5]}


def test_many_rows_stay_in_order(staging, claim, seen):
    staging.claim(claim)
    staging.publish(claim, 0, [put(staging, claim, 0, bucket(1, *range(60_000), user="one"))])
    assert totals(seen) == {b"one": list(range(60_000))}


# --- refusals ---------------------------------------------------------------------------------


def test_a_fresh_topic_has_no_problems_and_is_not_changed(broker, sink):
    assert sink.check("total", None, 0) == []
    assert sink.generation("total") == 0
    assert sink.ledger not in broker.admin().list_topics(timeout=10).topics


def test_the_ledger_of_another_checkpoint_is_refused(sink, claim):
    sink.claim(claim)
    (problem,) = sink.check("total", "another", 0)
    assert problem.code == "another-checkpoint"
    (problem,) = sink.check("total", None, 0)
    assert problem.code == "another-checkpoint"
    assert sink.check("total", claim.query_id, 0) == []
    assert sink.check("elsewhere", "another", 0) == []


def test_another_sink_of_the_same_checkpoint_is_refused(sink, claim):
    sink.claim(claim)
    (problem,) = sink.check("count", claim.query_id, 0)
    assert problem.code == "another-sink"


def test_a_checkpoint_that_is_older_than_its_output_is_refused(sink, claim):
    sink.claim(claim)
    put(sink, claim, 4, bucket(1, 5))
    (problem,) = sink.check("total", claim.query_id, 4)
    assert problem.code == "output-ahead"
    assert "epoch 4" in problem.message
    assert sink.check("total", claim.query_id, 5) == []


def test_a_topic_that_is_not_there_is_refused_or_made(broker, sink, claim):
    missing = replace(sink, topic=f"missing-{sink.topic}")
    (problem,) = missing.check("total", None, 0)
    assert problem.code == "unknown-topic"
    made = replace(missing, create=True, partitions=5)
    assert made.check("total", None, 0) == []
    made.claim(claim)
    topics = broker.admin().list_topics(timeout=10).topics
    assert len(topics[made.topic].partitions) == 5


def test_a_ledger_that_forgets_is_refused(broker, sink):
    broker.topic(sink.ledger, cleanup_policy="delete")
    (problem,) = sink.check("total", None, 0)
    assert problem.code == "ledger-forgets"


def test_a_row_that_is_too_large_is_reported_and_nothing_is_written(broker, sink, claim, seen):
    sink.claim(claim)
    with pytest.raises(RunError) as error:
        put(sink, claim, 0, bucket(2, 1), bucket(1, 5, user="u" * 1_100_000))
    assert (code(error), exit_code(error.value)) == ("row-too-large", CHANGE)
    small = replace(sink, topic=broker.topic(max_message_bytes="1000"))
    small.claim(claim)
    with pytest.raises(RunError) as error:
        put(small, claim, 0, bucket(2, 1), bucket(1, 5, user="u" * 2000))
    assert (code(error), exit_code(error.value)) == ("row-too-large", CHANGE)
    assert seen.rows() == KafkaObserver(broker.servers, small.topic).rows() == []


def test_a_broker_that_is_not_there_is_reported(sink):
    nowhere = replace(
        sink, servers="127.0.0.1:1", settings={"socket.connection.setup.timeout.ms": 1000}
    )
    from cutwater.spark.connectors.kafka import checks as topics

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics, "_CALL_S", 2)
        with pytest.raises(RunError) as error:
            nowhere.check("total", None, 0)
    assert code(error) == "kafka-unreachable"


# --- a ledger that others use too -----------------------------------------------------------------


@contextlib.contextmanager
def hanging_in_the_ledger(sink):
    """Another flow that is in the middle of a transaction in the shared ledger."""
    other = sink._scope(Claim("other", "other", uuid.uuid4().hex, 1, ""))
    producer = transactions._producer(other, f"hanging-{sink.topic}", transactions.LastError())
    producer.begin_transaction()
    producer.produce(sink.ledger, b"{}", writer_key(other.account, 1, "0"), 0)
    producer.flush()
    yield
    producer.commit_transaction()


def test_an_output_that_is_ahead_is_seen_though_a_transaction_hides_it(sink, claim, monkeypatch):
    """With the checkpoint restored one epoch back, the rows of epoch 4 would be dropped."""
    sink.claim(claim)
    put(sink, claim, 3, bucket(1, 5))
    monkeypatch.setattr(ledgers, "_PATIENCE_S", 1)
    with hanging_in_the_ledger(sink):
        put(sink, claim, 4, bucket(1, 6))
        forget()
        with pytest.raises(ConnectorError) as error:
            sink.check("total", claim.query_id, 4)
        assert code(error) == "ledger-held-up"
    (problem,) = sink.check("total", claim.query_id, 4)
    assert problem.code == "output-ahead"


def test_a_transaction_that_hides_nothing_of_ours_holds_no_start_up(sink, claim, monkeypatch):
    sink.claim(claim)
    put(sink, claim, 3, bucket(1, 5))
    monkeypatch.setattr(ledgers, "_PATIENCE_S", 5)
    with hanging_in_the_ledger(sink):
        put(sink, claim, 4, bucket(1, 6))
        assert sink.check("total", claim.query_id, 5) == []


# --- transactions that take too long, or end twice -----------------------------------------------


def test_an_epoch_that_takes_longer_than_its_transaction_names_the_timeout(
    sink, claim, seen, monkeypatch
):
    hasty = replace(sink, settings={"transaction.timeout.ms": 1000})
    hasty.claim(claim)
    put(hasty, claim, 0, bucket(1, 5))
    monkeypatch.setattr(transactions, "_PATIENCE_S", 0)
    produce = transactions._Writer._produce

    def slowly(writer, messages):
        produce(writer, messages)
        time.sleep(3)

    monkeypatch.setattr(transactions._Writer, "_produce", slowly)
    with pytest.raises(ConnectorError) as error:
        put(hasty, claim, 1, bucket(1, 6))
    assert code(error) == "transaction-timeout"
    assert "transaction.timeout.ms" in str(error.value)
    assert "1 s" in str(error.value)
    monkeypatch.setattr(transactions._Writer, "_produce", produce)
    put(hasty, claim, 1, bucket(1, 6))
    assert totals(seen) == {b"u1": [5, 6]}


@pytest.mark.parametrize(
    ("cause", "expected"), [("_TRANSPORT", "kafka-unreachable"), ("_FENCED", "transaction-timeout")]
)
def test_a_broker_that_is_down_is_not_mistaken_for_a_slow_one(claim, monkeypatch, cause, expected):
    def fails(*_):
        raise KafkaException(KafkaError(getattr(KafkaError, cause)))

    sink = KafkaTopic(topic="t", servers="there:9092", release="early")
    clock = itertools.count(0, 1000)
    monkeypatch.setattr(transactions, "_writer", fails)
    monkeypatch.setattr(transactions, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(ConnectorError) as error:
        put(sink, claim, 0, bucket(1, 5))
    assert code(error) == expected


def test_a_timeout_that_the_broker_does_not_allow_is_reported(sink, claim):
    with pytest.raises(RunError) as error:
        replace(sink, settings={"transaction.timeout.ms": 2_000_000}).claim(claim)
    assert code(error) == "transaction-timeout"
    assert "transaction.max.timeout.ms" in str(error.value)


def test_an_end_that_comes_late_does_not_end_the_next_transaction(
    broker, sink, claim, seen, monkeypatch
):
    """The client repeats an EndTxn whose connection broke; the first may still be on its way.

    If it ended the next transaction, rows would be shown without their entry in the ledger, and
    again by the attempt that follows a crash.
    """

    class Died(Exception):
        pass

    def dies_after_a_late_end(writer, messages):
        produce(writer, messages)
        writer._producer.flush()
        proxy.let_go()
        raise Died

    produce = transactions._Writer._produce
    with end_txn_proxy(broker.servers) as proxy:
        through = replace(sink, servers=proxy.servers)
        through.claim(claim)
        put(through, claim, 0, bucket(1, 5))
        proxy.holds_next_end = True
        put(through, claim, 1, bucket(1, 6))
        assert proxy.held == 1
        monkeypatch.setattr(transactions._Writer, "_produce", dies_after_a_late_end)
        with pytest.raises(Died):
            put(through, claim, 2, bucket(1, 7))
        assert proxy.held == 0
        monkeypatch.setattr(transactions._Writer, "_produce", produce)
        forget()
        put(through, claim, 2, bucket(1, 7))
    assert totals(seen) == {b"u1": [5, 6, 7]}
