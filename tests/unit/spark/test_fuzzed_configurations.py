"""No configuration and no file of a password gives a traceback."""

import pytest
from support.fuzz.checkpoints import Item, total
from support.fuzz.mutations import mutations, tolerate

import cutwater as cw
from cutwater.errors import CutwaterError, RefusedError
from cutwater.spark import load_config
from cutwater.spark.connectors.kafka.settings import Cluster
from cutwater.spark.connectors.postgres.settings import Database

TEXT = b"""
[run]
checkpoint = "state"
until = "stopped"
forget = ["a", "b"]
partitions = 4
metrics_port = 9464
stop_timeout = 30.5

[sources.items]
kind = "json-lines"
path = "in"
max_bytes_per_epoch = 8_000_000

[sinks."out"]
kind = "folder"
path = "out"

[spark]
"spark.driver.memory" = "4g"
spark.ui.retainedJobs = 10
"""
SEEN = [b"[run]\npartitions = " + b"9" * 4_300 + b"\n", b"[run]\npartitions = " + b"9" * 4_301]


def flow():
    made = cw.Flow("totals")
    made.sink("out", made.source("items", Item).key_by("name").apply(total))
    return made


def test_a_configuration_that_went_wrong_is_a_sentence(tmp_path):
    file, made = tmp_path / "run.toml", flow()
    (tmp_path / "in").mkdir()
    file.write_bytes(TEXT)
    load_config(file, made)
    for data in [*SEEN, *mutations(TEXT, seed=1)]:
        file.write_bytes(data)
        tolerate(data, lambda: load_config(file, made), CutwaterError)


def test_a_password_that_went_wrong_is_a_sentence_that_does_not_tell_it(tmp_path):
    file = tmp_path / "password"
    database = Database("host=nowhere", password_file=str(file))
    cluster = Cluster("nowhere:1", password_file=str(file))
    for data in mutations(b"tr\xc3\xa9s-secret-7\n", seed=6):
        file.write_bytes(data)
        tolerate(data, lambda: database.password("sink 'out'"), RefusedError)
        tolerate(data, cluster.client, RefusedError)
    file.write_bytes(b"\xfesecret")
    for ask in (cluster.client, lambda: database.password("sink 'out'")):
        with pytest.raises(RefusedError, match="no-password") as refused:
            ask()
        assert "0xfe" not in str(refused.value)
