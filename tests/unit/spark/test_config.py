"""A run as a file: what it says, and everything that is wrong with it at once."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from support.repo.pinned import assert_pinned

import cutwater as cw
from cutwater.errors import RefusedError, RunError
from cutwater.spark import load_config
from cutwater.spark.connectors import registry
from cutwater.spark.connectors.registry import sink_kinds, source_kinds

SNAPSHOT = Path(__file__).parents[2] / "snapshots" / "errors" / "config_problems.txt"


@dataclass(frozen=True)
class Item:
    name: str


@pytest.fixture
def flow():
    made = cw.Flow("copy")
    made.sink("out", made.source("items", Item))
    made.sink("more", made.source("others", Item))
    return made


@pytest.fixture
def load(flow, tmp_path, monkeypatch):
    (tmp_path / "conf" / "in").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_installed", lambda _role: {})  # only our own kinds

    def load(text, **bound):
        path = Path("conf") / "run.toml"
        path.write_text(text)
        return load_config(path, flow, **bound)

    return load


GOOD = """
[run]
checkpoint = "state"
until = "stopped"
partitions = 4
require = "exactly-once"
forget = ["old"]
finish_with_this_flow = true
metrics_port = 9100

[sources.items]
kind = "json-lines"
path = "in"
max_bytes_per_epoch = 100
max_rows_per_epoch = 10
max_files_per_epoch = 2
max_record_bytes = 50

[sources.others]
kind = "json-lines"
path = "in"

[sinks]
out = { kind = "folder", path = "out" }
more = { kind = "folder", path = "/somewhere/else" }

[spark]
"spark.driver.memory" = "1g"
spark.ui.enabled = true
spark.cores.max = 3
"""


def test_what_a_file_says(load, tmp_path):
    config = load(GOOD)
    assert config.checkpoint == str(tmp_path / "conf" / "state")
    assert config.run == {
        "until": "stopped",
        "partitions": 4,
        "require": "exactly-once",
        "forget": ["old"],
        "finish_with_this_flow": True,
    }
    assert config.process == {"metrics_port": 9100}
    assert config.arguments == {
        **config.run,
        "checkpoint": config.checkpoint,
        "sources": config.sources,
        "sinks": config.sinks,
        "settings": config.spark,
    }
    assert config.sources["items"].path == str(tmp_path / "conf" / "in")
    items = config.sources["items"]
    assert (items.max_bytes_per_epoch, items.max_rows_per_epoch) == (100, 10)
    assert (items.max_files_per_epoch, items.max_record_bytes) == (2, 50)
    assert config.sinks["out"].path == str(tmp_path / "conf" / "out")
    assert config.sinks["more"].path == "/somewhere/else"
    assert config.spark == {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "true",
        "spark.cores.max": "3",
    }


BAD = """[run]
chekpoint = "state"
until = "never"
partitions = "4"
max_rows_per_epoch = 5
password = "canary-1"

[sources.items]
kind = "json-lines"
path = "gone"
max_bytes_per_epoch = "lots"
max_byte_per_epoch = 5

[sources.itms]
kind = "json-lines"

[sinks.out]
kind = "foldr"
path = "out"

[sinks.more]
kind = "folder"
url = "https://me:canary-2@host/"

[spark]
"spark.sql.streaming.stateStore.providerClass" = "mine"
"driver.memory" = "1g"
"spark.executor.instances" = [1]

[sparks]
"""


def test_everything_that_is_wrong_is_reported_at_once_with_its_line(load):
    with pytest.raises(RunError) as refused:
        load(BAD)
    message = str(refused.value)
    assert "canary" not in message
    assert_pinned(SNAPSHOT, message + "\n")


def test_settings_that_cannot_work_have_a_line_too(load):
    with pytest.raises(RunError) as refused:
        load(GOOD.replace('path = "in"\nmax_bytes_per_epoch = 100', 'path = "gone"'))
    (problem,) = refused.value.problems
    assert problem.code == "missing-folder"
    assert problem.message.startswith("conf/run.toml:11: source 'items' reads ")


def numbers(number: int) -> Item:
    return Item(str(number))


EVERY = """
[sources.items]
kind = "kafka"
topic = "t"
servers = "127.0.0.1:9092"
settings = { "security.protocol" = "SASL_SSL" }
password_file = "secret"

[sources.others]
kind = "generate"
record_of = "RECORD_OF"
total = 5

[sinks.out]
kind = "postgres"
table = "total"
dsn = "host=127.0.0.1 dbname=x"
keys = ["name"]
mode = "upsert"
password_env = "PGPASSWORD"

[sinks.more]
kind = "delta"
path = "table"
"""


def test_other_kinds_map_onto_their_settings(load, tmp_path):
    for package in ("confluent_kafka", "psycopg", "deltalake"):
        pytest.importorskip(package)
    config = load(EVERY.replace("RECORD_OF", f"{__name__}:numbers"))
    assert config.sources["items"].password_file == str(tmp_path / "conf" / "secret")
    assert config.sources["others"].record_of(3) == Item("3")
    assert config.sinks["out"].guarantee().kind == "exactly-once"
    assert config.sinks["more"].path == str(tmp_path / "conf" / "table")


@pytest.mark.parametrize(
    ("named", "code"),
    [("numbers", "wrong-type"), ("no.such:f", "unknown-name"), ("json:nothing", "unknown-name")],
)
def test_a_function_that_is_none(load, named, code):
    with pytest.raises(RunError) as refused:
        load(EVERY.replace("RECORD_OF", named), bound_sources=["items"], bound_sinks=["out"])
    (problem,) = refused.value.problems
    assert (problem.code, problem.message[:18]) == (code, "conf/run.toml:11: ")


def test_what_is_bound_elsewhere_need_not_be_there(load):
    config = load("[run]\n", bound_sources=["items", "others"], bound_sinks=["out", "more"])
    assert (config.sources, config.sinks) == ({}, {})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("run = 3", "wrong-type"),
        ("[sources]\nitems = 3", "wrong-type"),
        ("[run", "not-toml"),
        ("a = 1\na = 2", "not-toml"),
    ],
)
def test_tables_that_are_none(load, text, code):
    with pytest.raises(RunError) as refused:
        load(text)
    assert code in [problem.code for problem in refused.value.problems]
    assert "conf/run.toml:1" in str(refused.value) or "conf/run.toml:2" in str(refused.value)


def test_a_file_that_is_not_there(flow, tmp_path):
    with pytest.raises(RunError, match="no-config"):
        load_config(tmp_path / "none.toml", flow)


@pytest.mark.parametrize("kind", [*source_kinds().values(), *sink_kinds().values()])
def test_every_kind_can_be_asked_for_its_settings(kind):
    pytest.importorskip(kind.maker.split(":")[0])
    settings = kind.settings()
    assert settings
    assert "kind" not in settings


ACCOUNT_KEY = "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net"


@pytest.mark.parametrize(
    "name",
    [ACCOUNT_KEY, "spark.ssl.keyPassword", "spark.authenticate.secret", "spark.hadoop.x.token"],
)
def test_a_secret_of_sparks_is_not_written_down(tmp_path, name):
    (tmp_path / "run.toml").write_text(f'[spark]\n"{name}" = "hunter2"\n')
    with pytest.raises(RefusedError) as error:
        load_config(tmp_path / "run.toml", cw.Flow("empty"))
    (problem,) = error.value.problems
    assert problem.code == "inline-secret"
    assert "hunter2" not in str(problem)
    assert f"{name}_env" in problem.hint


def test_a_secret_of_sparks_is_named_and_handed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_KEY", "hunter2")
    (tmp_path / "token").write_text("hunter3\n")
    (tmp_path / "run.toml").write_text(
        f'[spark]\n"{ACCOUNT_KEY}_env" = "SHOP_KEY"\n"spark.hadoop.x.token_file" = "token"\n'
    )
    found = load_config(tmp_path / "run.toml", cw.Flow("empty")).spark
    assert found == {ACCOUNT_KEY: "hunter2", "spark.hadoop.x.token": "hunter3"}


def test_a_secret_that_is_not_where_it_should_be_is_a_sentence(tmp_path):
    (tmp_path / "run.toml").write_text(f'[spark]\n"{ACCOUNT_KEY}_env" = "NOT_SET_ANYWHERE"\n')
    with pytest.raises(RefusedError, match="no-password"):
        load_config(tmp_path / "run.toml", cw.Flow("empty"))
