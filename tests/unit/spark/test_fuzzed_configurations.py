"""No configuration gives a traceback."""

from support.fuzz.checkpoints import Item, total
from support.fuzz.mutations import mutations, tolerate

import cutwater as cw
from cutwater.errors import CutwaterError
from cutwater.spark import load_config

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
