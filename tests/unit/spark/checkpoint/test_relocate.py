"""A checkpoint that was moved: Spark's files speak of where it is now."""

import json

import pytest

from cutwater.spark.checkpoint.relocate import relocate
from cutwater.spark.checkpoint.store import Checkpoint


@pytest.fixture
def made(tmp_path):
    """The metadata of an operator, as Spark writes it."""
    checkpoint = Checkpoint(tmp_path / "before")
    operator = checkpoint.spark / "state" / "0"
    schema = operator / "_stateSchema" / "default" / "0_id"
    schema.parent.mkdir(parents=True)
    schema.write_text("schema")
    (operator / "_metadata" / "v2").mkdir(parents=True)
    metadata = {
        "stateStoreInfo": [{"numPartitions": 2, "stateSchemaFilePaths": [f"file:{schema}"]}]
    }
    (operator / "_metadata" / "v2" / "0").write_text("v2\n" + json.dumps(metadata))
    (operator / "_metadata" / "v2" / ".0.crc").write_bytes(b"crc\0")
    return checkpoint


def test_where_it_was_made_nothing_changes(made):
    before = {path: path.read_bytes() for path in made.root.rglob("*") if path.is_file()}
    assert relocate(made) == []
    assert {path: path.read_bytes() for path in made.root.rglob("*") if path.is_file()} == before


def test_where_it_was_moved_to_its_paths_are_put_right(made, tmp_path):
    made.root.rename(tmp_path / "after")
    checkpoint = Checkpoint(tmp_path / "after")
    path = checkpoint.spark / "state" / "0" / "_metadata" / "v2" / "0"
    assert relocate(checkpoint) == [path]
    version, metadata = path.read_text().split("\n")
    assert version == "v2"
    (store,) = json.loads(metadata)["stateStoreInfo"]
    here = checkpoint.spark / "state" / "0" / "_stateSchema" / "default" / "0_id"
    assert store == {"numPartitions": 2, "stateSchemaFilePaths": [f"file:{here}"]}
    assert not path.with_name(".0.crc").exists()
    assert relocate(checkpoint) == []


def test_what_is_not_there_is_left_alone(made, tmp_path):
    made.root.rename(tmp_path / "after")
    checkpoint = Checkpoint(tmp_path / "after")
    (checkpoint.spark / "state" / "0" / "_stateSchema" / "default" / "0_id").unlink()
    assert relocate(checkpoint) == []
