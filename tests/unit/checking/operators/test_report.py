"""How a report reads."""

from support.checking import broken_operators as broken

from cutwater.checking import Counterexample, OperatorReport, PropertyResult, check_operator
from cutwater.events import Data, Watermark

FOUND = Counterexample(
    inputs=(Data(0, "a"), Watermark(0)),
    outputs=(Watermark(0), Data(0, "a")),
    reason="time 0 was completed by the watermark 0",
    position=1,
    any_value=frozenset({0}),
)
REPORT = OperatorReport(
    (
        PropertyResult("soundness", 0, not_checked="no predicate was given"),
        PropertyResult("monotonicity", 3, FOUND),
        PropertyResult("productivity", 200),
    ),
    seed=0,
)


def test_the_text_of_a_report():
    assert str(REPORT) == (
        "soundness was not checked: no predicate was given\n"
        "monotonicity does not hold: time 0 was completed by the watermark 0\n"
        "  in   Data(time=0, value='a')  # or any other value\n"
        "  in   Watermark(time=0)\n"
        "  out  Watermark(time=0)\n"
        "  out  Data(time=0, value='a')  # here\n"
        "productivity holds on 200 streams"
    )


def test_a_report_is_false_if_something_fails():
    assert not REPORT
    assert OperatorReport(REPORT.results[2:], seed=0)


def test_what_was_not_checked_does_not_make_a_report_false():
    assert OperatorReport(REPORT.results[:1], seed=0)
    assert not REPORT["soundness"].holds
    assert not REPORT["soundness"].fails


def test_failures_are_by_name():
    assert REPORT.failures == {"monotonicity": FOUND}


def test_the_text_of_a_real_report():
    assert str(check_operator(broken.marks_too_early())) == (
        "soundness was not checked: no predicate was given\n"
        "completeness was not checked: no predicate was given\n"
        "monotonicity does not hold: time 0 was completed by the watermark 0\n"
        "  in   Data(time=0, value='a')  # or any other value\n"
        "  in   Watermark(time=0)\n"
        "  out  Watermark(time=0)\n"
        "  out  Data(time=0, value=((0, 'a'),))  # here\n"
        "productivity does not hold: time 3 was not completed, although the input owes nothing\n"
        "  in   Data(time=0, value='a')  # or any other value\n"
        "  in   Watermark(time=3)\n"
        "  out  Watermark(time=3)\n"
        "  out  Data(time=3, value=((0, 'a'),))  # here"
    )
