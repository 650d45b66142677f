"""No ledger of a sink, however damaged, gives a traceback."""

import pytest
from support.connectors.delta_means import Mean, stage, take
from support.connectors.sink_rows import bucket, claim
from support.fuzz.mutations import mutations, tolerate

from cutwater.errors import CutwaterError
from cutwater.spark.connectors.callback.sink import Callback
from cutwater.spark.connectors.delta.sink import Delta
from cutwater.spark.connectors.files.sink import Folder


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
