"""A function that never returns, or never ends to emit, ends a simulation and a check."""

import signal
import threading
import time
from itertools import count

import pytest

import cutwater as cw
from cutwater.checking.purity.repeated_calls import Calls, check_purity
from cutwater.errors import StepError
from cutwater.events import Data
from cutwater.operators import Operator, bounded
from cutwater.semantics import hanging


@pytest.fixture
def little_patience(monkeypatch):
    monkeypatch.setattr(hanging, "WATCH_TICK_S", 0.01)
    monkeypatch.setattr(hanging, "PATIENCE", 3)
    monkeypatch.setattr(bounded, "MOST_OUTPUTS", 1_000)


def spin(word):
    while word:
        pass
    return word


def wait(word):
    time.sleep(3_600)
    return word


def swallow(word):
    while True:
        try:
            spin(word)
        except ZeroDivisionError:
            continue


@cw.task(initial=0)
def endless_task(seen: int, word: str) -> tuple[int, list[int]]:
    return seen, count()


def flow_of(step):
    flow = cw.Flow("hangs")
    flow.sink("out", step(flow.source("words", str)))
    return flow


HANGING = {
    "map": lambda words: words.map(spin, name="work"),
    "map that sleeps": lambda words: words.map(wait, name="work"),
    "map that catches": lambda words: words.map(swallow, name="work"),
    "filter": lambda words: words.filter(spin, name="work"),
    "behind a key": lambda words: words.key_by(str).flat_map(spin, name="work"),
}
ENDLESS = {
    "flat_map": lambda words: words.flat_map(lambda word: count(), name="work"),
    "task": lambda words: words.key_by(str).apply(endless_task, name="work"),
}
WAYS = {
    "simulate": lambda flow: cw.simulate(flow, {"words": ["ab"]}),
    "simulate with a crash": lambda flow: cw.simulate(flow, {"words": ["ab", cw.CRASH]}),
    "check": lambda flow: cw.check(flow, {"words": ["ab"]}, walks=1, max_states=100),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", HANGING)
def test_a_function_that_does_not_return_is_named(step, way, little_patience):
    with pytest.raises(StepError) as raised:
        WAYS[way](flow_of(HANGING[step]))
    (problem,) = raised.value.problems
    assert problem.code == "hanging-function"
    assert "'work'" in problem.message
    assert "it was given 'ab'" in problem.message
    assert "test_hanging.py" in problem.message


def hangs_the_second_time():
    seen = set()

    def f(word):
        if word in seen:
            spin(word)
        seen.add(word)
        return word

    return f


def hangs_while_it_is_listed_again():
    f = hangs_the_second_time()
    return lambda word: (f(part) for part in [word])


@pytest.mark.parametrize(
    "step",
    [
        lambda words: words.map(hangs_the_second_time(), name="work"),
        lambda words: words.flat_map(hangs_while_it_is_listed_again(), name="work"),
    ],
)
def test_a_second_call_that_does_not_return_is_an_impurity(step, little_patience):
    calls = Calls()
    watched = calls.watch(flow_of(step).steps[1])
    for word in ("ab", "cd"):
        watched.f(word)
    calls.origins["work", "f"] = None  # not in other processes
    with hanging.patient():
        (found,) = check_purity(calls)
    assert found.impurity.what == "called again with the same arguments it does not return"
    assert found.impurity.arguments == "'ab'"


def fails_the_second_time():
    seen = set()

    def f(word):
        if word in seen:
            raise ValueError(word)
        seen.add(word)
        return word

    return f


def test_what_a_second_call_raises_is_shown_as_it_was_raised():
    calls = Calls()
    step = calls.watch(flow_of(lambda words: words.map(fails_the_second_time())).steps[1])
    step.f("ab")
    calls.origins[step.name, "f"] = None
    (found,) = check_purity(calls)
    assert found.impurity.results == ("'ab'", "'raised ValueError: ab'")


def test_outputs_that_fill_memory_are_named(monkeypatch):
    """Few of them, and each is large."""
    monkeypatch.setattr(bounded, "MOST_BYTES", 1 << 20)
    flow = flow_of(lambda words: words.flat_map(lambda _: ("x" * 10_000 for _ in count())))
    with pytest.raises(StepError, match="emitted more than 1 MiB for one event"):
        cw.simulate(flow, {"words": ["a"]})


def spins_in_a_loop(shown):
    while shown:
        pass


def test_an_observer_that_does_not_return_is_named(little_patience):
    flow = flow_of(lambda words: words.map(str.upper))
    report = cw.check(flow, {"words": ["ab"]}, walks=1, max_states=50, observe=spins_in_a_loop)
    assert [finding.check for finding in report.violations] == ["every call returns"]
    (message,) = report.violations[0].details
    assert "spins_in_a_loop (" in message
    assert "test_hanging.py:" in message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", ENDLESS)
def test_outputs_without_an_end_are_named(step, way, little_patience, monkeypatch):
    monkeypatch.setattr(hanging, "PATIENCE", 3_000)  # it is counted, however long that takes
    with pytest.raises(StepError) as raised:
        WAYS[way](flow_of(ENDLESS[step]))
    (problem,) = raised.value.problems
    assert problem.code == "endless-outputs"
    assert "'work'" in problem.message


def test_as_many_outputs_as_may_be_are_let_through(little_patience):
    flow = flow_of(lambda words: words.flat_map(lambda word: iter(range(1_000))))
    assert len(cw.simulate(flow, {"words": ["a"]})["out"]) == 1_000


def test_the_alarm_is_what_it_was_before():
    def mine(*_):
        raise AssertionError

    before = signal.signal(signal.SIGALRM, mine)
    try:
        cw.simulate(flow_of(lambda words: words.map(str.upper)), {"words": ["a"]})
        assert signal.getsignal(signal.SIGALRM) is mine
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_timer_that_somebody_else_has_set_is_left_alone():
    signal.setitimer(signal.ITIMER_REAL, 1_000)
    try:
        cw.simulate(flow_of(lambda words: words.map(str.upper)), {"words": ["a"]})
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_a_thread_that_gets_no_signals_simulates_all_the_same():
    found = []
    flow = flow_of(lambda words: words.map(str.upper))
    thread = threading.Thread(target=lambda: found.append(cw.simulate(flow, {"words": ["a"]})))
    thread.start()
    thread.join()
    assert found[0]["out"] == ["A"]


HANGING_LATER = {"its second": 2, "its fourth": 4}


@pytest.mark.parametrize("which", HANGING_LATER)
def test_a_call_that_hangs_only_later_ends_a_check_with_what_it_found(which, little_patience):
    """Every further run would wait as long again."""
    calls = []

    def f(word):
        calls.append(word)
        while len(calls) >= HANGING_LATER[which]:
            pass
        return word

    report = cw.check(flow_of(lambda words: words.map(f, name="work")), {"words": ["ab"]})
    assert [finding.check for finding in report.violations] == ["every call returns"]
    assert "map 'work'" in report.violations[0].details[0]
    assert "it was given 'ab'" in report.violations[0].details[0]


def swallow_everything_usual(word):
    while True:
        try:
            spin(word)
        except Exception:
            continue


def test_a_function_that_catches_every_exception_is_named_too(little_patience):
    flow = flow_of(lambda words: words.map(swallow_everything_usual, name="work"))
    with pytest.raises(StepError, match="has not returned"):
        cw.simulate(flow, {"words": ["ab"]})


def endlessly(*_):
    return (Data(n, n) for n in count())


@pytest.mark.parametrize(
    "own",
    [
        Operator(0, lambda state, event: (state, endlessly())),
        Operator(0, lambda state, event: (state, []), endlessly),
    ],
    ids=["in a step", "at the end"],
)
def test_an_operator_whose_outputs_do_not_end_is_named(own, little_patience):
    flow = flow_of(lambda words: words.operator(own, name="work"))
    with pytest.raises(StepError, match=r"'work'.* emitted more"):
        cw.simulate(flow, {"words": ["a"]})
