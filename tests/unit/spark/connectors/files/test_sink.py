"""The folder sink: whole epochs, each once, from one owner."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from cutwater.errors import FencedError, RunError
from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.files import sink as folder
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.storage.durable import read_json, write_json


@pytest.fixture
def out(tmp_path):
    return Folder(str(tmp_path / "out"))


def claim(generation=1, query_id="q"):
    return Claim("f", "means", query_id, generation, "/nowhere")


def stage(out, epoch, *lines, label=1, last="aa", by=None):
    data = [line.encode() + b"\n" for line in lines]
    orders = [b""] * (len(lines) - 1) + [bytes.fromhex(last)]
    by = by or claim(out.generation("means"))
    return out.write(by, epoch, bytes, [BucketRows(label, orders, data)])


def seen(out):
    """What a plain reader sees: the rows of each epoch, part by part."""
    found = {}
    for path in sorted(out.root.glob("epoch=*/*.jsonl")):
        found.setdefault(int(path.parent.name[6:]), []).extend(path.read_text().split())
    return found


def code(problems):
    return [problem.code for problem in problems]


def test_an_epoch_is_seen_when_it_is_published_and_not_before(out):
    out.claim(claim(1))
    parts = [stage(out, 0, "a", "b"), stage(out, 0, "c", label=2, last="bb")]
    assert seen(out) == {}
    assert out.published() == []
    out.publish(claim(1), 0, parts)
    assert seen(out) == {0: ["a", "b", "c"]}
    assert out.published() == [0]
    assert out.row_count(claim()) == 3
    assert list(out.root.glob("_cutwater/staging/*/*")) == []


def test_publishing_again_changes_nothing(out):
    out.claim(claim(1))
    out.publish(claim(1), 0, [stage(out, 0, "first")])
    out.publish(claim(1), 0, [stage(out, 0, "second")])
    assert seen(out) == {0: ["first"]}
    assert list(out.root.glob("_cutwater/staging/*/*")) == []


def test_the_loser_of_a_race_leaves_what_is_there(out, monkeypatch):
    """Two writers: the epoch appears between the look and the rename."""
    out.claim(claim(1))
    late, early = stage(out, 0, "late"), stage(out, 0, "early")

    def overtaken(path, value):
        monkeypatch.undo()
        out.publish(claim(1), 0, [early])
        write_json(path, value)

    monkeypatch.setattr(folder, "write_json", overtaken)
    out.publish(claim(1), 0, [late])
    assert seen(out) == {0: ["early"]}


def test_an_epoch_without_rows_leaves_a_gap(out):
    out.claim(claim(1))
    out.publish(claim(1), 0, [])
    out.publish(claim(1), 1, [stage(out, 1, "a")])
    assert out.published() == [1]


@pytest.mark.parametrize(("generation", "query_id"), [(1, "q"), (3, "q"), (2, "other")])
def test_only_the_newest_generation_publishes(out, generation, query_id):
    """A zombie of an older generation, and anybody who never took the output."""
    out.claim(claim(1))
    out.claim(claim(2))
    part = stage(out, 0, "zombie")
    with pytest.raises(RunError, match="fenced"):
        out.publish(claim(generation, query_id), 0, [part])
    assert seen(out) == {}
    out.publish(claim(2), 0, [stage(out, 0, "living")])
    assert seen(out) == {0: ["living"]}


def test_a_run_that_wakes_after_a_newer_one_took_the_output_is_refused(out):
    out.claim(claim(2))
    part = stage(out, 0, "living")
    with pytest.raises(RunError, match=r"fenced.*generation 1 .* generation 2 has claimed it"):
        out.claim(claim(1))
    assert out.generation("means") == 2
    out.publish(claim(2), 0, [part])
    assert seen(out) == {0: ["living"]}


def test_a_generation_may_take_the_output_again(out):
    out.claim(claim(2))
    out.claim(claim(2))
    assert out.generation("means") == 2


def test_taking_the_output_sweeps_what_was_staged(out):
    out.claim(claim(1))
    stage(out, 0, "orphan")
    (out.root / "_cutwater" / "staging" / "1-q" / "epoch=0.half").mkdir()
    out.publish(claim(1), 1, [stage(out, 1, "a")])
    out.claim(claim(2))
    assert list(out.root.glob("_cutwater/staging/*/*")) == []
    assert seen(out) == {1: ["a"]}


def test_a_zombie_whose_files_were_swept_publishes_nothing(out):
    out.claim(claim(1))
    part = stage(out, 0, "zombie")
    out.claim(claim(2))
    with pytest.raises(RunError, match="fenced"):
        out.publish(claim(1), 0, [part])
    with pytest.raises(FileNotFoundError):
        out.publish(claim(2), 0, [part])
    assert seen(out) == {}


def test_a_task_of_a_run_that_was_overtaken_writes_nothing(out):
    out.claim(claim(1))
    out.claim(claim(2))
    with pytest.raises(FencedError, match="generation 2 has taken over from generation 1"):
        stage(out, 0, "zombie", by=claim(1))
    assert [path.name for path in out.root.glob("_cutwater/staging/*")] == ["2-q"]


@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("other", ["q", "another"])
def test_wherever_a_zombie_wakes_up_it_publishes_nothing(out, monkeypatch, step, other):
    """It falls asleep before some step of publishing, and its successor takes the output."""
    out.claim(claim(1))
    parts = [stage(out, 0, "zombie"), stage(out, 0, "too", label=2)]
    left = iter(range(step))

    def asleep(real):
        def first_asleep(*args, **kwargs):
            if next(left, None) is None:
                monkeypatch.undo()
                if other != "q":
                    out.take_over(claim(2, other), keep=True)
                out.claim(claim(2, other))
            return real(*args, **kwargs)

        return first_asleep

    monkeypatch.setattr(Path, "mkdir", asleep(Path.mkdir))
    monkeypatch.setattr(Path, "rename", asleep(Path.rename))
    monkeypatch.setattr(folder, "write_json", asleep(folder.write_json))
    if step < 5:
        with pytest.raises(FencedError):
            out.publish(claim(1), 0, parts)
        assert seen(out) == {}
    else:  # it was never asleep
        out.publish(claim(1), 0, parts)
        assert seen(out) == {0: ["zombie", "too"]}


def test_a_zombie_that_gathers_while_it_is_swept_publishes_nothing(out, monkeypatch):
    """Its parts are listed to be swept, and it moves them into a directory that is not."""
    out.claim(claim(1))
    part = stage(out, 0, "zombie")
    has_gathered, is_swept = threading.Event(), threading.Event()
    real_rename, real_write = Path.rename, folder.write_json

    def publish():
        with pytest.raises(FencedError):
            out.publish(claim(1), 0, [part])

    zombie = threading.Thread(target=publish)

    def write(path, value):
        if path.name == "_manifest.json":
            has_gathered.set()
            assert is_swept.wait(60)
        real_write(path, value)

    def rename(self, target):
        if threading.current_thread() is not zombie and not has_gathered.is_set():
            zombie.start()
            assert has_gathered.wait(60)
        return real_rename(self, target)

    monkeypatch.setattr(folder, "write_json", write)
    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(Folder, "_check_fence", passed_once(Folder._check_fence, zombie))
    out.claim(claim(2))
    is_swept.set()
    zombie.join(60)
    assert seen(out) == {}


def passed_once(real, zombie):
    """The zombie looked at the ledger before its successor wrote to it."""
    looks = iter([0])

    def look(self, claim, epoch):
        first = next(looks, None) if threading.current_thread() is zombie else None
        return real(self, claim, epoch) if first is None else first

    return look


def test_two_runs_with_the_same_pid_do_not_share_temporary_files(out, monkeypatch):
    """In containers every run may be process 1."""
    names = []
    real = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (names.append(self.name), real(self, to))[1]
    )
    monkeypatch.setattr(os, "getpid", lambda: 1)
    out.claim(claim(1))
    out.claim(claim(2))
    assert len(set(names)) == len(names) == 2


def test_parts_of_one_bucket_follow_one_another(out):
    """Without an exchange each task has a part of the same bucket; fewer rows do not come first."""
    out.claim(claim(1))
    parts = [stage(out, 0, "3", last="cc"), stage(out, 0, "1", "2", last="bb")]
    out.publish(claim(1), 0, parts)
    assert seen(out) == {0: ["1", "2", "3"]}
    assert out.row_count(claim()) == 3
    manifest = json.loads((out.root / "epoch=0" / "_manifest.json").read_bytes())
    assert manifest["buckets"] == {"1": [3, "cc"]}
    assert manifest["rows"] == 3
    assert (manifest["query_id"], manifest["generation"], manifest["epoch"]) == ("q", 1, 0)


def test_a_new_folder_is_fine(out, tmp_path):
    assert out.check("means", None, 0) == []
    assert out.check("means", "q", 5) == []
    assert list(tmp_path.iterdir()) == []
    assert out.generation("means") == 0


def test_an_output_of_a_deleted_checkpoint_is_refused(out):
    out.claim(claim(1))
    out.publish(claim(1), 0, [stage(out, 0, "a")])
    assert code(out.check("means", None, 0)) == ["another-checkpoint"]
    assert code(out.check("means", "other", 1)) == ["another-checkpoint"]
    assert out.check("means", "q", 1) == []


def test_an_output_of_a_deleted_checkpoint_is_refused_before_its_first_epoch_too(out):
    out.claim(claim(1))
    assert code(out.check("means", "other", 0)) == ["another-checkpoint"]


def test_an_output_that_is_ahead_of_its_checkpoint_is_refused(out):
    out.claim(claim(1))
    for epoch in (0, 1, 10):
        out.publish(claim(1), epoch, [stage(out, epoch, "a")])
    assert out.check("means", "q", 11) == []
    (problem,) = out.check("means", "q", 10)
    assert problem.code == "output-ahead"
    assert "epoch 10" in problem.message
    shutil.rmtree(out.root / "epoch=10")
    assert out.check("means", "q", 10) == []


def test_epochs_without_a_ledger_are_foreign(out):
    (out.root / "epoch=0").mkdir(parents=True)
    assert code(out.check("means", None, 0)) == ["foreign-output"]


def test_other_files_in_the_folder_are_no_matter(out):
    out.root.mkdir()
    for name in ("notes.txt", "epoch=", "epoch=x", "epoch=1.tmp"):
        (out.root / name).mkdir()
    assert out.check("means", None, 0) == []
    assert out.published() == []


def test_the_folder_of_another_sink_is_refused(out):
    """Two sinks that change places would each have half of the other's rows."""
    out.claim(claim(1))
    assert code(out.check("alarms", "q", 0)) == ["another-sink"]


def test_another_format_is_refused(out):
    out.claim(claim(1))
    path = out.root / "_cutwater" / "ledger.json"
    write_json(path, {**read_json(path, "it"), "format": 99})
    assert code(out.check("means", "q", 0)) == ["ledger-format"]


def test_a_ledger_that_was_altered_is_a_sentence(out):
    out.claim(claim(1))
    path = out.root / "_cutwater" / "ledger.json"
    path.write_text(path.read_text().replace('"generation": 1', '"generation": 7'))
    with pytest.raises(RunError, match="damaged: its content does not match its checksum"):
        out.check("means", "q", 0)


def test_a_damaged_ledger_is_a_sentence(out):
    out.claim(claim(1))
    (out.root / "_cutwater" / "ledger.json").write_text("{")
    with pytest.raises(RunError, match="damaged-file"):
        out.check("means", "q", 0)


@pytest.mark.parametrize("below", ["", "below", "far/below"])
def test_a_place_where_a_file_is_cannot_be_written_to(tmp_path, below):
    file = tmp_path / "file"
    file.write_text("mine")
    out = Folder(str(file / below if below else file))
    assert code(out.check("means", None, 0)) == ["unwritable-output"]
    with pytest.raises(RunError, match="unwritable-output"):
        out.claim(claim(1))
    assert file.read_text() == "mine"
