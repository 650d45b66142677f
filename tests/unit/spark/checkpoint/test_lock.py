"""The lock of a checkpoint: one run at a time, in this JVM and in others."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from py4j.protocol import Py4JJavaError

from cutwater.errors import RunError
from cutwater.spark.checkpoint import lock as checkpoint
from cutwater.spark.checkpoint.lock import locked
from cutwater.spark.checkpoint.store import Checkpoint

pytestmark = pytest.mark.spark

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "wb")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""

TRIER = """
import fcntl, sys
fcntl.lockf(open(sys.argv[1], "wb"), fcntl.LOCK_EX | fcntl.LOCK_NB)
"""


def is_free(store):
    """Can another process have the lock?"""
    command = [sys.executable, "-c", TRIER, str(store.root / "lock")]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.fixture
def store(tmp_path):
    made = Checkpoint(tmp_path / "state")
    made.create()
    return made


@pytest.fixture
def holder(store):
    """Another process that holds the lock until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store.root / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        if process.poll() is None:
            process.kill()


def test_a_checkpoint_is_locked_and_let_go(spark, store):
    for _ in range(2):
        with locked(store, spark, 0, print):
            pass


def test_two_runs_in_one_jvm_do_not_share_a_checkpoint(spark, store, tmp_path):
    (tmp_path / "link").symlink_to(store.root)
    other_name = Checkpoint(tmp_path / "link")
    with locked(store, spark, 0, print):
        for second in (store, other_name):
            with (
                pytest.raises(RunError, match="checkpoint-in-use"),
                locked(second, spark, 0, print),
            ):
                pass
        with locked(Checkpoint(tmp_path), spark, 0, print):
            pass


def test_a_lock_that_is_held_elsewhere_is_waited_for_and_then_refused(spark, store, holder):
    told = []
    with pytest.raises(RunError, match="checkpoint-in-use"), locked(store, spark, 0.3, told.append):
        pass
    assert told == ["waiting for an earlier run to release the checkpoint"]


def test_a_lock_that_is_let_go_while_we_wait_is_ours(spark, store, holder):
    def tell(_sentence):
        holder.stdin.close()

    with locked(store, spark, 120, tell):
        assert holder.stdin.closed


def test_a_run_that_comes_while_another_opens_the_lock_is_refused(spark, store, monkeypatch):
    real = checkpoint._open_channel

    def overtaken(*args):
        monkeypatch.setattr(checkpoint, "_open_channel", real)
        with pytest.raises(RunError, match="checkpoint-in-use"), locked(store, spark, 0, print):
            pass
        return real(*args)

    monkeypatch.setattr(checkpoint, "_open_channel", overtaken)
    with locked(store, spark, 0, print):
        assert not is_free(store)
    assert is_free(store)


def test_of_many_threads_at_once_one_has_the_lock(spark, store):
    runs = 4
    starting, trying = (Barrier(runs, timeout=30) for _ in range(2))

    def run(_number):
        starting.wait()
        try:
            with locked(store, spark, 0, print):
                trying.wait()
                return is_free(store)
        except RunError as error:
            trying.wait()
            return error.problems[0].code

    with ThreadPoolExecutor(runs) as threads:
        outcomes = list(threads.map(run, range(runs)))
    assert sorted(map(str, outcomes)) == ["False", *["checkpoint-in-use"] * (runs - 1)]


def test_a_lock_that_cannot_be_opened_is_not_held(spark, store):
    (store.root / "lock").mkdir()
    with pytest.raises(Py4JJavaError), locked(store, spark, 0, print):
        pass
    (store.root / "lock").rmdir()
    with locked(store, spark, 0, print):
        pass


def test_an_error_inside_lets_go(spark, store):
    with pytest.raises(KeyError), locked(store, spark, 0, print):
        raise KeyError
    with locked(store, spark, 0, print):
        pass
