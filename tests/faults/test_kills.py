"""SIGKILL, a restart, and a look from outside: nothing lost, doubled, reordered or half there."""

import random
import shutil

import pytest
from support.faults.victims import Victim, write_inputs

from cutwater.testing.connectors.processes import kill_all, kill_driver, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def seed():
    chosen = random.randrange(1_000_000)
    print(f"seed {chosen}")
    return chosen


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, seed):
    return write_inputs(tmp_path_factory.mktemp("inputs"), seed)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, inputs):
    """A run that nothing happens to."""
    victim = Victim(tmp_path_factory.mktemp("undisturbed"), inputs)
    victim.finish()
    return victim


@pytest.fixture(scope="module")
def killed(tmp_path_factory, inputs, seed):
    """A run that is killed five times at moments seen from outside, and then let finish."""
    victim = Victim(tmp_path_factory.mktemp("killed"), inputs)
    rng = random.Random(seed)

    def some_epochs_later():
        goal = len(victim.epochs()) + rng.randrange(1, 4)
        return lambda: len(victim.epochs()) >= goal

    def staged_but_not_shown():
        return lambda: bool(victim.epochs()) and bool(victim.staged())

    def shown_but_not_committed():
        goal = len(victim.epochs()) + 1
        return lambda: len(victim.epochs()) > goal and victim.epochs()[-1] not in victim.commits()

    moments = [
        (lambda: lambda: bool(victim.offsets()), kill_all),
        (staged_but_not_shown, kill_all),
        (shown_but_not_committed, kill_all),
        (some_epochs_later, kill_driver),
        (some_epochs_later, kill_all),
    ]
    seen_at_kills = []
    for moment, kill in moments:
        process = victim.start()
        try:
            wait_until(process, moment())
            kill(process)
        finally:
            if process.poll() is None:
                kill_all(process)
        seen_at_kills.append(victim.seen())
    result = victim.finish()
    assert result["generation"] == len(moments) + 1
    return victim, seen_at_kills


def test_after_kills_the_output_is_that_of_an_undisturbed_run(undisturbed, killed):
    victim, _ = killed
    assert victim.seen() == undisturbed.seen()


def test_at_every_kill_a_reader_saw_whole_epochs_of_the_undisturbed_run(undisturbed, killed):
    expected = undisturbed.seen()
    for seen in killed[1]:
        assert seen == {epoch: expected[epoch] for epoch in sorted(expected)[: len(seen)]}


def test_nothing_else_is_visible_to_readers(killed):
    victim, _ = killed
    visible = [path.name for path in victim.out.iterdir() if path.name[0] not in "._"]
    assert all(name.startswith("epoch=") for name in visible)
    assert victim.staged() == []


def test_a_lost_commit_shows_nothing_twice(undisturbed, tmp_path):
    """From other projects' sinks, which this broke: the newest file in commits/ is deleted."""
    victim = Victim(tmp_path / "copy", undisturbed.inputs)
    shutil.copytree(undisturbed.folder, victim.folder)
    # The output names its folders nowhere, so a copy of it and of its checkpoint goes on.
    (victim.checkpoint / "spark" / "commits" / str(victim.commits()[-1])).unlink()
    for checksum in (victim.checkpoint / "spark" / "commits").glob(".*.crc"):
        checksum.unlink()
    victim.finish()
    assert victim.seen() == undisturbed.seen()


def test_a_deleted_checkpoint_with_its_output_kept_is_refused(undisturbed, tmp_path):
    victim = Victim(tmp_path / "copy", undisturbed.inputs)
    shutil.copytree(undisturbed.out, victim.out)
    sentence = victim.refusal()
    assert "[another-checkpoint]" in sentence
    assert "--adopt keeps what is there, --fresh deletes it" in sentence
    assert victim.seen() == undisturbed.seen()
    assert not victim.checkpoint.exists()


def test_a_checkpoint_older_than_its_output_is_refused(undisturbed, tmp_path):
    victim = Victim(tmp_path / "copy", undisturbed.inputs)
    shutil.copytree(undisturbed.folder, victim.folder)
    for folder in ("offsets", "commits"):
        for path in (victim.checkpoint / "spark" / folder).iterdir():
            name = path.name.removeprefix(".").removesuffix(".crc")
            if name.isdigit() and int(name) > 3:
                path.unlink()
    assert "[output-ahead]" in victim.refusal()
    assert victim.seen() == undisturbed.seen()


def test_the_packaged_java_runs_it(seed, tmp_path):
    """RocksDB state on the runtime that comes as a Python package, with no other Java in reach."""
    without_java = tmp_path / "bin"
    without_java.mkdir()
    for tool in ("sh", "bash", "dirname", "ls", "cat", "ps", "chmod", "readlink", "env", "uname"):
        found = shutil.which(tool)
        if found:
            (without_java / tool).symlink_to(found)
    inputs = write_inputs(tmp_path / "inputs", seed, epochs=2)
    readings = (inputs / "readings" / "1.jsonl").read_bytes().splitlines()
    victim = Victim(tmp_path / "victim", inputs)
    victim.finish(CUTWATER_JAVA="packaged", JAVA_HOME="", PATH=str(without_java))
    assert sum(len(rows) for rows in victim.seen().values()) == len(readings)
