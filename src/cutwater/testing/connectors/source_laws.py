"""The laws of a replayable source, tested without Spark.

==============================  ==============================================================
what happens to a run           what the source then shows
==============================  ==============================================================
an epoch is planned             `poll` returns chunks, `advance` confirms them in the log
an epoch is replayed            a reader returns the same records for a chunk, at any time
the run starts again            a new planner that has advanced over the log plans the rest
the epoch is read by n tasks    chunks that are cut give the same records
==============================  ==============================================================
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutwater.spark.connectors.base.source import Chunk, Planner, SourceConnector
from cutwater.testing.connectors.counting import Click, click

__all__ = ["SourceLaws"]

_Found = tuple[int, Any, Any]
"""The number of a chunk, the position of a record in it, and the record."""


class SourceLaws:
    """The laws of a source. A subclass makes the source and adds records; pytest runs the rest.

    .. code-block:: python

        class TestMySource(SourceLaws):
            def make_source(self, folder):
                return MySource(folder / "in")

            def append(self, source, clicks):
                my_own_writer(source.path, clicks)
    """

    def make_source(self, folder: Path) -> SourceConnector:
        """A source of `Click` records that has none yet; `folder` is empty and may be used."""
        raise NotImplementedError

    def append(self, source: SourceConnector, clicks: Sequence[Click]) -> None:
        """Append records, as a writer outside does."""
        raise NotImplementedError

    @pytest.fixture
    def input(self, tmp_path: Path, request: pytest.FixtureRequest) -> _Input:
        """A new source that has 50 records."""
        self.request = request
        made = _Input(self, self.make_source(tmp_path))
        made.append(50)
        return made

    # --- planning --------------------------------------------------------------------------------

    def test_every_record_is_read_once(self, input: _Input) -> None:
        """Records that come after an epoch was planned are in a later one."""
        planner = input.planner()
        chunks = _plan_all(planner)
        input.append(30)
        chunks += _plan_all(planner)
        input.must_be_whole(input.read(chunks))

    def test_a_start_goes_on_where_the_log_ends(self, input: _Input) -> None:
        """A new planner that has advanced over the log plans what is not in it."""
        logged = _plan_all(input.planner())
        input.append(30)
        later = input.planner()
        for chunk in logged:
            later.advance(_logged_again(chunk))
        rest = _plan_all(later)
        assert input.clicks_of(rest) == set(input.appended[50:])
        input.must_be_whole(input.read([*logged, *rest]))

    def test_a_compacted_log_says_the_same(self, input: _Input) -> None:
        """Old chunks of one number are merged into one, which is not read."""
        logged = _plan_all(input.planner())
        input.append(30)
        merged: dict[int, Chunk] = {}
        for chunk in logged:
            known = merged.get(chunk.number)
            merged[chunk.number] = input.source.merge(known, chunk) if known else chunk
        later = input.planner()
        for chunk in merged.values():
            later.advance(_logged_again(chunk))
        assert input.clicks_of(_plan_all(later)) == set(input.appended[50:])

    def test_a_run_that_catches_up_plans_what_was_there(self, input: _Input) -> None:
        """After `freeze`; it still reports whether there is more."""
        planner = input.planner()
        planner.freeze()
        input.append(30)
        assert input.clicks_of(_plan_all(planner)) == set(input.appended[:50])
        assert planner.has_input()

    def test_it_says_whether_there_is_input(self, input: _Input) -> None:
        """An idle source plans nothing."""
        planner = input.planner()
        assert planner.has_input()
        _plan_all(planner)
        assert not planner.has_input()
        assert planner.poll() == []

    def test_what_was_polled_and_not_logged_is_polled_again(self, input: _Input) -> None:
        """The planner forgets nothing that did not reach the log."""
        planner = input.planner()
        lost, again = planner.poll(), planner.poll()
        assert input.read(lost)[: len(input.read(again))] == input.read(again)

    # --- reading ---------------------------------------------------------------------------------

    def test_a_replay_reads_the_same(self, input: _Input) -> None:
        """Regardless of later records, and in another process."""
        chunks = _plan_all(input.planner())
        before = input.read(chunks)
        input.append(30)
        assert input.read(map(_logged_again, chunks)) == before

    def test_records_have_an_order(self, input: _Input) -> None:
        """Positions ascend in a chunk, and so do the bytes by which the engine sorts."""
        for chunk in _plan_all(input.planner()):
            positions = [position for _, position, _ in input.read([chunk])]
            keys = input.source.sort_keys(positions)
            assert keys == sorted(set(keys))
            assert not any(b.startswith(a) for a, b in itertools.pairwise(keys))
            for position, key in zip(positions, keys, strict=True):
                assert input.source.position_of(chunk, key + b"behind it") == position

    @pytest.mark.parametrize("weight", [1, 3, 10_000_000])
    def test_a_chunk_that_is_cut_gives_the_same_records(self, input: _Input, weight: int) -> None:
        """Tasks share the chunks of an epoch."""
        for chunk in _plan_all(input.planner()):
            parts = list(_cut(input.source, chunk, weight))
            assert input.read(parts) == input.read([chunk])

    def test_records_can_be_counted(self, input: _Input) -> None:
        """Where records are numbered, chunks are counted before they are read."""
        reader = input.source.reader(Click)
        for chunk in _plan_all(input.planner()):
            assert reader.count(chunk) == len(input.read([chunk]))

    def test_a_record_can_be_found_again(self, input: _Input) -> None:
        """Failures and bad records say where a record is."""
        for chunk in _plan_all(input.planner()):
            for _, position, _ in input.read([chunk]):
                assert input.source.location(chunk, position)
                json.dumps(input.source.coordinates(chunk, position))
                json.dumps(input.source.readable_coordinates(chunk, position))

    # --- serialisation ---------------------------------------------------------------------------

    def test_it_can_be_serialised(self, input: _Input) -> None:
        """It is sent to every worker."""
        again = pickle.loads(pickle.dumps(input.source))
        assert again == input.source
        chunks = _plan_all(input.planner())
        assert _Input(self, again).read(chunks) == input.read(chunks)

    def test_it_can_be_replayed_and_says_why(self, input: _Input) -> None:
        """A guarantee depends on it."""
        assert input.source.replay().is_replayable
        assert input.source.replay().because
        assert input.source.kind


class _Input:
    """A source and its records."""

    def __init__(self, laws: SourceLaws, source: SourceConnector) -> None:
        self.source = source
        self.appended: list[Click] = []
        self._laws = laws

    def append(self, count: int) -> None:
        """Add records."""
        clicks = [click(len(self.appended) + n) for n in range(count)]
        self._laws.append(self.source, clicks)
        self.appended += clicks

    def planner(self) -> Planner:
        """The planner of a new run."""
        return self.source.planner(Click, lambda: 0.0)

    def read(self, chunks: Any) -> list[_Found]:
        """All records of some chunks, as a task reads them."""
        reader = self.source.reader(Click)
        found: list[_Found] = []
        for chunk in chunks:
            for raw_batch in reader.batches(chunk):
                values = reader.decode(raw_batch)
                numbers = [chunk.number] * len(values)
                found += zip(numbers, raw_batch.positions, values, strict=True)
        return found

    def clicks_of(self, chunks: Sequence[Chunk]) -> set[Click]:
        """The records of some chunks."""
        return {value for _, _, value in self.read(chunks)}

    def must_be_whole(self, found: Sequence[_Found]) -> None:
        """Every record occurs once; those of a chunk number are in the order they came."""
        seen = [value.position for _, _, value in found]
        assert sorted(seen) == [one.position for one in self.appended]
        for number in {number for number, _, _ in found}:
            of_number = [value.position for n, _, value in found if n == number]
            assert of_number == sorted(of_number)


def _plan_all(planner: Planner) -> list[Chunk]:
    """The chunks of all epochs until there is nothing left."""
    found: list[Chunk] = []
    while chunks := planner.poll():
        for chunk in chunks:
            assert not chunk.is_decision, f"an empty chunk was planned: {chunk}"
            assert chunk not in found, f"{chunk} was planned again after `advance` confirmed it"
            planner.advance(chunk)
        found += chunks
    return found


def _logged_again(chunk: Chunk) -> Chunk:
    """The chunk, read back from a log."""
    return Chunk.of_json(json.loads(json.dumps(chunk.to_json())))


def _cut(source: SourceConnector, chunk: Chunk, weight: int) -> Iterator[Chunk]:
    """The parts of a chunk, of about equal weight."""
    while not chunk.is_decision:
        end = source.cut(chunk, weight)
        assert end != chunk.start, f"a part is empty: {chunk}"
        yield replace(chunk, end=end)
        chunk = replace(chunk, start=end)
