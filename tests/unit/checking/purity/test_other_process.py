"""Calls made again in processes that know nothing of each other, under fixed hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from support.flows import hidden_inputs as hidden

import cutwater as cw
from cutwater.checking.purity.repeated_calls import Calls, check_purity
from cutwater.checking.purity.static_hints import hints_of
from cutwater.checking.purity.surroundings import another_clock
from cutwater.errors import StepError
from cutwater.flow.fusing import plan
from cutwater.semantics import hanging
from cutwater.semantics.crashing import run_with_crashes

HIDING = (
    hidden.cached,
    hidden.cached_through_its_module,
    hidden.this_year,
    hidden.local_year,
    hidden.time_zone,
    hidden.user,
    hidden.bound_clock,
    hidden.bound_local_time,
    hidden.day,
    hidden.year_of_text,
    hidden.clock_of_the_system,
    hidden.unset_switch,
    hidden.unset_getenv,
    hidden.unset_in,
    hidden.home,
    hidden.folder,
    hidden.temporary_folder,
    hidden.joined,
    hidden.is_morning,
    hidden.is_weekend,
    hidden.is_new,
    hidden.has_run_for_long,
    hidden.program,
    hidden.of_this_run,
)


def results_of(flow, words):
    calls = Calls()
    run_with_crashes(plan(flow, watch=calls.watch), {"words": words})
    return check_purity(calls)


def test_what_a_function_hides_is_found_though_it_was_called_before(monkeypatch):
    """A wrong cache that is warm in this process gives the same here again and again."""
    monkeypatch.setenv("USER", "ada")
    flow = cw.Flow("hidden")
    words = flow.source("words", str)
    for f in HIDING:
        flow.sink(f"out {f.__name__}", words.map(f))
        f("ab")
    results = results_of(flow, ["ab", "abc", "ba"])
    assert [result.step for result in results if result.impurity] == [f.__name__ for f in HIDING]
    assert all(result.elsewhere for result in results)


def test_a_library_reads_the_environment_as_it_is(monkeypatch):
    """Only what the user's code asks for is answered: a library could not make sense of it."""
    monkeypatch.delenv("COLUMNS", raising=False)
    flow = cw.Flow("hidden")
    flow.sink("out", flow.source("words", str).map(hidden.quiet_library))
    (result,) = results_of(flow, ["ab"])
    assert (result.impurity, result.elsewhere) == (None, True)


def test_names_bound_at_import_are_restored():
    before = (hidden.bound_time, hidden.local_time)
    with another_clock(lambda: 5.0):
        assert (hidden.bound_time(), hidden.local_time().tm_year) == (5.0, 1970)
    assert (hidden.bound_time, hidden.local_time) == before


def test_a_lambda_of_a_flow_that_can_be_imported_is_called_elsewhere_too():
    (result,) = results_of(hidden.flow, ["ab"])
    assert result.elsewhere
    assert "hash seed" in result.impurity.what


def test_a_closure_is_called_elsewhere_as_it_was_before_its_first_call():
    """Here its cache is warm and gives the same again; there it begins with what it closed over."""
    cache = {}

    @dataclass(frozen=True)
    class Word:
        text: str

    def cached(word: str) -> Word:
        return Word(cache.setdefault(len(word), word))

    def plain(word: Word) -> str:
        return word.text

    flow = cw.Flow("local")
    flow.sink("out", flow.source("words", str).map(cached).map(plain))
    hiding, honest = results_of(flow, ["ab", "ba"])
    assert (hiding.elsewhere, honest.elsewhere) == (True, True)
    assert hiding.impurity is not None
    assert honest.impurity is None


def test_the_call_is_named_that_makes_another_give_another_result():
    flow = cw.Flow("hidden")
    flow.sink("out", flow.source("words", str).map(hidden.cached))
    (result,) = results_of(flow, ["abc", "de", "f", "dgh", "ij"])
    assert result.impurity.arguments == "'de'"
    assert result.impurity.what.endswith("after it was given 'dgh'")


def test_one_function_whose_arguments_cannot_be_sent_leaves_the_others_their_repetition():
    @dataclass(frozen=True)
    class OfThisFunction:
        word: str

        def __reduce__(self):
            raise TypeError("it stays here")

    flow = cw.Flow("hidden")
    words = flow.source("words", str)
    flow.sink("out", words.map(hidden.cached))

    def make(word: str) -> OfThisFunction:
        return OfThisFunction(word)

    make.__annotations__["return"] = OfThisFunction
    flow.sink("other", words.map(make).map(hidden.length_of_word))
    results = {result.step: result for result in results_of(flow, ["ab", "abc"])}
    assert results["cached"].elsewhere
    assert results["cached"].impurity
    assert not results["length_of_word"].elsewhere


SCRIPT = """
from dataclasses import dataclass
import cutwater as cw
from cutwater.checking.purity.repeated_calls import Calls, check_purity
from cutwater.flow.fusing import plan
from cutwater.semantics.crashing import run_with_crashes

_cache = {}

@dataclass(frozen=True)
class Word:
    text: str

def cached(word: Word) -> int:
    return _cache.setdefault(word.text[:1], len(word.text))

if __name__ == "__main__":
    cached(Word("a"))
    flow = cw.Flow("script")
    flow.sink("out", flow.source("words", Word).map(cached))
    calls = Calls()
    run_with_crashes(plan(flow, watch=calls.watch), {"words": [Word("ab"), Word("abc")]})
    for result in check_purity(calls):
        print(result.step, result.elsewhere, result.impurity is not None)
"""


def output_of(script):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout


def test_functions_of_the_script_that_is_run_are_called_elsewhere_too(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert output_of(script) == "cached True True\n"


def test_functions_of_a_script_that_would_do_its_work_again_are_sent_as_they_are(tmp_path):
    script, done = tmp_path / "script.py", tmp_path / "done"
    work = f"if True:\n    open({str(done)!r}, 'a').write('once ')"
    text = SCRIPT.replace('    cached(Word("a"))\n', "")
    script.write_text(text.replace('if __name__ == "__main__":', work))
    assert output_of(script) == "cached True True\n"
    assert done.read_text() == "once "


def test_an_endless_function_has_a_limit():
    flow = cw.Flow("endless")
    flow.sink("out", flow.source("words", str).flat_map(hidden.endless))
    with pytest.raises(StepError, match=r"flat_map 'endless' .* emitted more than 100,000 values"):
        cw.check(flow, {"words": ["a"]}, walks=1, max_states=100)


def test_a_function_that_hangs_only_in_another_process_is_named(monkeypatch):
    monkeypatch.setattr(hanging, "PATIENCE", 2)
    flow = cw.Flow("hidden")
    words = flow.source("words", str)
    flow.sink("out", words.map(hidden.hangs_when_cold))
    flow.sink("other", words.map(hidden.cached))
    hidden.hangs_when_cold.warm = True
    try:
        lost, other = results_of(flow, ["ab", "abc"])
    finally:
        del hidden.hangs_when_cold.warm
    assert lost.impurity.what.endswith("in another process, it does not return")
    assert lost.impurity.arguments == "'ab'"
    assert "after it was given" in other.impurity.what


def test_suspicions_follow_other_modules_and_variables_of_functions_around():
    wanted = "'_cache' (a dict that can change)"
    assert wanted in hints_of(hidden.cached)
    assert wanted in hints_of(hidden.cached_through_its_module)
    assert any("'seen' (a variable of a function around" in s for s in hints_of(hidden.counting()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flow", "flow_of_chance"])
def test_the_same_seed_gives_the_same_report_twenty_times(name):
    command = "from cutwater.cli.app import main; main()"
    target = ["check", f"support.flows.hidden_inputs:{name}", "--json", "--max-states", "200"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    reports = set()
    for _ in range(20):
        done = subprocess.run(
            [sys.executable, "-c", command, *target], capture_output=True, env=env, check=False
        )
        assert done.returncode == 1
        reports.add(done.stdout)
    assert len(reports) == 1
