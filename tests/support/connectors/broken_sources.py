"""A source in memory that keeps all laws of sources, and others, each of which breaks one."""

from dataclasses import dataclass

from cutwater.spark.connectors import (
    Chunk,
    Planner,
    RawBatch,
    RecordReader,
    Replay,
    SourceConnector,
)
from cutwater.testing.connectors import Click

LISTS: dict[str, list[Click]] = {}


@dataclass(frozen=True)
class Listed(SourceConnector):
    """A list in memory that keeps all laws."""

    name: str
    per_epoch: int = 20
    idle_after: float | None = None
    kind = "list"
    partitions_noun = "lists"
    unit = "rows"
    min_task_weight = 1

    @property
    def values(self):
        return LISTS.setdefault(self.name, [])

    def replay(self):
        return Replay(True, "a list only grows")

    def planner(self, tp, now):
        return ListPlanner(self)

    def reader(self, tp):
        return ListReader(self)

    def location(self, chunk, position):
        return f"row {position}"

    def coordinates(self, chunk, position):
        return {"row": position}


class ListPlanner(Planner):
    def __init__(self, source):
        self.source, self.next, self.until = source, 0, None

    def advance(self, chunk):
        self.next = chunk.end

    def freeze(self):
        self.until = len(self.source.values)

    def poll(self):
        until = len(self.source.values) if self.until is None else self.until
        end = min(until, self.next + self.source.per_epoch)
        return [Chunk(0, self.next, end)] if end > self.next else []

    def has_input(self):
        return self.next < len(self.source.values)


class ListReader(RecordReader):
    def __init__(self, source):
        self.source = source

    def batches(self, chunk):
        positions = range(chunk.start, chunk.end)
        yield RawBatch([self.source.values[n] for n in positions], positions)

    def decode_one(self, raw):
        return raw

    def preview(self, raw):
        return repr(raw).encode()


class ReadsTwice(Listed):
    def planner(self, tp, now):
        planner = ListPlanner(self)
        planner.advance = lambda chunk: setattr(planner, "next", chunk.end - (chunk.start == 20))
        return planner


class ForgetsTheLog(Listed):
    def planner(self, tp, now):
        planner = ListPlanner(self)
        own = {}

        def poll():
            own["chunks"] = ListPlanner.poll(planner)
            return own["chunks"]

        def advance(chunk):
            if chunk in own.get("chunks", ()):
                ListPlanner.advance(planner, chunk)

        planner.poll, planner.advance = poll, advance
        return planner


class NeverFreezes(Listed):
    def planner(self, tp, now):
        planner = ListPlanner(self)
        planner.freeze = lambda: None
        return planner


class ReadsWhatIsNew(Listed):
    """A reader that gives the newest rows, whatever chunk it is asked for."""

    def reader(self, tp):
        reader = ListReader(self)

        def batches(chunk):
            size = chunk.end - chunk.start
            yield RawBatch(self.values[-size:], range(chunk.start, chunk.end))

        reader.batches = batches
        return reader


class SortsByText(Listed):
    def sort_keys(self, positions):
        return [str(position).encode() for position in positions]


class CutsNothing(Listed):
    def cut(self, chunk, weight):
        return chunk.start


class LosesAtTheCut(Listed):
    def reader(self, tp):
        reader = ListReader(self)

        def batches(chunk):
            start = chunk.start + (chunk.start % 20 != 0)
            yield RawBatch(self.values[start : chunk.end], range(start, chunk.end))

        reader.batches = batches
        return reader


class HasNoInput(Listed):
    def planner(self, tp, now):
        planner = ListPlanner(self)
        planner.has_input = lambda: False
        return planner


class PlansNothingTwice(Listed):
    """Takes what it polls for logged."""

    def planner(self, tp, now):
        planner = ListPlanner(self)

        def poll():
            chunks = ListPlanner.poll(planner)
            for chunk in chunks:
                planner.next = chunk.end
            return chunks

        planner.poll = poll
        return planner


class PlansTheSameForever(Listed):
    """Does not hear of what is in the log."""

    def planner(self, tp, now):
        planner = ListPlanner(self)
        planner.advance = lambda chunk: None
        return planner


class MergesBackwards(Listed):
    @classmethod
    def merge(cls, before, after):
        return before


BROKEN_SOURCES = {
    ReadsTwice: "every_record_is_read_once",
    ForgetsTheLog: "a_start_goes_on_where_the_log_ends",
    NeverFreezes: "a_run_that_catches_up_plans_what_was_there",
    ReadsWhatIsNew: "a_replay_reads_the_same",
    SortsByText: "records_have_an_order",
    CutsNothing: "a_chunk_that_is_cut_gives_the_same_records",
    LosesAtTheCut: "a_chunk_that_is_cut_gives_the_same_records",
    HasNoInput: "it_says_whether_there_is_input",
    PlansNothingTwice: "what_was_polled_and_not_logged_is_polled_again",
    PlansTheSameForever: "every_record_is_read_once",
    MergesBackwards: "a_compacted_log_says_the_same",
}
