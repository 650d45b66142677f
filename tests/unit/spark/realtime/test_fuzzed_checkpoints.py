"""No file of a real-time checkpoint, however damaged, gives a traceback, whoever reads it."""

import shutil
from contextlib import suppress
from dataclasses import replace

import pytest
from support.fuzz.mutations import mutations, tolerate
from support.spark.toy_checkpoints import Checkpointed

from cutwater.errors import CutwaterError, Problem, StepError
from cutwater.spark import describe, read_frontiers, read_state, verify
from cutwater.spark.realtime.digests import DigestLog
from cutwater.spark.realtime.opening import newest_opening, open_generation
from cutwater.spark.realtime.reports import TickReports
from cutwater.spark.realtime.side_outputs import read_side_outputs, store_side_outputs
from cutwater.spark.storage import durable

pytestmark = pytest.mark.slow

FILES = {
    "identity": "cutwater.json",
    "opening": "realtime/*/opening.json",
    "plan": "realtime/*/plan/*.log",
    "snapshot": "realtime/*/snapshots/*/[0-9]*",
    "side outputs": "realtime/*/snapshots/*/*.side-output",
    "digests": "realtime/*/digests/*",
    "failure": "realtime/*/failure",
    "position of a reader": "realtime/*/positions/reader-*",
    "position of a sink": "realtime/*/positions/released-*",
    "position of a snapshot": "realtime/*/positions/snapshot-*",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of some ticks, of which the last are in no snapshot."""
    found = Checkpointed(tmp_path_factory.mktemp("fuzzed"), partitions=2, snapshot_ticks=3)
    found.sell(0, [(name, n, n) for n, name in enumerate("abcdefgh" * 5)])
    found.run()
    leave_side_outputs(found.checkpoint.root)
    leave_failure(found.checkpoint.root)
    return found


def leave_side_outputs(root):
    """What a run leaves that was killed before it published them."""
    opening = newest_opening(root)
    for partition in range(opening.partitions):
        task = opening.snapshots.of(opening.levels - 1, partition)
        store_side_outputs(task.folder, opening.snapshots.common(), [(3, 1, b"\x90")])


def leave_failure(root):
    """What a task leaves for the driver."""
    problem = Problem("step-failed", "it failed", "correct it")
    with suppress(StepError), newest_opening(root).noting_failure():
        raise StepError(problem)


@pytest.fixture(autouse=True)
def nothing_is_synced(monkeypatch):
    monkeypatch.setattr(durable.os, "fsync", lambda _file: None)


def start(made, root):
    """Open the next generation, load what its tasks load, and report as a run does."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(made.checkpoint.root, root)
    job = replace(made.toy.job, checkpoint=str(root), generation=2)
    opening = open_generation(job, partitions=2, snapshot_ticks=3, now=2000.0)
    for level, partition in opening.tasks():
        task = opening.snapshots.of(level, partition)
        task.load()
        for path in task.side_output_files():
            assert read_side_outputs(path) == [(3, 1, b"\x90")]
        DigestLog(opening.digest_path(level, partition), -1).close()
    TickReports(job, opening, lambda _progress: None).report()


def look(made):
    """Do what a run does that goes on, and what commands do."""
    root = made.checkpoint.root
    verify(root)
    describe(root)
    opening = newest_opening(root)
    if opening:
        opening.failure()
        TickReports(made.toy.job, opening, lambda _progress: None).report()


def test_a_damaged_side_output_is_found_and_never_published(made):
    path = next(iter(made.checkpoint.root.glob(FILES["side outputs"])))
    before, rows = path.read_bytes(), read_side_outputs(path)
    try:
        for data in mutations(before, seed=1):
            path.write_bytes(data)
            codes = [problem.code for problem in verify(made.checkpoint.root).problems]
            assert codes == ([] if data == before else ["damaged-snapshot"])
            if data != before:
                with pytest.raises(CutwaterError, match="does not match its checksum"):
                    read_side_outputs(path)
    finally:
        path.write_bytes(before)
    assert read_side_outputs(path) == rows


def test_as_it_was_made_it_is_whole(made, tmp_path):
    assert verify(made.checkpoint.root).problems == []
    look(made)
    start(made, tmp_path / "copy")
    read_state(made.checkpoint.root, "sold")
    read_frontiers(made.checkpoint.root)


@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_a_sentence(made, tmp_path, kind):
    file = max(made.checkpoint.root.glob(FILES[kind]), key=lambda path: path.stat().st_size)
    before = file.read_bytes()
    assert before
    try:
        for number, data in enumerate(mutations(before, seed=len(kind))):
            file.write_bytes(data)
            tolerate(data, lambda: look(made), CutwaterError)
            tolerate(data, lambda: read_state(made.checkpoint.root, "sold"), CutwaterError)
            tolerate(data, lambda: read_frontiers(made.checkpoint.root), CutwaterError)
            if number % 3 == 0:  # a start copies all files
                tolerate(data, lambda: start(made, tmp_path / "copy"), CutwaterError)
    finally:
        file.write_bytes(before)


def test_damaged_digests_are_a_sentence(made, tmp_path):
    """Only a start reads them, and above it copies all files, so it reads fewer."""
    before = max(made.checkpoint.root.glob(FILES["digests"]), key=lambda path: path.stat().st_size)
    file = tmp_path / "digests"
    for data in mutations(before.read_bytes(), seed=8):
        file.write_bytes(data)
        tolerate(data, lambda: DigestLog(file, -1).close(), CutwaterError)
