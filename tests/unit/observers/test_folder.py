"""What an observer of a folder sees: epochs in their order, and nothing that is not for readers."""

import json

from cutwater.observers.folder import FolderObserver


def write(path, *values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def test_epochs_come_by_number_and_parts_by_name(tmp_path):
    write(tmp_path / "epoch=10" / "part-00000.jsonl", {"n": 4})
    write(tmp_path / "epoch=9" / "part-00001.jsonl", {"n": 3})
    write(tmp_path / "epoch=9" / "part-00000.jsonl", {"n": 1}, {"n": 2})
    observer = FolderObserver(tmp_path)
    assert observer.rows() == [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]
    assert observer.epochs() == {9: [{"n": 1}, {"n": 2}, {"n": 3}], 10: [{"n": 4}]}


def test_what_is_not_for_readers_is_passed_over(tmp_path):
    write(tmp_path / "_cutwater" / "staging" / "0-x.jsonl", {"n": 1})
    write(tmp_path / "epoch=0.half" / "part-00000.jsonl", {"n": 1})
    write(tmp_path / "epoch=0" / "_manifest.json", {"n": 1})
    write(tmp_path / "epoch=0" / ".part.crc", {"n": 1})
    assert FolderObserver(tmp_path).epochs() == {0: []}


def test_values_without_fields_are_in_a_column(tmp_path):
    write(tmp_path / "epoch=0" / "part-00000.jsonl", 1, "two")
    assert FolderObserver(tmp_path).rows() == [{"value": 1}, {"value": "two"}]


def test_where_nothing_is_nothing_is_seen(tmp_path):
    assert FolderObserver(tmp_path / "none").rows() == []
