"""A function as a sink: called with rows, again if need be, and never without being named."""

from dataclasses import dataclass, replace
from functools import partial

import pytest
from support.connectors.sink_rows import bucket, claim, codes

from cutwater.endings import CHANGE, exit_code
from cutwater.errors import RunError
from cutwater.spark.connectors.callback.sink import Callback


@dataclass(frozen=True)
class Mean:
    sensor: str
    value: float


@pytest.fixture
def given():
    return []


@pytest.fixture
def sink(given):
    return Callback(lambda epoch, bucket, rows: given.append((epoch, bucket, rows)))


def write(sink, who, epoch, *buckets):
    return sink.write(who, epoch, Mean, [bucket(Mean, rows, label) for label, rows in buckets])


def test_rows_are_passed_by_epoch_and_bucket(sink, given, tmp_path):
    who = claim(checkpoint=tmp_path)
    sink.claim(who)
    a, b, c = Mean("a", 1.0), Mean("b", 2.0), Mean("c", 3.0)
    sink.publish(who, 0, [write(sink, who, 0, (1, [a, b]), (2, [c]))])
    assert given == [(0, 1, [a, b]), (0, 2, [c])]
    assert sink.row_count(who) == 3


def test_what_has_returned_is_not_called_again(sink, given, tmp_path):
    who = claim(checkpoint=tmp_path)
    sink.claim(who)
    write(sink, who, 0, (1, [Mean("a", 1.0)]))
    again = claim(2, checkpoint=tmp_path)
    sink.claim(again)
    write(sink, again, 0, (1, [Mean("a", 1.0)]), (2, [Mean("b", 1.0)]))
    write(sink, again, 1, (1, [Mean("c", 1.0)]))
    assert [(epoch, label) for epoch, label, _ in given] == [(0, 1), (0, 2), (1, 1)]
    assert sink.row_count(again) == 3


def test_what_has_not_returned_is_called_again(given, tmp_path):
    """At least once: the function had its effect, and then failed."""

    def fails_once(epoch, bucket, rows):
        given.append(bucket)
        if len(given) == 1:
            raise OSError("the line is dead")

    sink, who = Callback(fails_once), claim(checkpoint=tmp_path)
    sink.claim(who)
    with pytest.raises(RunError, match="call-failed") as error:
        write(sink, who, 0, (1, [Mean("a", 1.0)]))
    assert exit_code(error.value) == CHANGE
    write(sink, who, 0, (1, [Mean("a", 1.0)]))
    assert given == [1, 1]
    assert sink.row_count(who) == 1


def test_an_earlier_generation_calls_no_more(sink, given, tmp_path):
    zombie = claim(1, checkpoint=tmp_path)
    sink.claim(zombie)
    sink.claim(claim(2, checkpoint=tmp_path))
    with pytest.raises(RunError, match="generation 2 has taken over from generation 1"):
        write(sink, zombie, 0, (1, [Mean("a", 1.0)]))
    assert given == []


def test_a_run_that_wakes_after_a_newer_one_took_the_sink_is_refused(sink, given, tmp_path):
    living = claim(2, checkpoint=tmp_path)
    sink.claim(living)
    with pytest.raises(RunError, match=r"fenced.*generation 1 .* generation 2 has claimed it"):
        sink.claim(claim(1, checkpoint=tmp_path))
    write(sink, living, 0, (1, [Mean("a", 1.0)]))
    assert len(given) == 1


def test_a_run_that_is_overtaken_during_a_call_notes_nothing(tmp_path):
    who, given = claim(1, checkpoint=tmp_path), []

    def slow(epoch, bucket, rows):
        given.append(epoch)
        if len(given) == 1:
            sink.claim(claim(2, checkpoint=tmp_path))

    sink = Callback(slow)
    sink.claim(who)
    with pytest.raises(RunError, match="fenced"):
        write(sink, who, 0, (1, [Mean("a", 1.0)]))
    write(sink, claim(2, checkpoint=tmp_path), 0, (1, [Mean("a", 1.0)]))
    assert given == [0, 0]


@pytest.mark.parametrize("error", [ValueError("no such row"), SystemExit(3)])
def test_what_a_function_raises_is_a_sentence_that_names_it(tmp_path, error):
    def send(epoch, bucket, rows):
        raise error

    sink, who = Callback(send), claim(checkpoint=tmp_path)
    sink.claim(who)
    with pytest.raises(RunError) as found:
        write(sink, who, 4, (7, [Mean("a", 1.0)]))
    (problem,) = found.value.problems
    assert (problem.code, exit_code(found.value)) == ("call-failed", CHANGE)
    assert "send (test_sink.py:" in problem.message
    assert "1 row of bucket 7 in epoch 4" in problem.message
    assert f"{type(error).__name__}: {error}" in problem.message


class Sender:
    def __call__(self, epoch, bucket, rows):
        pass

    def send(self, epoch, bucket, rows):
        pass


@pytest.mark.parametrize("function", [lambda *rows: None, Sender(), Sender().send, max])
def test_what_can_be_called(function):
    assert list(Callback(function).problems("means", Mean)) == []


@pytest.mark.parametrize("function", [None, "send", lambda rows: None, lambda a, b, c, d: None])
def test_what_cannot_be_called(function):
    assert codes(Callback(function).problems("means", Mean)) == ["no-function"]


def test_it_says_that_rows_may_come_again():
    def send(epoch, bucket, rows):
        pass

    for function in (send, partial(partial(send), bucket=1)):
        guarantee = Callback(function).guarantee()
        assert guarantee.kind == "at-least-once"
        assert "send (test_sink.py:" in guarantee.because
    assert "again" in guarantee.because


def test_a_checkpoint_that_is_anothers_is_no_matter(sink):
    assert sink.check("means", None, 0) == []
    assert sink.generation("means") == 0


def test_a_bucket_that_is_behind_hides_no_call_where_tasks_do_not_wait(sink, given, tmp_path):
    """Two tasks note that their calls begin, at the same time and for different ticks."""
    who = replace(claim(checkpoint=tmp_path), is_bulk_synchronous=False)
    sink.claim(who)
    behind = Callback(lambda _epoch, _bucket, _rows: write(sink, who, 6, (2, [Mean("b", 1.0)])))
    write(behind, who, 5, (1, [Mean("a", 1.0)]))
    assert "returned for 1 bucket" in sink.released(who, 6)
    write(sink, who, 4, (3, [Mean("c", 1.0)]))
    assert sink.released(who, 6) is not None
    assert [(epoch, label) for epoch, label, _ in given] == [(6, 2), (4, 3)]
