"""The lock of a checkpoint: one run at a time, in this JVM and in others."""

import subprocess
import sys

import pytest

from cutwater.errors import RunError
from cutwater.spark.checkpoint import Checkpoint, locked

pytestmark = pytest.mark.spark

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "wb")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path):
    made = Checkpoint(tmp_path / "state")
    made.create()
    return made


@pytest.fixture
def holder(place):
    """Another process that holds the lock until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place.root / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        if process.poll() is None:
            process.kill()


def test_a_checkpoint_is_locked_and_let_go(spark, place):
    for _ in range(2):
        with locked(place, spark, 0, print):
            pass


def test_two_runs_in_one_jvm_do_not_share_a_checkpoint(spark, place, tmp_path):
    (tmp_path / "link").symlink_to(place.root)
    other_name = Checkpoint(tmp_path / "link")
    with locked(place, spark, 0, print):
        for second in (place, other_name):
            with (
                pytest.raises(RunError, match="checkpoint-in-use"),
                locked(second, spark, 0, print),
            ):
                pass
        with locked(Checkpoint(tmp_path), spark, 0, print):
            pass


def test_a_lock_that_is_held_elsewhere_is_waited_for_and_then_refused(spark, place, holder):
    told = []
    with pytest.raises(RunError, match="checkpoint-in-use"), locked(place, spark, 0.3, told.append):
        pass
    assert told == ["waiting for an earlier run to let go of the checkpoint"]


def test_a_lock_that_is_let_go_while_we_wait_is_ours(spark, place, holder):
    def tell(_sentence):
        holder.stdin.close()

    with locked(place, spark, 120, tell):
        assert holder.stdin.closed


def test_an_error_inside_lets_go(spark, place):
    with pytest.raises(KeyError), locked(place, spark, 0, print):
        raise KeyError
    with locked(place, spark, 0, print):
        pass
