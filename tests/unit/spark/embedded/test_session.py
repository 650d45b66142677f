"""The embedded session, and what is asked of a session that a user brings."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from cutwater.errors import RunError
from cutwater.spark.embedded import jvm
from cutwater.spark.embedded.session import check_session, embedded_session

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


LOOPBACK = {"0100007F", "0" * 16 + "FFFF00000100007F", "0" * 24 + "01000000"}
"""127.0.0.1, the same as an IPv6 address, and ::1, as Linux lists them."""


def listening(pid):
    """The addresses on which a process accepts connections."""
    own = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            own.add(str(fd.readlink()).removeprefix("socket:[").removesuffix("]"))
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and line[9] in own}


class Session:
    """As much of a session as is looked at."""

    _jvm = object()

    def __init__(self, **settings):
        self.conf = self
        self.settings = settings

    def get(self, name, default):
        return self.settings.get(name, default)


def test_a_session_with_the_settings_is_let_through():
    check_session(Session(**{PROVIDER: ROCKSDB, FORMAT: "2"}))


def test_what_is_missing_is_reported_with_what_to_set():
    with pytest.raises(RunError) as refused:
        check_session(Session(**{FORMAT: "1"}))
    first, second = refused.value.problems
    assert first.code == second.code == "session-setting"
    assert f".config('{PROVIDER}', '{ROCKSDB}')" in first.hint
    assert f"the session has {FORMAT} = 1, not 2" in second.message


def test_a_connect_session_is_refused():
    class Client:
        """No JVM of its own."""

    with pytest.raises(RunError, match="connect-session"):
        check_session(Client())


@pytest.mark.spark
def test_the_embedded_session_has_the_settings(spark):
    check_session(spark)


@pytest.mark.spark
def test_a_session_that_lacks_a_setting_is_refused(spark):
    other = spark.newSession()
    other.conf.set(PROVIDER, "another")
    with pytest.raises(RunError, match=PROVIDER):
        check_session(other)


@pytest.mark.spark
def test_a_second_session_in_a_process_is_refused_in_a_sentence(spark, tmp_path):
    with pytest.raises(RunError, match="session-already-there"):
        embedded_session(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_no_setting_is_on_the_command_line_and_the_ports_want_a_secret(spark):
    """Every user of the machine can read the one and reach the others."""
    process = jvm.own()
    assert process is not None
    command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert b"--conf" not in command
    assert b"spark.sql.session.timeZone" not in command
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
    addresses = listening(process.pid)
    assert addresses
    assert addresses <= LOOPBACK
    (left,) = re.findall(rb"--properties-file\0([^\0]+)", command)
    assert not Path(left.decode()).exists()
