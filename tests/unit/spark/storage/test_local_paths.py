"""A URL is refused wherever a path is asked for, and leaves no folder of its name."""

from pathlib import Path

import pytest

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RefusedError, RunError
from cutwater.spark.storage.local_paths import is_url
from cutwater.spark.telemetry.run_log import logging_to

URLS = [
    "s3://bucket/state",
    "s3a://b/x",
    "gs://b",
    "hdfs://node/x",
    "file:///tmp/x",
    "abfss://a@b/c",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(":")] == []


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_known_with_two_slashes_and_with_one(url):
    assert is_url(url)
    assert is_url(Path(url))


@pytest.mark.parametrize("path", ["state", "/var/state", "in/a:b", "a:b", "C:/x", "x/s3://b", ""])
def test_a_path_is_no_url(path):
    assert not is_url(path)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    "work",
    [
        cutwater_spark.describe,
        cutwater_spark.verify,
        lambda url: cutwater_spark.rescale(url, 2),
        lambda url: cutwater_spark.read_state(url, "step"),
        lambda url: logging_to(url, "flow").__enter__(),
    ],
)
def test_a_checkpoint_or_log_that_is_a_url_is_refused(work, url):
    with pytest.raises(RefusedError, match="not-a-local-path") as refused:
        work(url)
    assert url in str(refused.value)


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_a_path_that_no_file_can_have_is_refused_as_such(folder, path):
    bound = {"sources": {"items": path}, "sinks": {"out": path}, "checkpoint": "state"}
    for given in (bound, bound | {"sinks": {"out": cutwater_spark.delta_table(path)}}):
        with pytest.raises(RunError) as refused:
            cutwater_spark.run(copying(), **given)
        assert [problem.code for problem in refused.value.problems] == 2 * ["not-a-local-path"]
    for work in (cutwater_spark.describe, lambda path: logging_to(path, "flow").__enter__()):
        with pytest.raises(RefusedError, match="not-a-local-path"):
            work(path)
    assert list(folder.iterdir()) == []


def test_a_path_need_not_be_unicode(folder):
    """A name of other bytes, as the file system gives it."""
    with pytest.raises(RefusedError, match="no-checkpoint"):
        cutwater_spark.describe("in\udcff")


def copying():
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("items", int))
    return flow


@pytest.mark.parametrize(
    ("bound", "code"),
    [
        ({"checkpoint": "s3://b/state"}, "not-a-local-path"),
        ({"checkpoint": Path("s3://b/state")}, "not-a-local-path"),
        ({"sources": {"items": "s3://b/in"}}, "not-a-local-path"),
        ({"sources": {"items": cutwater_spark.csv("s3://b/in")}}, "not-a-local-path"),
        ({"sources": {"items": cutwater_spark.parquet("s3://b/in")}}, "not-a-local-path"),
        ({"sinks": {"out": "s3://b/out"}}, "object-store"),
        ({"sinks": {"out": Path("s3://b/out")}}, "object-store"),
    ],
)
def test_a_run_refuses_a_url_before_it_makes_anything(folder, bound, code):
    (folder / "in").mkdir()
    given = {"sources": {"items": "in"}, "sinks": {"out": "out"}, "checkpoint": "state", **bound}
    with pytest.raises(RunError, match=code):
        cutwater_spark.run(copying(), **given)
    assert sorted(path.name for path in folder.iterdir()) == ["in"]
