"""Connectors of other packages, found by their entry points."""

from importlib.metadata import EntryPoint, distribution

import pytest
from cutwater_sqlite import SqliteRows, SqliteTable

import cutwater as cw
from cutwater.errors import RefusedError
from cutwater.spark.config import load_config
from cutwater.spark.connectors import registry
from cutwater.spark.connectors.registry import sink_kinds, source_class, source_kinds

CONFIG = """
[sources.clicks]
kind = "sqlite"
path = "clicks.db"
table = "clicks"

[sinks.counts]
kind = "sqlite"
path = "counts.db"
table = "counts"
"""


@pytest.fixture
def flow():
    made = cw.Flow("copy")
    made.source("clicks", str).sink("counts")
    return made


def test_a_configuration_names_it_by_its_kind(flow, tmp_path):
    (tmp_path / "run.toml").write_text(CONFIG)
    config = load_config(tmp_path / "run.toml", flow)
    assert config.sources == {"clicks": SqliteRows(str(tmp_path / "clicks.db"), "clicks")}
    assert config.sinks == {"counts": SqliteTable(str(tmp_path / "counts.db"), "counts")}


def test_a_checkpoint_knows_it_by_what_it_says_of_itself():
    assert source_class("rows of SQLite") is SqliteRows


def test_the_package_that_is_installed_names_both():
    points = distribution("cutwater-sqlite").entry_points
    assert {point.name for point in points.select(group=registry.GROUP)} == {
        "sqlite.source",
        "sqlite.sink",
    }


def test_our_own_kinds_are_not_replaced(installed):
    installed("json-lines.source", "cutwater_sqlite:SqliteRows")
    assert source_kinds()["json-lines"].package == ""


@pytest.fixture
def installed(monkeypatch):
    """Makes entry points of a package that is not there."""

    def install(name, value):
        point = EntryPoint(name, value, registry.GROUP)
        monkeypatch.setattr(registry, "entry_points", lambda group: [point])

    registry._installed.cache_clear()
    yield install
    registry._installed.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("own", "json:loads", "not of the form KIND.source or KIND.sink"),
        ("own.reader", "json:loads", "not of the form KIND.source or KIND.sink"),
        ("own.sink", "no_such_module:Sink", "ModuleNotFoundError: No module named"),
        ("own.sink", "json:no_such_name", "AttributeError: module 'json' has no attribute"),
        ("own.sink", "json:loads", "it is not derived from SinkConnector"),
        ("own.sink", "cutwater_sqlite:SqliteRows", "it is not derived from SinkConnector"),
    ],
)
def test_a_broken_one_is_a_sentence(installed, name, value, why):
    installed(name, value)
    with pytest.raises(RefusedError) as error:
        sink_kinds()["own"].load()
    (problem,) = error.value.problems
    assert problem.code == "broken-connector"
    assert why in problem.message


def test_a_broken_one_is_nobodys_problem_until_it_is_named(installed, flow, tmp_path):
    installed("own.sink", "no_such_module:Sink")
    sinks = CONFIG.split("[sinks")[1].replace("sqlite", "own")
    (tmp_path / "in").mkdir()
    (tmp_path / "good.toml").write_text('[sources.clicks]\nkind = "json-lines"\npath = "in"\n')
    (tmp_path / "bad.toml").write_text(f"[sinks{sinks}")
    load_config(tmp_path / "good.toml", flow, bound_sinks={"counts"})
    with pytest.raises(RefusedError, match="broken-connector"):
        load_config(tmp_path / "bad.toml", flow, bound_sources={"clicks"})
