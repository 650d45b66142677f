"""SIGKILL while a state is moved: it is where it was, or the same command finishes the move."""

import shutil

import pytest
from support.faults.victims import Victim, write_inputs

from cutwater.testing.connectors.processes import kill_all, refusal_of, result_of, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run over half of the input."""
    inputs = write_inputs(tmp_path_factory.mktemp("inputs"), seed=5, epochs=3)
    victim = Victim(tmp_path_factory.mktemp("first"), inputs)
    victim.finish()
    more = write_inputs(tmp_path_factory.mktemp("more"), seed=6, epochs=2)
    for source in ("readings", "resets"):
        shutil.copy(more / source / "1.jsonl", inputs / source / "2.jsonl")
    return victim


@pytest.fixture(scope="module")
def undisturbed(first, tmp_path_factory):
    """A second run over the other half, with nothing in between."""
    victim = copied(first, tmp_path_factory.mktemp("undisturbed"))
    victim.finish()
    return victim


def copied(victim, folder):
    shutil.copytree(victim.folder, folder, dirs_exist_ok=True)
    return Victim(folder, victim.inputs)


def rows(victim):
    """What each epoch shows; a move takes the number of an epoch and shows nothing."""
    return list(victim.seen().values())


def test_a_move_that_is_killed_in_the_middle_is_finished_by_the_same_command(
    first, undisturbed, tmp_path
):
    victim = copied(first, tmp_path)
    process = victim.start_rescaling(8)
    try:
        wait_until(process, lambda: victim.offsets()[-1] > victim.commits()[-1])
    finally:
        kill_all(process)
    assert victim.offsets()[-1] == victim.commits()[-1] + 1
    command = f"cutwater checkpoint rescale {victim.checkpoint} --partitions 8"
    assert command in victim.refusal()
    assert command in refusal_of(victim.start_rescaling(4))
    assert rows(victim) == rows(first)
    done = result_of(victim.start_rescaling(8))
    assert (done["before"], done["partitions"]) == (2, 8)
    victim.finish()
    assert rows(victim) == rows(undisturbed)


def test_a_move_that_is_killed_before_it_begins_has_not_happened(first, undisturbed, tmp_path):
    victim = copied(first, tmp_path)
    log = victim.checkpoint / "scratch" / "log4j2.properties"
    log.unlink()
    process = victim.start_rescaling(8)
    try:
        wait_until(process, log.exists)
    finally:
        kill_all(process)
    assert victim.offsets() == victim.commits()
    victim.finish()
    assert rows(victim) == rows(undisturbed)
