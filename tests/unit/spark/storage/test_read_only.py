"""A file system that became read-only: a disk failed, and nobody has to change a setting."""

import os
from types import SimpleNamespace

import pytest

from cutwater.endings import exit_code
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.delta.sink import Delta
from cutwater.spark.connectors.files.sink import Folder

LOOKS = {
    "checkpoint": lambda path: Checkpoint(path).identity(),
    "folder": lambda path: Folder(str(path)).check("out", None, 0),
    "delta": lambda path: Delta(str(path)).check("out", None, 0),
}


@pytest.mark.parametrize("what", LOOKS)
def test_a_start_on_it_may_be_tried_again(tmp_path, monkeypatch, what):
    assert not LOOKS[what](tmp_path / "new")
    flags = SimpleNamespace(f_flag=os.ST_RDONLY | os.ST_NOSUID)
    monkeypatch.setattr(os, "statvfs", lambda _: flags)
    with pytest.raises(OSError, match="Read-only") as refused:
        LOOKS[what](tmp_path / "new")
    assert exit_code(refused.value) == 1
