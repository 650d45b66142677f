"""The laws of an exactly-once sink, tested without Spark: the calls of the runtime, in odd orders.

==============================  ==============================================================
what happens to a run           what the runtime then calls
==============================  ==============================================================
a task is retried               `write` again, with the same rows; one receipt reaches `publish`
the run dies after `publish`    `claim` by a higher generation; `write` and `publish` again
a run is presumed dead          `claim` by a higher generation; the old one continues to call
another checkpoint starts       `check`, which refuses it; `take_over` if the user says so
==============================  ==============================================================
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutwater.errors import FencedError
from cutwater.spark.connectors.base.sink import (
    EXACTLY_ONCE,
    BucketRows,
    Claim,
    Receipt,
    SinkConnector,
)
from cutwater.spark.exchange.columns import Records
from cutwater.testing.connectors.counting import Counted
from cutwater.vectors import Layout

__all__ = ["SinkLaws"]

_NAME = "counts"
_EVENTS_PER_EPOCH = 100


class SinkLaws:
    """The laws of a sink. A subclass makes the sink and reads it; pytest runs the rest.

    .. code-block:: python

        class TestMySink(SinkLaws):
            def make_sink(self, folder):
                return MySink(folder / "out")

            def read(self, sink):
                return my_own_reader(sink.path)
    """

    has_order = True
    """Does a reader see the rows of a bucket in order?"""

    def make_sink(self, folder: Path) -> SinkConnector:
        """A new, empty sink; `folder` is empty and may be used."""
        raise NotImplementedError

    def read(self, sink: SinkConnector) -> Iterable[Mapping[str, Any]]:
        """What a reader sees, in order: rows with the fields of `Counted`; none at first."""
        raise NotImplementedError

    @pytest.fixture
    def output(self, tmp_path: Path, request: pytest.FixtureRequest) -> _Output:
        """A new sink that a first generation has claimed."""
        self.request = request
        made = _Output(self, self.make_sink(tmp_path), str(tmp_path / "checkpoints"))
        made.claim(made.first)
        return made

    # --- rows are released once ------------------------------------------------------------------

    def test_epochs_are_released_in_order(self, output: _Output) -> None:
        """Each epoch is written by two tasks and then published."""
        for epoch in range(3):
            tasks = [output.write(output.first, epoch, {1: [1, 2], 2: [3]})]
            tasks += [output.write(output.first, epoch, {3: [4]})]
            output.sink.publish(output.first, epoch, tasks)
        output.must_show([1, 2, 3, 4, 101, 102, 103, 104, 201, 202, 203, 204])

    def test_a_task_that_is_retried_shows_its_rows_once(self, output: _Output) -> None:
        """Either attempt may be the one whose receipt arrives."""
        for epoch, used in enumerate((0, 1)):
            attempts = [output.write(output.first, epoch, {1: [1, 2]}) for _ in range(2)]
            output.sink.publish(output.first, epoch, [attempts[used]])
        output.must_show([1, 2, 101, 102])

    def test_an_epoch_that_is_run_again_is_released_once(self, output: _Output) -> None:
        """All its tasks write again, and it is published again."""
        for _ in range(2):
            output.show(output.first, 0, {1: [1, 2]})
        output.must_show([1, 2])

    def test_an_epoch_that_is_replayed_by_the_next_run_is_released_once(
        self, output: _Output
    ) -> None:
        """The run died after the epoch was published; the next one replays all of it."""
        output.show(output.first, 0, {1: [1, 2]})
        output.claim(output.second)
        output.show(output.second, 0, {1: [1, 2]})
        output.show(output.second, 1, {1: [3]})
        output.must_show([1, 2, 103])

    def test_what_a_dead_run_wrote_is_finished_by_the_next_one(self, output: _Output) -> None:
        """One of two tasks was done; what it released stays, what it staged is written again."""
        output.write(output.first, 0, {1: [1, 2]})
        output.claim(output.second)
        tasks = [output.write(output.second, 0, {1: [1, 2]})]
        tasks += [output.write(output.second, 0, {2: [3]})]
        output.sink.publish(output.second, 0, tasks)
        output.must_show([1, 2, 3])

    def test_rows_are_seen_when_the_release_says_so(self, output: _Output) -> None:
        """``commit``: not before the whole epoch is published. ``early``: when a task is done."""
        receipt = output.write(output.first, 0, {1: [1, 2]})
        output.must_show([1, 2] if output.sink.release == "early" else [])
        output.sink.publish(output.first, 0, [receipt])
        output.must_show([1, 2])

    def test_rows_that_nobody_published_are_not_seen_later(self, output: _Output) -> None:
        """An attempt of an abandoned task, in an epoch that others finished."""
        output.write(output.first, 0, {1: [1, 2]})
        output.sink.publish(output.first, 0, [output.write(output.first, 0, {1: [1, 2]})])
        output.claim(output.second)
        output.show(output.second, 1, {1: [3]})
        output.must_show([1, 2, 103])

    # --- one writer at a time --------------------------------------------------------------------

    def test_a_claim_can_be_repeated(self, output: _Output) -> None:
        """A run that was cut off while claiming claims again."""
        output.show(output.first, 0, {1: [1]})
        output.claim(output.first)
        output.show(output.first, 1, {1: [2]})
        output.must_show([1, 102])

    def test_a_newer_generation_fences_a_task(self, output: _Output) -> None:
        """A zombie that was paused before it wrote."""
        output.show(output.first, 0, {1: [1]})
        output.claim(output.second)
        with pytest.raises(FencedError):
            output.show(output.first, 1, {1: [9]})
        output.show(output.second, 1, {1: [2]})
        output.must_show([1, 102])

    def test_a_newer_generation_fences_a_driver(self, output: _Output) -> None:
        """A zombie that was paused before it published."""
        receipt = output.write(output.first, 0, {1: [1, 2]})
        output.claim(output.second)
        is_early = output.sink.release == "early"
        if not is_early:
            with pytest.raises(FencedError):
                output.sink.publish(output.first, 0, [receipt])
        output.must_show([1, 2] if is_early else [])
        output.show(output.second, 0, {1: [1, 2]})
        output.must_show([1, 2])

    def test_an_older_generation_cannot_claim(self, output: _Output) -> None:
        """A run that slept before it claimed."""
        output.claim(output.second)
        with pytest.raises(FencedError):
            output.sink.claim(output.first)
        output.show(output.second, 0, {1: [1]})
        output.must_show([1])

    # --- what the ledger records -----------------------------------------------------------------

    def test_the_ledger_says_how_far_the_output_is(self, output: _Output) -> None:
        """A start compares it with its checkpoint."""
        query_id = output.first.query_id
        assert output.sink.newest_epoch(_NAME, query_id) in (None, -1)
        output.show(output.first, 0, {1: [1, 2]})
        output.show(output.first, 1, {1: [3]})
        assert output.sink.newest_epoch(_NAME, query_id) == 1
        assert output.sink.generation(_NAME) == 1
        assert output.sink.row_count(output.first) == 3

    def test_the_ledger_says_what_was_released_of_an_epoch(self, output: _Output) -> None:
        """An epoch of which nothing was published may be replanned."""
        output.show(output.first, 0, {1: [1]})
        output.claim(output.second)
        assert output.sink.released(output.second, 0) is not None
        assert output.sink.released(output.second, 1) is None

    def test_a_checkpoint_that_is_behind_its_output_is_refused(self, output: _Output) -> None:
        """It was restored from a backup: its next epoch differs from the one released."""
        output.show(output.first, 0, {1: [1]})
        query_id = output.first.query_id
        assert output.sink.check(_NAME, query_id, 1) == []
        assert output.sink.check(_NAME, query_id, 0) != []

    def test_another_checkpoint_is_refused(self, output: _Output) -> None:
        """Both one that exists and one that does not exist yet."""
        output.show(output.first, 0, {1: [1]})
        assert output.sink.check(_NAME, "another", 0) != []
        assert output.sink.check(_NAME, None, 0) != []

    @pytest.mark.parametrize("keep", [True, False], ids=["adopt", "fresh"])
    def test_another_checkpoint_takes_over(self, output: _Output, keep: bool) -> None:
        """The rows stay or go, and the previous owner releases nothing more."""
        output.show(output.first, 0, {1: [1]})
        other = replace(output.second, query_id="another")
        output.sink.take_over(other, keep=keep)
        output.claim(other)
        with pytest.raises(FencedError):
            output.show(output.first, 1, {1: [9]})
        output.show(other, 0, {1: [2]})
        output.must_show([1, 2] if keep else [2])

    # --- serialisation ---------------------------------------------------------------------------

    def test_it_can_be_serialised(self, output: _Output) -> None:
        """It is sent to every worker."""
        there = _Output(self, pickle.loads(pickle.dumps(output.sink)), output.checkpoints)
        assert there.sink == output.sink
        there.show(there.first, 0, {1: [1]})
        output.must_show([1])

    def test_receipts_can_be_serialised(self, output: _Output) -> None:
        """They are sent from the tasks to the driver."""
        receipt = output.write(output.first, 0, {1: [1]})
        output.sink.publish(output.first, 0, [pickle.loads(pickle.dumps(receipt))])
        output.must_show([1])

    def test_it_says_where_rows_go_and_what_it_guarantees(self, output: _Output) -> None:
        """No two sinks of a flow go to one location."""
        assert output.sink.location
        assert output.sink.release in output.sink.releases
        assert output.sink.guarantee().kind == EXACTLY_ONCE


class _Output:
    """A sink with its ledger, written to as the runtime does it."""

    def __init__(self, laws: SinkLaws, sink: SinkConnector, checkpoints: str) -> None:
        self.sink = sink
        self.checkpoints = checkpoints
        self._laws = laws
        self.first = Claim("kit", _NAME, "query", 1, f"{checkpoints}/one")
        self.second = replace(self.first, generation=2)

    def claim(self, claim: Claim) -> None:
        """Claim for a generation."""
        self.sink.prepare(_NAME, Counted)
        self.sink.claim(claim)

    def write(self, claim: Claim, epoch: int, buckets: Mapping[int, Sequence[int]]) -> Receipt:
        """Act as a task with rows of some buckets, each by its number in the epoch."""
        made = [self._bucket(label, epoch, numbers) for label, numbers in buckets.items()]
        return self.sink.write(claim, epoch, Counted, made)

    def show(self, claim: Claim, epoch: int, buckets: Mapping[int, Sequence[int]]) -> None:
        """Act as an epoch that one task writes."""
        self.sink.publish(claim, epoch, [self.write(claim, epoch, buckets)])

    def _bucket(self, label: int, epoch: int, numbers: Sequence[int]) -> BucketRows:
        rows = [_row(label, epoch * _EVENTS_PER_EPOCH + number) for number in numbers]
        orders = [row.position.to_bytes(8, "big") for row in rows]
        if self.sink.accepts == "lines":
            lines = [json.dumps(vars(row)).encode() + b"\n" for row in rows]
            return BucketRows(label, orders, lines)
        return BucketRows(label, orders, Records.of(Layout.of(Counted), rows))

    def must_show(self, positions: Sequence[int]) -> None:
        """A reader sees these rows, each once, and those of a bucket in order."""
        seen = [(row["key"], row["number"], row["position"]) for row in self._laws.read(self.sink)]
        found: dict[str, list[int]] = {}
        for key, number, position in seen:
            assert number == position, f"a row is not as it was written: {(key, number, position)}"
            found.setdefault(key, []).append(position)
        rows = sorted(position for of_key in found.values() for position in of_key)
        assert rows == sorted(positions), f"a reader sees {rows}"
        if self._laws.has_order:
            for key, of_key in found.items():
                assert of_key == sorted(of_key), f"the rows of '{key}' are in the order {of_key}"


def _row(label: int, position: int) -> Counted:
    return Counted(f"bucket {label}", position, position)
