"""`check_operator` finds nothing in the library's operators, and what is wrong with broken ones."""

import sys

import pytest
from support.checking import broken_operators as broken
from support.checking.specifications import (
    ACCUMULATED,
    BATCHES,
    COUNTS,
    EVERYTHING,
    JOINED,
    SHOUTED,
    SIDES,
    SPREAD,
    UNCHANGED,
    WITHOUT_SIDES,
    both_sides_settled,
)

from cutwater.checking import check_operator
from cutwater.errors import CutwaterError, InputError
from cutwater.events import Data, Watermark
from cutwater.operators import (
    Operator,
    accumulate,
    batch,
    bulk,
    compose,
    flatten,
    histogram,
    histogram_paths,
    histogram_total,
    identity,
    incr_batch,
    join,
    map_values,
    skip,
    union,
)
from cutwater.times import Left, Product, Right


def in_order(run):
    return list(reversed(run))


def own_batches(time):
    return [((time, "a"),), ((time, "a"), (time, "b"))]


def shout(_time, value):
    return value.upper()


TWO_SIDED = {"times": SIDES, "settled": both_sides_settled}
TOTAL = {"times": range(4)}

CORRECT = {
    "batch": (batch(), BATCHES, {}),
    "accumulate": (accumulate(), ACCUMULATED, {"values": own_batches}),
    "incr_batch": (incr_batch(), EVERYTHING, {}),
    "map_values": (map_values(shout), SHOUTED, {}),
    "flatten": (flatten(), SPREAD, {"values": ["", "a", "ab"]}),
    "union": (union(), WITHOUT_SIDES, TWO_SIDED),
    "join": (join(str.__add__), JOINED, TWO_SIDED),
    "histogram": (histogram(), COUNTS, {}),
    "histogram_total": (histogram_total(), COUNTS, TOTAL),
    "histogram_paths": (histogram_paths(), COUNTS, TOTAL),
    "identity": (identity(), UNCHANGED, {}),
    "skip": (skip(identity(), 0), UNCHANGED, {}),
    "bulk": (bulk(in_order, 3), UNCHANGED, {"lag": 3}),
    "compose": (compose(map_values(shout), batch(), flatten(), identity()), None, {}),
}


def check(op, specification, options):
    predicates = vars(specification) if specification else {}
    return check_operator(op, **predicates, **options)


@pytest.mark.parametrize("name", CORRECT)
def test_the_operators_of_the_library_are_correct(name):
    op, specification, options = CORRECT[name]
    report = check(op, specification, options)
    assert report, str(report)
    given = specification is not None
    assert [(result.name, result.holds) for result in report] == [
        ("soundness", given),
        ("completeness", given),
        ("monotonicity", True),
        ("productivity", True),
    ]


a0, a1, w0, w3 = Data(0, "a"), Data(1, "a"), Watermark(0), Watermark(3)
DIAMOND = tuple(Data(Product(*corner), "a") for corner in [(0, 0), (0, 1), (1, 0), (1, 1)])

# What is wrong, and the stream that shows it: as short as it can be.
BROKEN = {
    "forgets at the end": (
        broken.forgets_at_the_end(), BATCHES, {},
        {"completeness": (a0,)},
    ),
    "waits for the end": (
        broken.waits_for_the_end(), BATCHES, TOTAL,
        {"completeness": (a0, w3), "monotonicity": (a0, w0)},
    ),
    "marks too early": (
        broken.marks_too_early(), BATCHES, {},
        {"monotonicity": (a0, w0), "productivity": (a0, w3)},
    ),
    "drops duplicates": (
        broken.drops_duplicates(), BATCHES, {},
        {"soundness": (a0, a0), "completeness": (a0, a0)},
    ),
    "counts twice": (broken.counts_twice(), COUNTS, {}, {"soundness": (a0, a1)}),
    "counts paths": (histogram_paths(), COUNTS, {}, {"soundness": DIAMOND}),
    "forwards at once": (
        broken.forwards_at_once(), WITHOUT_SIDES, TWO_SIDED,
        {"monotonicity": (Watermark(Right(0)), Data(Left(0), "a"))},
    ),
    "swallows watermarks": (
        broken.swallows_watermarks(), UNCHANGED, {},
        {"productivity": (a0, w3)},
    ),
    "swallows every second watermark": (
        broken.swallows_every_second_watermark(), UNCHANGED, {},
        {"productivity": (a0, w3)},
    ),
    "shifts back": (
        broken.shifts_back(), UNCHANGED, TOTAL,
        {"soundness": (a0,), "completeness": (a0,), "monotonicity": (w0, a1)},
    ),
    "forgets incomparable times": (
        broken.forgets_incomparable(), UNCHANGED, {},
        {"completeness": (Watermark(Product(0, 1)), Data(Product(1, 0), "a"))},
    ),
    "mutates": (broken.mutates(), UNCHANGED, {}, {"purity": (w3,)}),
    "counts calls": (broken.counts_calls(), UNCHANGED, {}, {"purity": (w3,)}),
    "raises": (broken.raises(), UNCHANGED, {}, {"purity": (Data(0, "c"),)}),
    "emits no event": (broken.emits_no_event(), UNCHANGED, {}, {"purity": (w3,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_operator_is_caught_with_a_shrunk_stream(name):
    op, specification, options, expected = BROKEN[name]
    report = check(op, specification, options)
    assert not report
    assert {name: found.inputs for name, found in report.failures.items()} == expected


def test_where_an_operator_is_not_pure_nothing_else_is_reported():
    report = check(broken.mutates(), UNCHANGED, {})
    assert [result.name for result in report if result.fails] == ["purity"]
    assert {result.not_checked for result in report} == {"", "the operator is not pure"}
    assert report["purity"].inputs_tried == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mutates", "step changed the state that it was given"),
        ("counts calls", "step returned something else when it was called again"),
        ("raises", "step raised ValueError('substring not found')"),
        ("emits no event", "step emitted 3, which is not an event"),
    ],
)
def test_why_an_operator_is_not_pure(name, reason):
    op, specification, options, _ = BROKEN[name]
    assert check(op, specification, options)["purity"].counterexample.reason == reason


def test_the_end_of_an_operator_must_be_pure_too():
    op = Operator([], lambda held, event: (held, [event]), lambda held: held.append(1) or held)
    found = check_operator(op).failures
    assert found["purity"].reason == "finish changed the state that it was given"


def test_an_operator_that_cannot_take_the_last_watermark_is_reported_too():
    def step(state, event):
        return state, [event] if event.time < 3 else 1 / 0

    found = check_operator(Operator(None, step), times=range(4)).failures
    assert found["purity"].inputs == (w3,)
    assert found["purity"].reason == "step raised ZeroDivisionError('division by zero')"


def test_what_differs_for_a_while_only_is_a_counterexample_too():
    """It cannot be shrunk, since it does not happen again."""
    calls = []

    def step(state, event):
        calls.append(event)
        is_fickle = 20 <= len(calls) < 40
        return state, [event, Data(event.time, len(calls))] if is_fickle else [event]

    found = check_operator(Operator(None, step)).failures
    assert found["purity"].reason == "step returned something else when it was called again"


def test_a_state_without_equality_is_no_reason_to_call_an_operator_impure():
    class Opaque:
        pass

    assert check_operator(Operator(Opaque(), lambda _, event: (Opaque(), [event])))


def test_a_state_that_cannot_be_copied_is_no_reason_either():
    assert check_operator(Operator((n for n in ""), lambda state, event: (state, [event])))


def test_a_specification_that_raises_is_a_counterexample():
    def soundness(inputs, output):
        return output.value > 1

    report = check_operator(identity(), soundness=soundness, completeness=lambda *_: 1 / 0)
    assert report["soundness"].counterexample.reason == (
        "Data(time=0, value='a') is not sound: soundness raised "
        "TypeError(\"'>' not supported between instances of 'str' and 'int'\")"
    )
    assert report["completeness"].counterexample.reason == (
        "the outputs are not complete: completeness raised ZeroDivisionError('division by zero')"
    )


def test_the_same_seed_finds_the_same():
    op, specification, _, _ = BROKEN["counts paths"]
    first, second = (check_operator(op, **vars(specification), seed=7) for _ in range(2))
    assert first == second
    assert first.seed == 7


def test_a_value_that_did_not_matter_is_marked():
    report = check_operator(broken.swallows_watermarks())
    assert report["productivity"].counterexample.any_value == {0}
    report = check_operator(broken.raises())
    assert report["purity"].counterexample.any_value == frozenset()


def test_the_lag_of_an_operator_is_how_long_it_may_owe():
    late = bulk(in_order, 3)
    assert check_operator(late, lag=2)
    report = check_operator(late, lag=1)
    assert report["productivity"].fails
    assert "within 1 inputs" in report["productivity"].counterexample.reason


def test_an_input_that_never_settles_checks_nothing():
    report = check_operator(broken.swallows_watermarks(), settled=lambda _: False)
    assert report["productivity"].not_checked == "the input was never settled"
    assert report


def test_an_end_without_end_is_cut():
    op = Operator(None, lambda state, event: (state, [event]), lambda _: iter(lambda: a0, None))
    assert "monotonicity" in check_operator(op).failures


def test_a_result_is_found_by_its_name():
    report = check_operator(identity())
    assert report["monotonicity"].holds
    with pytest.raises(KeyError, match="speed"):
        report["speed"]


def test_all_bad_arguments_are_reported_at_once():
    with pytest.raises(InputError) as told:
        check_operator(identity(), times=[], lag=-1, examples=0)
    assert [problem.message for problem in told.value.problems] == [
        "lag is -1; an operator cannot be early",
        "examples is 0; it takes one to check",
        "times is empty; a stream needs times",
    ]


def test_a_time_without_values_is_reported():
    with pytest.raises(InputError, match="there are no values for the time 1"):
        check_operator(identity(), times=[0, 1], values=lambda time: "ab" if time == 0 else "")


def test_times_that_are_no_order_are_reported():
    with pytest.raises(InputError, match="an order is reflexive"):
        check_operator(identity(), times=[0.0, float("nan")])


def test_without_hypothesis_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(
        CutwaterError, match=r"hypothesis, which is not installed[^$]*cutwater\[dev\]"
    ):
        check_operator(identity())
