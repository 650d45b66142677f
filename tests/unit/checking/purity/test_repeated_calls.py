"""Functions that depend on, or change, more than their arguments are found; pure ones are not."""

import importlib
import locale
import os
import platform
import random
import threading
import time
from functools import partialmethod
from time import time as now

import pytest
from support.flows import impure_tasks as tasks

import cutwater as cw
from cutwater.checking.purity.other_process import HASH_SEEDS, call_elsewhere
from cutwater.checking.purity.repeated_calls import Calls, check_purity
from cutwater.checking.purity.static_hints import hints_of
from cutwater.flow import steps as s
from cutwater.flow.fusing import plan
from cutwater.semantics.crashing import run_with_crashes


def applied(task):
    flow = cw.Flow("applied")
    flow.sink("out", flow.source("numbers", int).apply(task))
    return flow


def mapped(f, kind=int):
    flow = cw.Flow("mapped")
    flow.sink("out", flow.source("numbers", kind).map(f))
    return flow


def result_of(flow, items=(1, 2, 3)):
    calls = Calls()
    run_with_crashes(plan(flow, watch=calls.watch), {"numbers": list(items)})
    (result,) = check_purity(calls)
    return result


AGAIN = "called again with the same arguments it gives another result"


@pytest.mark.parametrize(
    ("task", "what"),
    [
        (tasks.rolls, AGAIN),
        (tasks.tells_time, AGAIN),
        (tasks.counts_calls, AGAIN),
        (tasks.appends, "it changes its state in place"),
    ],
)
def test_an_impure_task_is_found_with_its_name_and_line(task, what):
    found = result_of(applied(task)).impurity
    assert found.step == f"apply '{task.name}'"
    assert found.where.file.endswith("impure_tasks.py")
    assert found.where.line == task.f.__code__.co_firstlineno
    assert found.what.startswith(what)


def test_a_task_that_remembers_outside_of_its_state_is_found():
    # only its first call shows it: from then on it gives the same again and again
    tasks.seen.clear()
    found = result_of(applied(tasks.remembers)).impurity
    assert found.what == AGAIN
    assert found.results == ("(1, [1])", "(1, [])")


def test_differing_results_are_shown():
    found = result_of(applied(tasks.counts_calls)).impurity
    assert len(set(found.results)) == 2
    assert str(found).count("gave") == 2


def test_a_function_that_reads_the_date_is_found():
    assert result_of(mapped(tasks.dated)).impurity.what.startswith(AGAIN)


def test_a_function_that_changes_its_event_is_found():
    found = result_of(mapped(tasks.spills, tasks.Kept), [tasks.Kept([0])]).impurity
    assert found.what == "it changes its event in place"


def test_what_holds_of_one_object_and_not_of_its_copy_is_found():
    """After a restart a state, or an event, is another object than before."""
    assert result_of(applied(tasks.by_identity)).impurity.what.startswith(AGAIN)
    events = [tasks.Tagged(1), tasks.Tagged(2)]
    assert result_of(mapped(tasks.tag_of, tasks.Tagged), events).impurity is not None


@pytest.mark.parametrize(
    "flow", [mapped(tasks.reuses), applied(tasks.one_for_all_keys)], ids=["output", "state"]
)
def test_a_result_that_a_later_call_changes_is_found(flow):
    """An engine encodes it after that call; the simulator would show the last value as well."""
    found = result_of(flow).impurity
    assert found.what.startswith("it changes what it has returned in a later call")
    assert found.results[0] != found.results[1]


def test_an_event_that_a_later_call_changes_is_found():
    flow = mapped(tasks.changes_an_earlier, tasks.Kept)
    found = result_of(flow, [tasks.Kept([1]), tasks.Kept([2])]).impurity
    assert found.what == "it keeps its event, and changes it in a later call"


def test_a_dict_in_the_order_of_hashes_is_a_note():
    """It is equal to the same dict in another order, so this is no violation by itself."""
    assert result_of(mapped(tasks.dict_in_hash_order)).impurity is None
    report = cw.check(mapped(tasks.dict_in_hash_order), {"numbers": [1, 2]}, walks=1, max_states=50)
    (note,) = [f for f in report.findings if f.check == "purity: dicts in the order of hashes"]
    assert report.holds
    assert "'dict_in_hash_order' returns a dict" in note.details[0]
    assert not result_of(mapped(tasks.dict_in_its_own_order)).is_reordered


def test_outputs_in_the_order_of_hashes_are_found():
    found = result_of(applied(tasks.emits_a_set)).impurity
    assert "hash seed" in found.what


def test_a_result_in_the_order_of_hashes_is_found_in_another_process():
    flow = cw.Flow("hashed")
    flow.sink("out", flow.source("numbers", int).flat_map(tasks.in_hash_order))
    found = result_of(flow)
    assert found.elsewhere
    assert found.impurity.what.startswith("in another process, with another hash seed")


def test_a_pure_task_passes_and_was_called_elsewhere_too():
    result = result_of(applied(tasks.pure))
    assert (result.impurity, result.warnings, result.elsewhere) == (None, (), True)
    assert result.calls == 3


def test_a_lambda_was_called_elsewhere_too():
    result = result_of(mapped(lambda n: n + 1))
    assert (result.impurity, result.elsewhere) == (None, True)


def test_what_holds_a_lock_is_repeated_here_alone():
    lock = threading.Lock()
    result = result_of(mapped(lambda n: n + lock.locked()))
    assert (result.impurity, result.elsewhere) == (None, False)


def test_the_same_call_is_repeated_once():
    assert result_of(mapped(lambda n: n + 1), [1, 1, 1]).calls == 1


def test_calls_beyond_the_limit_are_counted():
    calls = Calls(limit=3)
    flow = cw.Flow("many")
    flow.sink("out", flow.source("words", str).map(str.upper))
    step = calls.watch(flow.steps[1])
    for word in ("a", "b", "a", "c", "d", "e", "d"):
        step.f(word)
    step.f("a")
    (result,) = check_purity(calls)
    assert (result.calls, result.distinct) == (3, 5)


def test_arguments_with_equal_hashes_are_different_calls():
    calls = Calls()
    flow = cw.Flow("negative")
    flow.sink("out", flow.source("numbers", int).map(abs))
    step = calls.watch(flow.steps[1])
    assert hash(-1) == hash(-2)
    assert (step.f(-1), step.f(-2)) == (1, 2)
    (result,) = check_purity(calls)
    assert (result.calls, result.distinct) == (2, 2)


def test_a_report_says_how_many_calls_were_not_repeated(monkeypatch):
    monkeypatch.setattr(Calls, "__init__", partialmethod(Calls.__init__, limit=2))
    flow = cw.Flow("many")
    flow.sink("out", flow.source("words", str).map(str.upper, name="raise"))
    report = cw.check(flow, {"words": ["a", "b", "c"]}, walks=1, max_states=100)
    (note,) = [f for f in report.findings if f.check == "purity: not every call was repeated"]
    assert note.details == ("'raise': 2 of 3 different calls",)


def test_a_function_that_fails_always_alike_is_not_impure():
    assert call_elsewhere([]) is None
    calls = Calls()
    step = calls.watch(s.Map(name="fails", where=None, f=lambda n: 1 // n))
    with pytest.raises(ZeroDivisionError):
        step.f(0)
    assert check_purity(calls)[0].impurity is None


def test_clock_and_random_numbers_are_as_before_after_a_check():
    random.seed(5)
    expected = random.Random(5).random()
    clock = time.time
    result_of(applied(tasks.tells_time))
    assert time.time is clock
    assert random.random() == expected


shared = [1, 2]
CONSTANT = (1, 2)


def names_a_list(n):
    return shared[n]


def names_a_constant(n):
    return CONSTANT[n]


def calls_another(n):
    return names_a_list(n)


def sets_a_global(n):
    global counter
    counter = n


def opens_a_file(n):
    return open(n)  # noqa: PTH123


def asks_the_system(n):
    return os.environ


def tells_the_time(n):
    return now()


def names_attributes(event):
    return event.shared, event.id, event.os, event.open


def closing_over(held):
    return lambda n: held


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (names_a_list, ("'shared' (a list that can change)",)),
        (names_a_constant, ()),
        (calls_another, ("'shared' (a list that can change)",)),
        (sets_a_global, ("'counter' (a global that it sets)",)),
        (opens_a_file, ("'open' (files)",)),
        (asks_the_system, ("'os' (the operating system)",)),
        (tells_the_time, ("'now' (the clock)",)),
        (lambda event: locale.format_string("%.1f", event), ("'locale' (the locale)",)),
        (lambda event: platform.node(), ("'platform' (the machine)",)),
        (names_attributes, ()),
        (closing_over([]), ("'held' (a list that can change)",)),
        (closing_over(1), ()),
        (tasks.dated, ("'today' (the clock)",)),
        (tasks.pure, ()),
        (len, ()),
    ],
)
def test_what_code_names_is_a_ground_for_a_warning(f, expected):
    assert hints_of(f) == expected


MODULE = """
import pathlib, sys
import cutwater as cw

def doubled(n: int) -> int:
    return 2 * n

with pathlib.Path({path!r}).open("a") as file:
    file.write("imported\\n")
flow = cw.Flow("at import")
flow.sink("out", flow.source("numbers", int).map(doubled))
assert cw.check(flow, {{"numbers": [1]}}, crashes=0, walks=1).holds
"""


def test_a_module_that_checks_when_it_is_imported_starts_no_further_processes(
    tmp_path, monkeypatch
):
    log = tmp_path / "log.txt"
    (tmp_path / "checks_at_import.py").write_text(MODULE.format(path=str(log)))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("checks_at_import")
    assert log.read_text().split() == ["imported"] * (1 + 2 * len(HASH_SEEDS))
