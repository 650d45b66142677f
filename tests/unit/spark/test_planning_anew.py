"""From outside, on Spark: what the hints say helps. What went wrong is corrected, and run again."""

import json

import pytest

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import InputError, RefusedError, RunError, StepError

KEY = "all"


@cw.task(initial=0)
def total(seen: int, n: int) -> tuple[int, list[int]]:
    return seen + n, [seen + n]


def flow_of(f):
    flow = cw.Flow("totals")
    numbers = flow.source("numbers", int).map(f, name="mapped").key_by(lambda n: KEY)
    flow.sink("out", numbers.apply(total))
    return flow


def same(n: int) -> int:
    return n


def failing(n: int) -> int:
    return n // (n - 5)


@pytest.fixture
def start(spark, tmp_path):
    """Runs a flow with the same folders each time; what the folder sink shows then."""
    (tmp_path / "in").mkdir()

    def start(f=same, sink=None, **settings):
        cutwater_spark.run(
            flow_of(f),
            spark,
            sources={"numbers": tmp_path / "in"},
            sinks={"out": sink or tmp_path / "out"},
            checkpoint=tmp_path / "state",
            partitions=2,
            **settings,
        )
        lines = [
            line
            for part in sorted((tmp_path / "out").glob("epoch=*/*.jsonl"))
            for line in part.read_text().splitlines()
        ]
        return list(map(json.loads, lines))

    return start


def test_a_bad_line_is_corrected_in_its_file_in_the_first_epoch_and_in_a_later_one(start, tmp_path):
    (tmp_path / "in" / "a.jsonl").write_text("1\nbad\n")
    with pytest.raises(InputError, match="bad-record"):
        start()
    (tmp_path / "in" / "a.jsonl").write_text("1\n2\n3\n")
    assert start() == [1, 3, 6]
    (tmp_path / "in" / "b.jsonl").write_text("worse\n4\n")
    with pytest.raises(InputError, match="correct the input"):
        start()
    (tmp_path / "in" / "b.jsonl").write_text("4\n")
    assert start() == [1, 3, 6, 10]


def test_a_step_that_fails_is_corrected(start, tmp_path):
    (tmp_path / "in" / "a.jsonl").write_text("5\n")
    with pytest.raises(StepError):
        start(failing)
    assert start(same) == [5]


def test_a_function_that_was_called_is_corrected_and_finishes_what_it_began(start, tmp_path):
    def fail(epoch, bucket, rows):
        raise ValueError("not now")

    def send(epoch, bucket, rows):
        (tmp_path / "sent").write_text(f"{epoch} {rows}")

    (tmp_path / "in" / "a.jsonl").write_text("7\n")
    with pytest.raises(RunError, match="--finish-with-this-flow"):
        start(sink=cutwater_spark.call(fail))
    with pytest.raises(RefusedError, match="returned for 0 buckets"):
        start(less_one, cutwater_spark.call(send))
    told = []
    start(
        less_one,
        cutwater_spark.call(send),
        finish_with_this_flow=True,
        notify=told.append,
    )
    assert (tmp_path / "sent").read_text() == "0 [6]"
    assert any("epoch 0 was begun by another flow" in sentence for sentence in told)


def less_one(n: int) -> int:
    return n - 1
