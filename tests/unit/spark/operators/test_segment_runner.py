"""Bodies that wait for a bucket are merged, and only those are decoded that overlap."""

import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.operators import segment_runner
from cutwater.spark.operators.segment_runner import packed_in_pieces


@cw.task(initial=0)
def total(seen: int, n: int) -> tuple[int, list[int]]:
    return seen + n, [seen + n]


@pytest.fixture
def pieces_of(tmp_path, monkeypatch):
    """Reads bodies of events whose values are their orders; counts how many are decoded."""
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", int).key_by(lambda n: "k").apply(total))
    job = make_job(flow, tmp_path)
    [[segment]] = job.topology.levels
    codec = job.codecs.event_codecs[segment.number]
    monkeypatch.setattr(segment_runner, "PIECE_ROWS", 4)

    def write(values):
        return codec.writer(0)(
            EventBatch([bytes([v]) for v in values], [b"k"] * len(values), values)
        )

    def read(*bodies):
        return packed_in_pieces(job, segment, list(map(write, bodies)), 0)

    return read


def decoded(monkeypatch):
    real, read = segment_runner.unpack_events, []
    monkeypatch.setattr(
        segment_runner, "unpack_events", lambda *given: read.append(len(given[2])) or real(*given)
    )
    return read


@pytest.mark.parametrize(
    "bodies",
    [
        [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
        [[7, 8, 9], [1, 2, 3], [4, 5, 6]],
        [[1, 4, 7], [2, 5, 8], [3, 6, 9]],
        [[9, 1, 2, 3, 4, 5, 6, 7, 8]],
        [[1, 9], [2], [3], [4], [5], [6], [7], [8]],
    ],
)
def test_pieces_are_in_order_and_all_but_the_last_are_full(pieces_of, bodies):
    pieces = [list(batch.values) for batch, _ in pieces_of(*bodies)]
    assert pieces == [[1, 2, 3, 4], [5, 6, 7, 8], [9]]


def test_bodies_that_follow_one_another_are_decoded_one_by_one(pieces_of, monkeypatch):
    read = decoded(monkeypatch)
    pieces = pieces_of(*([n, n + 1, n + 2, n + 3] for n in range(0, 40, 4)))
    assert list(next(pieces)[0].values) == [0, 1, 2, 3]
    assert read == [1]
    assert sum(len(batch) for batch, _ in pieces) == 36
    assert read == [1] * 10
