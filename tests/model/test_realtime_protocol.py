"""The real-time protocol holds, and each of its eleven rules left out is rejected with a run."""

import pytest
from msgspec.structs import replace
from support.models.broken_realtime import BROKEN, REDUNDANT
from support.models.protocols import (
    CONSISTENT,
    assert_on_page,
    explored,
    finding,
    model_of,
    rules_overridden,
    section,
    told,
)

from cutwater.checking import always, check_model, replay, sometimes
from cutwater.checking.explorer.paths import shrink
from cutwater.semantics.protocols.realtime import RealTime
from cutwater.semantics.protocols.realtime_world import RealTimeCase as Case

LONG = ("a zombie bucket stores",)
CUT_OFF = BROKEN[7, "a replay that was cut off promises all of it"]
CASES = {b.case for b in BROKEN.values() if b.case.crashes < 2 and not b.case.zombies}
MUTANTS = [
    pytest.param(
        broken,
        id=f"rule {rule}, {title}",
        marks=pytest.mark.slow if title in LONG else (),
    )
    for (rule, title), broken in BROKEN.items()
]

# what is explored, and how many states there are
HOLDS = {
    "one partition, a crash": (Case(records=(1,)), 191),
    "two partitions, one may be idle at the crash": (Case(records=(1, 1)), 9_170),
    "two buckets, a crash": (Case(records=(2,), buckets=2), 12_929),
    "a crash during the recovery": (Case(records=(2,), crashes=2), 9_425),
    "two buckets, a crash during the recovery": (Case(records=(1,), buckets=2, crashes=2), 5_272),
    "a zombie": (Case(records=(1,), zombies=1), 6_853),
    "a zombie, empty ticks": (Case(records=(1,), crashes=0, zombies=1, idles=1), 4_903),
    "the end of a batch": (Case(records=(1, 1), crashes=0, batches=1), 11_890),
    "two crashes, and the end of a batch": (Case(records=(1,), crashes=2, batches=1), 5_896),
    "other code": (Case(records=(1,), buckets=2, changes=1), 1_716),
    "code that is not deterministic": (Case(records=(2,), is_pure=False), 1_229),
    "the end of a batch cuts off a replay": (CUT_OFF.case, 110_010),
}
COUNTED = [
    pytest.param(case, states, id=title, marks=pytest.mark.slow if case == CUT_OFF.case else ())
    for title, (case, states) in HOLDS.items()
]


@pytest.mark.parametrize(("case", "states"), COUNTED)
def test_it_is_exactly_once(case, states):
    found = explored(RealTime, case)
    assert found.holds
    assert found.is_exhaustive
    assert found.unique_states == states


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "states"),
    [
        (Case(records=(1,), buckets=2, zombies=1), 95_966),
        (Case(records=(1,), zombies=1, idles=1), 81_137),
        (Case(records=(2,), crashes=2, idles=1), 91_889),
        (Case(records=(1, 1), crashes=2), 61_665),
        (Case(records=(1, 1), batches=1), 130_910),
        (Case(records=(1,), zombies=1, batches=1), 84_069),
    ],
)
def test_it_is_exactly_once_in_larger_cases(case, states):
    found = explored(RealTime, case)
    assert found.holds
    assert found.is_exhaustive
    assert found.unique_states == states


def test_every_rule_has_a_mutant():
    assert {rule for rule, _ in BROKEN} == set(range(1, 12))


@pytest.mark.parametrize("broken", MUTANTS)
def test_a_rule_left_out_is_rejected_with_a_run_of_which_nothing_can_be_left_out(broken):
    found = finding(broken)
    again = replay(found.model, found.path.initial, found.path.actions)
    assert found.is_refuting(again)
    assert shrink(found.model, again, found.is_refuting) == again


@pytest.mark.parametrize("broken", MUTANTS)
def test_one_rule_is_left_out_at_a_time(broken):
    is_about_the_observer = broken.case.observer == "equal prefixes"
    assert len(rules_overridden(broken)) == 1 - is_about_the_observer


@pytest.mark.parametrize(
    "case",
    sorted(CASES - {CUT_OFF.case}, key=str),
    ids=str,
)
def test_the_protocol_itself_holds_where_a_mutant_does_not(case):
    found = explored(RealTime, replace(case, observer="product of prefixes"))
    assert found.holds
    assert found.is_exhaustive


@pytest.mark.parametrize("left_out", REDUNDANT.values(), ids=REDUNDANT)
@pytest.mark.parametrize(
    "case",
    [
        Case(records=(1, 1), crashes=1),
        Case(records=(1,), buckets=2, crashes=2),
        Case(records=(1,), crashes=2, idles=1),
        Case(records=(1,), crashes=0, zombies=1, idles=1),
    ],
    ids=str,
)
def test_what_the_other_rules_make_redundant(left_out, case):
    """Parts of rules 1, 6 and 11: no run of these cases needs them."""
    found = explored(left_out, case)
    assert found.holds
    assert found.is_exhaustive
    assert len(rules_overridden(left_out)) == 1


def test_a_partition_that_was_idle_at_the_crash():
    found = finding(BROKEN[1, "an idle partition reuses tick numbers"])
    lines = told(found.path)
    assert "is killed" in " ".join(lines)
    assert lines[-1].endswith(
        "reads K = 1 and R = 1, restores tick 1, opens after K, "
        "reader 1 cuts tick 1 with record 0, reader 1 writes entry 1, "
        "reader 0 sends barrier 1, reader 1 sends barrier 1, "
        "records that snapshot 1 counts, and truncates the plan"
    )


@pytest.mark.parametrize(
    ("protocol", "is_lost"),
    [pytest.param(RealTime, False, marks=pytest.mark.slow), (CUT_OFF, True)],
)
def test_records_of_a_replay_that_was_cut_off_are_not_lost(protocol, is_lost):
    """If they were promised, a snapshot without them would count, and the plan would be deleted."""
    model, _ = model_of(protocol, CUT_OFF.case)
    found = check_model(model, [always("a snapshot that counts has all records", is_whole)])
    assert found.holds is not is_lost


def is_whole(world):
    """Has the state of each bucket all records that no later run reads again?"""
    gone = {(number, at) for number, end in enumerate(world.positions) for at in range(end)}
    return all(gone <= set(stored_through(world.base, known)) for known in world.snapshots)


def stored_through(tick, known):
    return (record for at, delta in known.deltas if at <= tick for record, _ in delta)


def test_a_tick_of_which_nothing_was_released_is_planned_anew():
    """Its records come in another tick, behind K; a released one is shown as it was planned."""
    model, _ = model_of(RealTime, Case(records=(1,)))
    claims = [
        sometimes(
            "a tick is forgotten", lambda w: any(run.newest > run.released for run in w.runs)
        ),
        sometimes("and shown with a new number", is_shown_with(2)),
        sometimes("a released one is replayed", is_replaying),
    ]
    assert set(check_model(model, claims).discoveries) == {claim.name for claim in claims}


def is_shown_with(tick):
    return lambda w: any(sink.digest is not None and sink.t_last == tick for sink in w.sinks)


def is_replaying(world):
    return any(reader.unsent for run in world.runs for reader in run.readers)


def test_other_code_goes_on_where_nothing_behind_the_snapshot_was_released():
    model, _ = model_of(RealTime, Case(records=(1,), buckets=2, changes=1))
    claims = [
        always("no tick of two flows", lambda w: len({row.code for row in first_rows(w)}) < 2),
        sometimes("the other flow shows a planned tick", is_taken_over),
    ]
    found = check_model(model, claims)
    assert found.holds
    assert "the other flow shows a planned tick" in found.discoveries


def first_rows(world):
    return [sink.shown[0] for sink in world.sinks if sink.shown]


def is_taken_over(world):
    """Is all from the other flow, which opened behind the tick that the first one had planned?"""
    return world.opened == 1 and {row.code for row in first_rows(world)} == {"b"}


def test_a_digest_stops_code_that_is_not_deterministic_before_it_shows_more():
    case = Case(records=(2,), is_pure=False)
    assert explored(RealTime, case).holds
    assert finding(BROKEN[10, "the digest is not compared"]).claim == CONSISTENT


@pytest.mark.slow
def test_the_page_shows_what_the_checker_finds():
    titled = {f"{rule}. {title}": broken for (rule, title), broken in BROKEN.items()}
    assert_on_page("real-time", section(titled))
