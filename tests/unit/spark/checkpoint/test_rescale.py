"""``rescale``: what is refused before anything starts, with nothing written."""

import json
from dataclasses import dataclass, replace

import pytest

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.spark.checkpoint import rescale as rescaling
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.job.spec import Job
from cutwater.spark.state.partitions import SETTING


@dataclass(frozen=True)
class Item:
    name: str


@cw.task(initial=0)
def count(state: int, item: Item) -> tuple[int, list[int]]:
    return state + 1, [state + 1]


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    """A checkpoint of three epochs; a session that would be started is a LookupError."""

    def embedded_session(*args, **kwargs):
        raise LookupError

    monkeypatch.setattr(rescaling, "embedded_session", embedded_session)
    flow = cw.Flow("counts")
    flow.sink("out", flow.source("items", Item).key_by("name").apply(count))
    made = Checkpoint(tmp_path / "state")
    made.create()
    made.save(identity_of(Job(flow, {}, {}, "", 0, 16, ""), 2))
    for number in range(3):
        log(made, number)
    return made


def log(checkpoint, epoch, partitions=2, offset='{"entry": 1}', *, is_finished=True):
    for name in ("offsets", "commits"):
        (checkpoint.spark / name).mkdir(parents=True, exist_ok=True)
    conf = json.dumps({"conf": {SETTING: str(partitions)}})
    (checkpoint.spark / "offsets" / str(epoch)).write_text(f"v1\n{conf}\n{offset}")
    if is_finished:
        (checkpoint.spark / "commits" / str(epoch)).touch()


def refusal(checkpoint, partitions):
    before = {p: p.read_bytes() for p in checkpoint.root.parent.rglob("*") if p.is_file()}
    with pytest.raises(RunError) as error:
        cutwater_spark.rescale(checkpoint.root, partitions)
    after = {p: p.read_bytes() for p in checkpoint.root.parent.rglob("*") if p.is_file()}
    assert after == before
    return str(error.value)


def test_a_session_is_started_where_there_is_something_to_move(checkpoint):
    with pytest.raises(LookupError):
        cutwater_spark.rescale(checkpoint.root, 4)


def test_the_number_it_has_needs_no_session(checkpoint):
    assert cutwater_spark.rescale(checkpoint.root, 2) == cutwater_spark.Rescaled("counts", 2, 2, 3)


def test_a_number_that_does_not_divide_the_buckets(checkpoint):
    assert "[partitions-do-not-divide] the number of partitions is 3;" in refusal(checkpoint, 3)


def test_no_checkpoint(tmp_path):
    assert "[no-checkpoint] there is no checkpoint in " in refusal(
        Checkpoint(tmp_path / "nowhere"), 4
    )
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("is_saved", [True, False])
def test_a_closed_checkpoint(checkpoint, is_saved):
    log(checkpoint, 3, offset='{"entry": 1, "end": true}')
    checkpoint.save(replace(checkpoint.identity(), is_closed=is_saved))
    assert "[closed-checkpoint] the input of flow 'counts' has ended" in refusal(checkpoint, 4)


def test_an_epoch_that_was_cut_off(checkpoint):
    log(checkpoint, 3, is_finished=False)
    message = refusal(checkpoint, 4)
    assert "[unfinished-epoch] epoch 3 of the checkpoint" in message
    assert "run the flow until it has caught up" in message


def test_a_move_to_another_number_that_was_cut_off(checkpoint):
    log(checkpoint, 3, 8, is_finished=False)
    assert f"cutwater checkpoint rescale {checkpoint.root} --partitions 8" in refusal(checkpoint, 4)
    with pytest.raises(LookupError):
        cutwater_spark.rescale(checkpoint.root, 8)


def test_a_move_back_is_not_mistaken_for_one_that_was_never_begun(checkpoint):
    log(checkpoint, 3, 8, is_finished=False)
    assert "[half-rescaled]" in refusal(checkpoint, 2)


@pytest.mark.parametrize("file", ["cutwater.json", "spark/offsets/2"])
def test_a_damaged_checkpoint(checkpoint, file):
    (checkpoint.root / file).write_text("v1\n{")
    assert "[damaged-file]" in refusal(checkpoint, 4)
