"""The loops of a job that feed back through a log."""

from dataclasses import dataclass

from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.spark.exchange.envelope import InputEpochs


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@cw.task(initial=0)
def count(seen: int, item: Item) -> tuple[int, list[Item]]:
    return seen + 1, [Item(item.name, item.size - 1)]


def shrunk(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    smaller = stream.key_by("size", name="in it").apply(count)
    return smaller.filter(is_large), smaller


def is_large(item: Item) -> bool:
    return item.size > 0


def looping(tmp_path, *, feeds_back=True, state_per_epoch=False):
    flow = cw.Flow("loops")
    items = flow.source("items", Item).key_by("name", name="in front").apply(count, name="first")
    left = items.key_by("name", name="entering").iterate(
        shrunk, state_per_epoch=state_per_epoch, name="loop"
    )
    flow.sink("out", left.key_by("name", name="after").apply(count, name="last"))
    return make_job(flow, tmp_path, feeds_back=feeds_back)


def test_a_loop_that_runs_in_one_epoch_is_not_cut(tmp_path):
    loops = looping(tmp_path, feeds_back=False).loops
    assert (loops.logs, loops.inside, loops.overlaps) == ((), frozenset(), False)
    assert loops.input_epochs(3) is None


def test_every_segment_has_a_side_of_the_loop(tmp_path):
    job = looping(tmp_path)
    sides = {s.name: job.loops.side_of(s) for s in job.plan.segments if s.is_stateful}
    assert sides == {"in front": "before", "in it": "inside", "after": "behind"}


def test_rows_inside_and_rows_for_a_log_carry_their_input_epoch(tmp_path):
    job = looping(tmp_path)
    into_logs = [name for name in job.addresses.sink_names if job.loops.log_into(name)]
    assert into_logs == [log.name for log in job.loops.logs]
    assert {job.addresses.target_of_sink(name) for name in into_logs} < job.loops.inside
    assert job.addresses.target_of_sink("out") not in job.loops.inside
    assert job.loops.input_epochs(3) == InputEpochs(3, job.loops.inside)


def test_input_epochs_overlap_only_where_each_keeps_states_of_its_own(tmp_path):
    kept = looping(tmp_path).loops
    assert (kept.overlaps, kept.keeps_states_per_input) == (False, frozenset())
    anew = looping(tmp_path, state_per_epoch=True).loops
    assert (anew.overlaps, anew.keeps_states_per_input) == (True, anew.inside)
