"""Checking a flow: what holds is reported so, and what does not is shown."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.flows import impure_tasks as tasks

import cutwater as cw
from cutwater.checking.flows.liveness import liveness
from cutwater.checking.flows.runs import explained_walks, search
from cutwater.checking.flows.scenario import Scenario
from cutwater.checking.flows.watermark_contract import broken_watermarks, unproductive
from cutwater.events import Data, Watermark
from cutwater.flow.fusing import plan
from cutwater.operators.operator import Operator
from cutwater.semantics.barrier_model import BarrierModel, Barriers
from cutwater.semantics.barriers import Configuration, Messages, latest_common_snapshot
from cutwater.semantics.flow_tasks import FlowTasks
from cutwater.trace import read_trace, write_trace

sys.path.insert(0, str(Path(__file__).parents[4] / "examples"))
import averages


def applied(task, kind=int):
    flow = cw.Flow("applied")
    flow.sink("out", flow.source("numbers", kind).apply(task))
    return flow


def findings(report):
    return {finding.check: finding for finding in report.findings}


def test_a_pure_flow_holds_exhaustively():
    report = cw.check(averages.flow, averages.inputs)
    assert report.holds
    found = findings(report)["failure transparency, all runs"]
    assert found.verdict == "holds"
    assert found.extent.startswith("the whole input, 2 crashes: explored all ")


def test_inputs_are_made_up_where_none_are_given():
    report = cw.check(averages.flow, samples=3, seed=4)
    assert report.holds
    assert report == cw.check(averages.flow, samples=3, seed=4)


def test_a_large_input_is_cut_to_what_can_be_exhausted():
    readings = [averages.Reading("a", n, 1.0) for n in range(20)]
    resets = [averages.Reset("a", n) for n in range(20)]
    inputs = {"readings": readings, "resets": resets}
    report = cw.check(averages.flow, inputs, epoch_size=5, max_states=5_000, walks=1)
    extent = findings(report)["failure transparency, all runs"].extent
    assert extent.startswith("2 epochs of ")
    assert "explored all" in extent


@pytest.mark.parametrize("task", [tasks.rolls, tasks.tells_time, tasks.counts_calls])
def test_an_impure_task_is_named_and_what_it_does_is_shown(task):
    report = cw.check(applied(task))
    assert not report.holds
    assert f"purity of '{task.name}'" in findings(report)
    itself = findings(report)["failure transparency, the flow itself"]
    assert itself.verdict == "violated"
    assert "already differ" in itself.details[0]
    assert "# or any other value" in "\n".join(itself.inputs_text())
    assert sum(map(len, itself.inputs.values())) == 1
    # the search makes each call once, so it must not claim that all is well
    assert findings(report)["failure transparency, all runs"].verdict == "not refuted"


def test_what_only_the_first_run_shows_is_found_too():
    tasks.seen.clear()
    report = cw.check(applied(tasks.remembers), {"numbers": [1, 2]})
    itself = findings(report)["failure transparency, the flow itself"]
    assert itself.details[1:] == ("one run: {'out': [[1, 2], []]}", "another: {'out': [[], []]}")
    assert itself.inputs == {"numbers": [1, 2]}
    assert "purity of 'remembers'" in findings(report)


hidden = {"count": 0}


@cw.task(initial=0)
def counts_what_was_undone(state: int, event: str) -> tuple[int, list[int]]:
    if event == "start":
        hidden["count"] = 0
    hidden["count"] += 1
    return state + 1, [hidden["count"]]


def test_a_crash_that_can_be_seen_is_shrunk_to_the_least_input_and_can_be_replayed(tmp_path):
    flow = applied(counts_what_was_undone, str)
    inputs = {"numbers": ["start", cw.BARRIER, "a", "b", cw.BARRIER, "c"]}
    report = cw.check(flow, inputs, walks=0)
    itself = findings(report)["failure transparency, the flow itself"]
    assert itself.details == (
        "a sink shows different values after a crash",
        "without failures: {'out': [[1], [2], []]}",
        "with the crash:   {'out': [[1], [3], []]}",
    )
    assert itself.inputs == {"numbers": ["start", cw.BARRIER, "a", cw.CRASH]}
    write_trace(itself.trace, tmp_path / "run.jsonl")
    again = read_trace(tmp_path / "run.jsonl")
    assert again == itself.trace
    assert not cw.explain(again).holds


def test_a_random_run_that_cannot_be_explained_is_shrunk():
    given = Scenario(applied(tasks.counts_calls), {"numbers": [1, 2, cw.BARRIER, 3]}, None, 1)
    found = explained_walks([given], 2, 20, 0, print)
    assert found.verdict == "violated"
    assert sum(map(len, found.inputs.values())) == 1
    assert not cw.explain(found.trace).holds


class KeepsPositions(Barriers):
    """Recovery leaves the stream positions (broken)."""

    def recover(self, c: Configuration) -> Configuration | None:
        after = latest_common_snapshot(c)
        return Configuration(after.graph, after.states, c.positions, after.messages, after.inputs)


class Broken(Scenario):
    """A flow on a protocol that is broken."""

    def model(self, crashes, tasks):
        return BarrierModel(
            super().model(crashes, tasks).initial, crashes=crashes, protocol=KeepsPositions()
        )


def test_a_search_over_a_broken_protocol_shows_the_run():
    given = Broken(averages.flow, averages.inputs, None, 1)
    found = search(given, 1, 20_000, print)
    assert found.verdict == "violated"
    assert [step.rule for step in found.trace.steps].count("recover") == 1


class StarvesAfterACrash(Barriers):
    """A recovery leaves nothing to read (broken)."""

    def recover(self, c: Configuration) -> Configuration | None:
        after = latest_common_snapshot(c)
        kept = Messages(frozenset(m for m in after.messages if m.epoch < 2))
        return Configuration(after.graph, after.states, after.positions, kept, after.inputs)


class Starving(Scenario):
    def model(self, crashes, tasks):
        initial = super().model(crashes, tasks).initial
        return BarrierModel(initial, crashes=crashes, protocol=StarvesAfterACrash())


def test_theorem_6_10_every_fair_run_commits_every_epoch():
    given = Scenario(averages.flow, averages.inputs, None, 1)
    found = liveness(given, 1, 20_000, print)
    assert found.verdict == "holds"
    assert "explored all" in found.extent
    broken = liveness(Starving(averages.flow, averages.inputs, None, 1), 1, 20_000, print)
    assert broken.verdict == "violated"
    assert [step.rule for step in broken.trace.steps].count("recover") == 1
    bounded = liveness(given, 1, 5, print)
    assert bounded.verdict == "not refuted"


def seen_by(observe):
    given = {"numbers": [1, 2, cw.BARRIER, 3]}
    flow = applied(tasks.counts_calls)
    report = findings(cw.check(flow, given, crashes=1, walks=2, observe=observe))
    return report["failure transparency, the flow itself"].verdict


def test_what_is_not_observed_is_no_violation():
    """The number of calls changes with a crash; how many outputs there are does not."""
    assert seen_by(None) == "violated"
    assert seen_by(lambda sinks: {name: len(v) for name, v in sinks.items()}) == "not refuted"
    assert seen_by(lambda sinks: {name: sum(v) for name, v in sinks.items()}) == "violated"


def test_an_observer_that_takes_back_is_reported():
    """Lemma 5.9 composes; Definition 5.10 asks for an observer that is monotone."""
    flow, given = averages.flow, averages.inputs

    def flips(sinks):
        return sum(map(len, sinks.values())) % 2

    found = findings(cw.check(flow, given, crashes=0, walks=0, observe=flips))
    finding = found["failure transparency, all runs"]
    assert finding.verdict == "violated"
    assert finding.details == ("the last step of this run retracts what was observed",)
    grows = findings(cw.check(flow, given, crashes=0, walks=0, observe=lambda sinks: len(sinks)))
    assert grows["failure transparency, all runs"].verdict == "holds"


def test_order_is_reported_with_a_witness_pair():
    report = cw.check(averages.flow, averages.inputs)
    (message,) = findings(report)["outputs that depend on the order of inputs"].details
    assert message.splitlines()[0].startswith(
        "sink 'means' depends on the order of 'readings' and 'resets'"
    )
    assert "Mean(sensor='door', at=4, mean=2.0)" in message.splitlines()[1]
    assert "Mean(sensor='door', at=4, mean=3.0)" in message.splitlines()[2]


@dataclass(frozen=True)
class Sale:
    shop: str
    amount: int


def test_what_only_adds_up_does_not_depend_on_order():
    flow = cw.Flow("sales")
    east, west = flow.source("east", Sale), flow.source("west", Sale)
    totals = east.merge(west).key_by("shop").aggregate(emit="epoch", total=cw.agg.sum("amount"))
    flow.sink("totals", totals)
    report = cw.check(flow, samples=4)
    assert report.holds
    assert "outputs do not depend on the order of inputs" in findings(report)


class Spoilt(Scenario):
    """A flow whose one operator emits data behind its watermarks."""

    def tasks(self, on_call=None, *, fuse=True):
        late = Operator(0, lambda n, e: (n + 1, [Data(e.time - 2 * n, "late")] if n else [e]))
        base = plan(self.flow)
        segments = tuple(
            replace(segment, parts=tuple(part._replace(operator=late) for part in segment.parts))
            for segment in base.segments
        )
        return FlowTasks(replace(base, segments=segments), on_call=on_call)


def test_data_behind_a_watermark_breaks_a_promise():
    flow = cw.Flow("spoilt")
    flow.sink("out", flow.source("numbers", int).map(lambda n: n))
    items = {"numbers": [Data(5, 1), Watermark(5), Data(6, 1), Data(7, 1)]}
    _, broken = broken_watermarks([Spoilt(flow, items, None, 1)], 0)
    assert any("not monotone" in message for message in broken)
    assert broken_watermarks([Scenario(flow, items, None, 1)], 0) == (1, [])


def test_an_output_that_its_inputs_have_completed_and_it_does_not_breaks_a_promise():
    inputs = [[Data(1, "a"), Watermark(2)], [Watermark(1)]]
    owed = "'t' never completes Data(time=1, value='b'), though its inputs do"
    assert unproductive("t", inputs, [Data(1, "b")]) == [owed]
    assert unproductive("t", inputs, [Data(1, "b"), Watermark(1)]) == []
    assert unproductive("t", inputs, [Data(2, "b")]) == []  # the second input has not completed it


def test_interrupting_a_check_keeps_what_was_found():
    count = 0

    def stop(text):
        nonlocal count
        count += 1
        if text == "swapping inputs":
            raise KeyboardInterrupt

    report = cw.check(averages.flow, averages.inputs, progress=stop)
    assert [f.check for f in report.findings] == [
        "failure transparency, all runs",
        "liveness: every epoch is eventually committed",
        "failure transparency, random runs",
        "failure transparency, the flow itself",
        "purity: no impurity found",
        "the rest",
    ]
    assert report.findings[-1].extent == "interrupted"
    assert report.is_interrupted


@pytest.mark.parametrize(
    ("options", "code"),
    [({"crashes": -1}, "too-small"), ({"instances": 0}, "too-small")],
)
def test_a_wrong_number_is_a_sentence(options, code):
    with pytest.raises(cw.InputError) as caught:
        cw.check(averages.flow, averages.inputs, **options)
    assert caught.value.problems[0].code == code


def test_a_crash_among_the_inputs_is_refused():
    with pytest.raises(cw.InputError, match="crash-in-inputs"):
        cw.check(averages.flow, averages.crashing)


def test_the_report_is_data_too():
    data = cw.check(averages.flow, averages.inputs, walks=1).as_data()
    assert (data["flow"], data["holds"]) == ("averages", True)
    assert {"check", "extent", "verdict", "details", "inputs"} == set(data["findings"][0])
