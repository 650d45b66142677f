"""What a topic as a sink says and refuses by itself: none of it needs a broker."""

import pickle
from dataclasses import dataclass

import pytest

from cutwater.errors import RunError
from cutwater.spark.connectors.kafka.sink import KafkaTopic, keys_of


@dataclass
class Total:
    user: str
    total: int


NO_TOPICS = ["", ".", "..", "a b", "a/b", "a\0b", "ä", "x" * 250, "a\n", "\ud800"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"servers": "kafka://user:hush@there"}, "bad-servers"),
        ({"settings": {"sasl.password": "hush"}}, "secret-in-settings"),
        ({"settings": {"transactional.id": "mine"}}, "setting-not-yours"),
        ({"settings": {"transaction.timeout.ms": "1 min"}}, "kafka-settings"),
        ({"key": "name"}, "unknown-field"),
        ({"release": "late"}, "unknown-release"),
        ({"partitions": 0}, "no-partitions"),
        ({"ledger": "t"}, "ledger-among-rows"),
        *(({setting: name}, "bad-name") for setting in ("topic", "ledger") for name in NO_TOPICS),
        ({"password_env": "A", "password_file": "b"}, "two-passwords"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, expected):
    settings = {"topic": "t", "servers": "there:9092", **change}
    (problem,) = KafkaTopic(**settings).problems("total", Total)
    assert problem.code == expected
    assert "hush" not in str(problem)


def test_a_password_is_looked_up_where_it_is_used(monkeypatch, tmp_path):
    sink = KafkaTopic(topic="t", servers="there:9092", password_env="KAFKA_PASSWORD")
    with pytest.raises(RunError) as error:
        sink.cluster.client()
    assert error.value.problems[0].code == "no-password"
    monkeypatch.setenv("KAFKA_PASSWORD", "hush")
    assert sink.cluster.client()["sasl.password"] == "hush"
    assert b"hush" not in pickle.dumps(sink)
    (tmp_path / "password").write_text("hush\n")
    kept = KafkaTopic(topic="t", servers="there:9092", password_file=str(tmp_path / "password"))
    assert kept.cluster.client()["sasl.password"] == "hush"


def test_keys_are_texts_or_json():
    values = [b'{"k":"a\\u00e4"}', b'{"k":1.5,"x":2}', b'{"k":null}', b'{"k":[1,"b"]}', b'{"x":1}']
    assert keys_of(values, "k") == ["aä".encode(), b"1.5", None, b'[1,"b"]', None]


def test_the_guarantee_names_its_condition():
    guarantee = KafkaTopic(topic="t", servers="there:9092").guarantee()
    assert guarantee.kind == "exactly-once"
    assert "read_committed" in guarantee.provided
