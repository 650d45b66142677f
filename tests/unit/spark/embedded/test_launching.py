"""A JVM that ends before it answers: did it die, or refuse its settings?"""

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError

from cutwater.endings import exit_code
from cutwater.errors import ConnectorError, CutwaterError, RefusedError
from cutwater.spark.embedded import session as sessions
from cutwater.spark.embedded.launching import gateway_to
from cutwater.spark.embedded.session import closing_session, embedded_session

NO_MEMORY = "# There is insufficient memory for the Java Runtime Environment to continue."


@pytest.fixture
def submit(tmp_path, monkeypatch):
    """A Spark whose start is a script."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setattr(SparkContext, "_gateway", None)

    def submit(script):
        program = tmp_path / "spark" / "bin" / "spark-submit"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        return gateway_to(SparkConf(loadDefaults=False), tmp_path, "local[1]")

    return submit


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("kill -KILL $$", "jvm-died"),
        ("exit 137", "jvm-died"),  # the process that works out its command
        ("kill -ABRT $$", "jvm-died"),
        (f"echo '{NO_MEMORY}'; exit 1", "jvm-out-of-memory"),
    ],
)
def test_one_that_died_may_be_started_again(submit, script, code):
    with pytest.raises(CutwaterError, match=code) as died:
        submit(script)
    assert exit_code(died.value) == 1


def test_one_that_refuses_its_settings_is_none_of_them(submit, tmp_path):
    """Even if an earlier one, in the same log, had no memory."""
    (tmp_path / "jvm.log").write_text(NO_MEMORY + "\n")
    with pytest.raises(PySparkRuntimeError, match="JAVA_GATEWAY_EXITED"):
        submit("echo 'Unrecognized VM option'; exit 1")


STOPPED = Py4JError(
    "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."
)


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (STOPPED, ConnectorError, "cluster-unavailable"),
        (Py4JError("Could not parse Master URL: 'mars'"), RefusedError, "spark-did-not-start"),
    ],
)
def test_a_cluster_that_is_down_may_be_up_again(tmp_path, monkeypatch, error, kind, code):
    def start(*_):
        raise error

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(sessions, "gateway_to", start)
    monkeypatch.setattr(sessions, "java_home", lambda: tmp_path)
    monkeypatch.setattr(sessions.jvm, "own", lambda: None)
    with pytest.raises(kind, match=code) as ended:
        embedded_session(tmp_path, master="spark://127.0.0.1:7077")
    assert exit_code(ended.value) == (1 if kind is ConnectorError else 2)


def test_a_session_that_its_cluster_gave_up_may_be_started_again(tmp_path):
    with (
        pytest.raises(CutwaterError, match="session-stopped") as ended,
        closing_session(None, tmp_path, is_ours=False),
    ):
        raise STOPPED
    assert exit_code(ended.value) == 1
