"""A run that was overtaken is fenced, in whatever way it fails."""

from types import SimpleNamespace

import pytest

from cutwater.errors import FencedError
from cutwater.spark.checkpoint.fencing import fenced_if_overtaken
from cutwater.spark.storage.durable import write_json


def read_a_plan(root, generation):
    """What a run of a generation does, after that of generation 7 has claimed the checkpoint."""
    write_json(root / "cutwater.json", {"generation": 7})
    with fenced_if_overtaken(lambda: SimpleNamespace(generation=generation, checkpoint=str(root))):
        (root / "realtime" / str(generation) / "plan").read_text()


def test_files_that_a_successor_removed_are_no_wrong_path(tmp_path):
    """Exit code 2 would tell the user to change something, and nothing has to change."""
    with pytest.raises(FencedError, match=r"generation 7 .* from generation 6"):
        read_a_plan(tmp_path, 6)


def test_the_newest_run_fails_as_it_does(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_a_plan(tmp_path, 7)


def test_an_identity_that_cannot_be_read_hides_no_failure(tmp_path):
    (tmp_path / "cutwater.json").mkdir()
    run = SimpleNamespace(generation=6, checkpoint=str(tmp_path))
    with pytest.raises(ZeroDivisionError), fenced_if_overtaken(lambda: run):
        raise ZeroDivisionError
