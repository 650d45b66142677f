"""Whose checkpoint it is, and what may not change between two runs."""

import json
from dataclasses import dataclass, replace

import pytest

import cutwater as cw
from cutwater.errors import RunError
from cutwater.spark.checkpoint.compatibility import CHECKPOINT_FORMAT, differences, identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.job.spec import Job
from cutwater.spark.state.partitions import SETTING
from cutwater.spark.storage.durable import write_json


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [Item(item.name, seen + 1)]


@cw.task(initial=0)
def total(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + item.size, [Item(item.name, seen + item.size)]


@cw.task(initial=0.0, name="count")
def count_in_floats(seen: float, item: Item) -> tuple[float, list[Item]]:
    return seen + 1, [Item(item.name, int(seen) + 1)]


def two_levels(first=count, second=total, name="flow", source="items", field="size"):
    flow = cw.Flow(name)
    items = flow.source(source, Item)
    flow.sink("out", items.key_by("name").apply(first).key_by(field).apply(second))
    return flow


def identity(flow, buckets=16, partitions=2):
    return identity_of(Job(flow, {}, {}, "", 0, buckets, ""), partitions)


def test_the_same_flow_has_no_differences():
    assert identity(two_levels()).query_id != identity(two_levels()).query_id
    later = replace(identity(two_levels()), generation=7)
    assert differences(later, identity(two_levels())) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (identity(two_levels(name="other")), "its name was 'flow' and is 'other'"),
        (identity(two_levels(source="things")), "its sources were 'items' and are 'things'"),
        (identity(two_levels(), buckets=32), "it had 16 buckets and has 32"),
    ],
)
def test_a_difference_is_a_sentence(changed, words):
    (problem,) = differences(identity(two_levels()), changed)
    assert problem.code == "changed-flow"
    assert words in problem.message


def test_another_number_of_partitions_names_the_command_that_changes_it():
    (problem,) = differences(identity(two_levels()), identity(two_levels(), partitions=4))
    assert problem.code == "other-partitions"
    assert "has 2 partitions, and 4 were asked for" in problem.message
    assert "cutwater checkpoint rescale CHECKPOINT --partitions 4" in problem.hint


def test_a_state_of_another_type_is_refused():
    (problem,) = differences(identity(two_levels()), identity(two_levels(first=count_in_floats)))
    assert "the state of step 'count' was int and is float" in problem.message


def test_steps_that_change_places_are_refused():
    """Their states lie in the store of a level; looked for in another they would seem new."""
    swapped = identity(two_levels(first=total, second=count))
    text = "\n".join(problem.message for problem in differences(identity(two_levels()), swapped))
    assert "step 'count' was in level 1 and is in level 2" in text
    assert "step 'total' was in level 2 and is in level 1" in text


def test_all_differences_are_reported_at_once():
    changed = identity(two_levels(name="other", source="things"), buckets=8, partitions=1)
    assert len(differences(identity(two_levels()), changed)) == 4


def test_an_identity_is_read_as_it_was_written(tmp_path):
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.create()
    written = replace(identity(two_levels()), generation=3)
    checkpoint.save(written)
    assert checkpoint.identity() == written
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_no_checkpoint_yet(tmp_path):
    checkpoint = Checkpoint(tmp_path / "state")
    assert checkpoint.identity() is None
    assert checkpoint.next_epoch() == 0
    assert not checkpoint.root.exists()


def test_a_checkpoint_that_lost_its_identity_is_refused(tmp_path):
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    with pytest.raises(RunError, match="no-identity"):
        Checkpoint(tmp_path).identity()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"format": CHECKPOINT_FORMAT, "flow": 1}, "damaged-file"),
        ({"format": 99}, "checkpoint-format"),
    ],
)
def test_a_foreign_identity_is_a_sentence(tmp_path, content, code):
    write_json(tmp_path / "cutwater.json", content)
    with pytest.raises(RunError, match=code):
        Checkpoint(tmp_path).identity()


@pytest.mark.parametrize("text", ["{", f'{{"format": {CHECKPOINT_FORMAT}}}', "[]", "null"])
def test_an_identity_without_its_sum_is_damaged(tmp_path, text):
    (tmp_path / "cutwater.json").write_text(text)
    code = "damaged-file"
    with pytest.raises(RunError, match=code):
        Checkpoint(tmp_path).identity()


@pytest.mark.parametrize("below", ["", "below"])
def test_a_place_where_a_file_is_cannot_be_a_checkpoint(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    checkpoint = Checkpoint(tmp_path / "file" / below if below else tmp_path / "file")
    for use in (checkpoint.identity, checkpoint.create):
        with pytest.raises(RunError, match="unwritable-checkpoint"):
            use()


def test_the_next_epoch_is_behind_the_newest_offset(tmp_path):
    offsets = tmp_path / "spark" / "offsets"
    offsets.mkdir(parents=True)
    for name in ("9", "10", ".11.crc", ".12.a.tmp", "13.tmp"):
        (offsets / name).touch()
    assert Checkpoint(tmp_path).next_epoch() == 11


def epoch(checkpoint, number, partitions=None, *, is_finished=True):
    """An epoch in Spark's own logs."""
    for log in ("offsets", "commits"):
        (checkpoint.spark / log).mkdir(parents=True, exist_ok=True)
    conf = {} if partitions is None else {"conf": {SETTING: str(partitions)}}
    (checkpoint.spark / "offsets" / str(number)).write_text(
        f'v1\n{json.dumps(conf)}\n{{"entry": 1}}'
    )
    if is_finished:
        (checkpoint.spark / "commits" / str(number)).touch()


@pytest.fixture
def checkpoint(tmp_path):
    made = Checkpoint(tmp_path / "state")
    made.create()
    made.save(identity(two_levels(), partitions=2))
    return made


def test_the_partitions_are_those_of_the_last_finished_epoch(checkpoint):
    """A move that was killed before the identity was written has happened all the same."""
    assert checkpoint.identity().partitions == 2
    epoch(checkpoint, 0, 2)
    epoch(checkpoint, 1, 4, is_finished=False)
    assert (checkpoint.identity().partitions, checkpoint.rescaling_to()) == (2, 4)
    epoch(checkpoint, 1, 4)
    assert (checkpoint.identity().partitions, checkpoint.rescaling_to()) == (4, None)


def test_a_flow_without_states_has_the_number_in_its_identity(checkpoint):
    epoch(checkpoint, 0, 2)
    checkpoint.save(replace(checkpoint.identity(), levels=0, partitions=8))
    assert checkpoint.identity().partitions == 8


def test_an_epoch_that_was_cut_off_is_no_move(checkpoint):
    epoch(checkpoint, 0, 2)
    assert not checkpoint.is_mid_epoch()
    epoch(checkpoint, 1, 2, is_finished=False)
    assert checkpoint.is_mid_epoch()
    assert checkpoint.rescaling_to() is None


@pytest.mark.parametrize("numbers", [(None, None), (None, 4)])
def test_a_log_that_does_not_say_is_no_move(checkpoint, numbers):
    for number, partitions in enumerate(numbers):
        epoch(checkpoint, number, partitions, is_finished=number == 0)
    assert checkpoint.rescaling_to() is None
    assert checkpoint.identity().partitions == 2


@pytest.mark.parametrize("line", ["{", '{"conf": 3}', f'{{"conf": {{"{SETTING}": "x"}}}}'])
def test_a_damaged_log_of_spark_is_a_sentence(checkpoint, line):
    epoch(checkpoint, 0, 2)
    (checkpoint.spark / "offsets" / "0").write_text(f"v1\n{line}")
    with pytest.raises(RunError, match="damaged-file"):
        checkpoint.identity()


@pytest.mark.parametrize(
    ("lines", "is_ending"),
    [
        (['{"entry": 1, "end": true}'], True),
        (["-", '{"entry":1,"end":true}'], True),
        (['{"entry": 1}', "-", "7"], False),
        (['{"end": {"0": 5}}'], False),  # a topic of Kafka
        (['{"end": {"0": 5}, "entry": {"0": 5}}'], False),
        (['{"entry": 1, "end": {"0": 5}}'], False),
        (['{"end": true}'], False),
    ],
)
def test_only_our_own_offsets_say_that_the_input_ends(checkpoint, lines, is_ending):
    epoch(checkpoint, 0)
    assert not checkpoint.is_ending()
    (checkpoint.spark / "offsets" / "1").write_text("\n".join(["v1", "{}", *lines]))
    assert checkpoint.is_ending() == is_ending


def test_a_damaged_offset_is_a_sentence(checkpoint):
    epoch(checkpoint, 0)
    (checkpoint.spark / "offsets" / "0").write_text('v1\n{}\n{"entry": 1, "end": tr')
    with pytest.raises(RunError, match="damaged-file"):
        checkpoint.is_ending()
