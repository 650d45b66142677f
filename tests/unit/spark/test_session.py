"""The embedded session, and what is asked of a session that a user brings."""

import pytest

from cutwater.errors import RunError
from cutwater.spark.runner import PARTITIONS
from cutwater.spark.session import check_session, embedded_session

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SHUFFLES = "spark.sql.shuffle.partitions"


class Session:
    """As much of a session as is looked at."""

    _jvm = object()

    def __init__(self, **settings):
        self.conf = self
        self.settings = settings

    def get(self, name, default):
        return self.settings.get(name, default)


def test_a_session_with_the_settings_is_let_through():
    check_session(Session(**{PROVIDER: ROCKSDB, SHUFFLES: "4"}), partitions=4)


def test_everything_that_is_missing_is_told_at_once_with_what_to_set():
    with pytest.raises(RunError) as refused:
        check_session(Session(), partitions=4)
    hints = [problem.hint for problem in refused.value.problems]
    assert [problem.code for problem in refused.value.problems] == ["session-setting"] * 2
    assert f".config('{PROVIDER}', '{ROCKSDB}')" in hints[0]
    assert f".config('{SHUFFLES}', '4')" in hints[1]


def test_another_value_is_refused():
    with pytest.raises(RunError, match=r"shuffle\.partitions = 4"):
        check_session(Session(**{PROVIDER: ROCKSDB, SHUFFLES: "200"}), partitions=4)


def test_a_connect_session_is_refused():
    class Client:
        """No JVM of its own."""

    with pytest.raises(RunError, match="connect-session"):
        check_session(Client(), partitions=4)


@pytest.mark.spark
def test_the_embedded_session_has_the_settings(spark):
    check_session(spark, partitions=PARTITIONS)


@pytest.mark.spark
def test_a_session_that_lacks_a_setting_is_refused(spark):
    other = spark.newSession()
    other.conf.set(SHUFFLES, "7")
    with pytest.raises(RunError, match=SHUFFLES):
        check_session(other, partitions=PARTITIONS)


@pytest.mark.spark
def test_a_second_session_in_a_process_is_refused_in_a_sentence(spark, tmp_path):
    with pytest.raises(RunError, match="session-already-there"):
        embedded_session(tmp_path, partitions=PARTITIONS)
    assert list(tmp_path.iterdir()) == []
