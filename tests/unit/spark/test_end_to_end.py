"""The guarantee from end to end: derived from sources, steps and sink, in words."""

from dataclasses import dataclass

import pytest

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import RunError
from cutwater.flow.checked import CheckRecord
from cutwater.flow.guarantees import settings
from cutwater.spark import end_to_end
from cutwater.spark.connectors.base.sink import Guarantee
from cutwater.spark.connectors.base.source import Replay
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.sink import Folder


@dataclass(frozen=True)
class Item:
    name: str
    size: int


class Passing(JsonLines):
    """A source that cannot be read again."""

    def replay(self):
        return Replay(False, "what it sends is gone")


class Reordered(JsonLines):
    """A source that comes in another order when it is read again."""

    def replay(self):
        return Replay(False, "it has no order", is_reordered=True, remedy="with order=[…]")


class Ledgered(Folder):
    """A sink that can be set to release rows early."""

    @property
    def releases(self):
        return "commit", "early"


class Hasty(Folder):
    """A sink that shows rows again."""

    def guarantee(self):
        return Guarantee("at-least-once", "calls a function", "it may be called again")


def same(item: Item) -> Item:
    return item


@pytest.fixture
def flow():
    made = cw.Flow("two")
    left = made.source("left", Item).map(same)
    right = made.source("right", Item).filter(lambda item: item.size > 0, name="some")
    made.sink("lefts", left)
    made.sink("both", left.merge(right).key_by("name").aggregate(n=cw.agg.count()))
    made.sink("rights", right)
    return made


@pytest.fixture
def say(flow, tmp_path):
    def say(left=JsonLines, sink=Folder):
        return cutwater_spark.guarantees(
            flow,
            {"left": left(str(tmp_path)), "right": str(tmp_path)},
            {name: sink(str(tmp_path / name)) for name in ("lefts", "both", "rights")},
        )

    return say


def test_the_weakest_on_the_way_decides(say):
    assert {p.kind for p in say().values()} == {"exactly-once"}
    weak = say(left=Passing)
    assert [weak[name].kind for name in ("lefts", "both", "rights")] == [
        "at-least-once",
        "at-least-once",
        "exactly-once",
    ]
    assert {p.kind for p in say(sink=Hasty).values()} == {"at-least-once"}


def test_it_is_a_sentence(say, monkeypatch):
    assert str(say()["both"]) == (
        "both: exactly-once: `left` and `right` are replayable, `same` and `some` are taken to be "
        "deterministic (not checked: cutwater check TARGET), `both` publishes an epoch by renaming "
        "a directory (provided files stay where they are, unchanged, until they are read; a "
        "file that changed is refused)"
    )
    monkeypatch.setattr(settings, "noted_check", lambda _flow: CheckRecord("", 1, 400, ""))
    assert str(say(left=Passing, sink=Hasty)["lefts"]) == (
        "lefts: at-least-once: `left` is not replayable, because what it sends is gone, `same` is "
        "declared deterministic and `check` found no counterexample on 1 input with 400 events, "
        "`lefts` calls a function (provided it may be called again)"
    )


def test_a_flow_without_functions_says_nothing_of_them(tmp_path):
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("items", Item).key_by("name").aggregate(n=cw.agg.count()))
    (guarantee,) = cutwater_spark.guarantees(
        flow, {"items": tmp_path}, {"out": tmp_path / "out"}
    ).values()
    assert len(guarantee.because) == 2


def test_a_run_that_requires_more_is_refused_and_writes_nothing(flow, tmp_path):
    def run(left, require):
        cutwater_spark.run(
            flow,
            sources={"left": left, "right": str(tmp_path)},
            sinks={name: tmp_path / name for name in ("lefts", "both", "rights")},
            checkpoint=tmp_path / "state",
            require=require,
        )

    with pytest.raises(RunError) as refused:
        run(Passing(str(tmp_path)), "exactly-once")
    assert [p.code for p in refused.value.problems] == ["guarantee-too-low"] * 2
    assert "sink 'lefts' has at-least-once: `left` is not replayable" in str(refused.value)
    with pytest.raises(
        RunError, match="require is 'twice'; it must be 'exactly-once' or 'at-least-on"
    ):
        run(JsonLines(str(tmp_path)), "twice")
    assert list(tmp_path.iterdir()) == []


@cw.task(initial=0, commutative=True)
def weighed(total: int, item: Item) -> tuple[int, list[Item]]:
    return total + item.size, []


@cw.task(initial=0)
def replaced(_: int, item: Item) -> tuple[int, list[Item]]:
    return item.size, []


def one_task(task, source, tmp_path, sink=Ledgered):
    flow = cw.Flow("one")
    flow.sink("out", flow.source("orders", Item).key_by("name").apply(task))
    bound = {"orders": source(str(tmp_path))}, {"out": sink(str(tmp_path / "out"))}
    return {p.release: p for p in end_to_end.bound_setting(flow, *bound, "").sink_guarantees}


def test_another_order_does_no_harm_where_nothing_shows_it(tmp_path):
    found = one_task(weighed, Reordered, tmp_path)
    assert (found["commit"].kind, found["commit"].relies_on) == ("exactly-once", ("weighed",))
    assert str(found["commit"]) == (
        "out: exactly-once: `orders` may be replayed in another order, because it has "
        "no order, which nothing on the way to `out` shows, `weighed` claims to be commutative, "
        "which it relies on (not tested: cutwater check TARGET), `weighed` is taken to be "
        "deterministic (not checked: cutwater check TARGET), `out` publishes an epoch by renaming "
        "a directory"
    )
    assert found["commit"].weaknesses == ()


def test_a_tested_claim_is_reported_as_tested(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "noted_check", lambda _flow: CheckRecord("", 1, 400, ""))
    found = one_task(weighed, Reordered, tmp_path)["commit"]
    assert "which it relies on (`check` tested it)" in str(found)


def test_it_relies_on_no_claim_where_the_order_stays(tmp_path):
    found = one_task(weighed, JsonLines, tmp_path)
    assert {p.kind for p in found.values()} == {"exactly-once"}
    assert {p.relies_on for p in found.values()} == {()}


def test_early_rows_need_the_order_even_so(tmp_path):
    early = one_task(weighed, Reordered, tmp_path)["early"]
    assert (early.kind, early.relies_on) == ("at-least-once", ())
    (weak,) = early.weaknesses
    assert str(weak) == (
        "`orders` may be replayed in another order, because it has no order, so that "
        "replayed rows cannot be told from new ones; `orders` with order=[…]: "
        "exactly-once"
    )


def test_the_weakest_part_says_what_would_be_with_another_in_its_place(tmp_path):
    found = one_task(replaced, Reordered, tmp_path)["commit"]
    (weak,) = found.weaknesses
    assert (found.kind, weak.kind) == ("at-least-once", "exactly-once")
    assert "and `replaced` does not claim to be commutative" in weak.why
    source, sink = one_task(replaced, Passing, tmp_path, Hasty)["commit"].weaknesses
    assert source.instead == "`orders` as a source that can be replayed: still at-least-once"
    assert sink.instead == "`out` as a sink that keeps a ledger with its rows: still at-least-once"


def test_a_refuted_claim_and_an_impure_function_lower_it(tmp_path):
    flow = cw.Flow("one")
    flow.sink("out", flow.source("orders", Item).key_by("name").apply(weighed))
    bound = {"orders": Reordered(str(tmp_path))}, {"out": Folder(str(tmp_path / "out"))}
    (refuted,) = end_to_end.bound_setting(flow, *bound, "", refuted=["weighed"]).sink_guarantees
    assert refuted.kind == "at-least-once"
    (impure,) = end_to_end.bound_setting(flow, *bound, "", impure=["weighed"]).sink_guarantees
    assert (impure.kind, impure.weaknesses[0].instead) == (
        "none",
        "`weighed` made pure: exactly-once",
    )


def test_a_dataframe_says_what_an_order_would_make_of_it(tmp_path):
    flow = cw.Flow("one")
    flow.sink("out", flow.source("orders", Item).key_by("name").apply(replaced))

    def found(order):
        sinks = {"out": Folder(str(tmp_path / "out"))}
        return end_to_end.sink_guarantees(flow, {"orders": Frame(None, order)}, sinks)["out"]

    assert (found([]).kind, found(["at"]).kind) == ("at-least-once", "exactly-once")
    assert found([]).replaced == "`orders` with order=[…]: exactly-once"
    assert "Spark reads the same rows when it reads them again" in found([]).provided
