"""No ledger of a sink, however damaged, gives a traceback."""

import pytest
from deltalake import DeltaTable
from support.connectors.delta_means import Mean, stage, take
from support.connectors.sink_rows import bucket, claim
from support.fuzz.mutations import mutations, tolerate

from cutwater.errors import CutwaterError, RefusedError, ResourceError
from cutwater.spark.connectors.callback.sink import Callback
from cutwater.spark.connectors.delta.sink import Delta
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.connectors.kafka.ledger import (
    Account,
    KafkaLedger,
    owner_key,
    slot_key,
    writer_key,
)
from cutwater.spark.connectors.kafka.sink import KafkaTopic
from cutwater.spark.connectors.postgres.packed_rows import (
    RowBatch,
    read_row_batches,
    stage_row_batches,
)


def send(epoch, bucket, rows):
    """Take rows, as a function of a user's."""


def folder(root):
    made, who = Folder(str(root / "out")), claim()
    made.prepare("means", Mean)
    made.claim(who)
    made.publish(who, 0, [made.write(who, 0, Mean, [bucket(Mean, [Mean("a", 1.0)])])])
    return made, who


def delta(root):
    made = Delta(str(root / "out"), compact_every=0)
    who = take(made)
    made.publish(who, 0, [stage(made, 0, 1.0)])
    return made, who


def delta_with_a_checkpoint(root):
    made, who = delta(root)
    DeltaTable(str(root / "out")).create_checkpoint()
    made.publish(who, 1, [stage(made, 1, 2.0)])
    return made, who


def call(root):
    made, who = Callback(send), claim(checkpoint=str(root))
    made.claim(who)
    made.write(who, 0, Mean, [bucket(Mean, [Mean("a", 1.0)])])
    return made, who


KINDS = {
    "folder-ledger": (folder, "out/_cutwater/ledger.json"),
    "folder-manifest": (folder, "out/epoch=0/_manifest.json"),
    "delta-first": (delta, "out/_delta_log/00000000000000000000.json"),
    "delta-newest": (delta, "out/_delta_log/00000000000000000002.json"),
    "delta-hint": (delta_with_a_checkpoint, "out/_delta_log/_last_checkpoint"),
    "delta-checkpoint": (
        delta_with_a_checkpoint,
        "out/_delta_log/00000000000000000002.checkpoint.parquet",
    ),
    "call-taken": (call, "calls/means/taken.json"),
    "call-note": (call, "calls/means/bucket-1.json"),
    "call-begun": (call, "calls/means/begun.json"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_ledger_is_a_sentence(tmp_path, kind):
    make, name = KINDS[kind]
    sink, who = make(tmp_path)
    file = tmp_path / name

    def look():
        sink.check("means", who.query_id, 1)
        sink.schema_problems("means", Mean)
        sink.generation("means")
        sink.row_count(who)
        sink.released(who, 0)

    look()
    for data in mutations(file.read_bytes(), seed=7):
        file.write_bytes(data)
        tolerate(data, look, CutwaterError)


KAFKA = Account("topic", "means", "q")
SLOT = b'{"generation":1,"epoch":3,"buckets":[1,2],"rows":7}'
RECORDS = {
    "owner": (owner_key(KAFKA), b'{"format":1,"generation":1,"topic_id":"x","state":"gone"}'),
    "writer": (writer_key(KAFKA, 1, "0"), b""),
    "slot": (slot_key(KAFKA, "0"), SLOT),
}


def look_at_topic(key, value):
    """All that is asked of a ledger that has one more record than it should."""
    ledger = KafkaLedger(None, "ledger", "sink 'means'")
    for record in (*RECORDS.values(), (key, value)):
        ledger._note(*record)
    ledger._refuse_strange()
    ledger.owners("topic")
    ledger.generation(KAFKA)
    ledger.is_out(KAFKA)
    ledger.writers(KAFKA)
    ledger.newest_epoch(KAFKA)


@pytest.mark.parametrize("kind", RECORDS)
def test_a_damaged_record_of_a_topic_is_a_sentence(kind):
    key, value = RECORDS[kind]
    look_at_topic(key, value)
    for mutated in mutations(key, seed=3):
        tolerate(mutated, lambda mutated=mutated: look_at_topic(mutated, value), RefusedError)
    for mutated in mutations(value, seed=4):
        tolerate(mutated, lambda mutated=mutated: look_at_topic(key, mutated), RefusedError)


def rows_for_postgres(root):
    batch = RowBatch(("a",), [1, 1], ["{1,2}"])
    return stage_row_batches(root / "means", 0, [batch]), read_row_batches


def messages_for_kafka(root):
    path = root / "0-1.jsonl"
    path.write_bytes(b'{"sensor":"a","value":1}\n{"sensor":"b","value":2}\n')
    sink = KafkaTopic("topic", "nowhere:1", key="sensor")
    return path, lambda path: sink._staged("means", path)


@pytest.mark.parametrize("staged", [rows_for_postgres, messages_for_kafka])
def test_a_damaged_staged_file_is_a_sentence_and_staged_again(tmp_path, staged):
    path, read = staged(tmp_path)
    assert read(path)
    for mutated in mutations(path.read_bytes(), seed=5):
        path.write_bytes(mutated)
        tolerate(mutated, lambda: read(path), ResourceError)
