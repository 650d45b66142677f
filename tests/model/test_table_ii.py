"""Table II of P2 step by step, and the outputs that would be inconsistent with it."""

import pytest

from cutwater.checking import always, check_model, explainable, replay
from cutwater.checking.guarantees.classify import Reference, classify
from cutwater.checking.transparency.explainability import is_unexplained
from cutwater.semantics.delivery.histories import letters, state_after
from cutwater.semantics.delivery.model import DeliveryModel, Input, Output, Recover, Seen, Transform
from cutwater.semantics.delivery.published import released_at_once
from cutwater.semantics.delivery.system import Element, bag

INPUTS = letters("acbde")
TABLE_II = """
  τ  a ∈ A  x ∈ W  s ∈ W  y ∈ W  b ∈ B  step
  1  a      a      -      -      -      input
  2  c      ac     -      -      -      input
  3  -      c      a      a      -      transform
  4  -      c      a      -      a      output
  5  -      -      ac     ac     -      transform
  6  -      -      ac     -      ac     output
  7  -      -      ac     -      [ac]   snapshot
  8  b      b      ac     -      -      input
  9  d      bd     ac     -      -      input
 10  -      b      cd     cd     -      transform
 11  -      b      cd     -      cd     output
 12  -      -      db     db     -      transform
 13  -      -      db     -      db     output
 14  -      -      db     -      -      recovery
 15  e      e      db     -      -      input
 16  -      -      be     be     -      transform
 17  -      -      be     -      be     output
"""


def model(recovery="replay in any order", window=2, inputs=INPUTS):
    return DeliveryModel(released_at_once(recovery, window), inputs, failures=1)


def enters(letter):
    return [Input(Element("in", letter))]


def works(before, letter, shown):
    after = state_after(before + letter) + bag(Element("out", shown))
    return [Transform(bag(Element("in", letter)) + state_after(before), after)]


def leaves(shown):
    return [Output(Element("out", shown))]


def snapshot(history):
    """A copying Transform, and an Output: one row of the table."""
    saved = Element("snapshot", history)
    return [Transform(state_after(history), state_after(history) + bag(saved)), Output(saved)]


UNTIL_13 = [
    enters("a"),
    enters("c"),
    works("", "a", "a"),
    leaves("a"),
    works("a", "c", "ac"),
    leaves("ac"),
    snapshot("ac"),
    enters("b"),
    enters("d"),
    works("ac", "d", "cd"),
    leaves("cd"),
    works("acd", "b", "db"),
    leaves("db"),
]


def recovered(history, last):
    """Rows 14 to 17, where the replay inside F took the inputs in this order."""
    return [[Recover(state_after(history))], enters("e"), works(history, "e", last), leaves(last)]


def flat(rows):
    return [step for row in rows for step in row]


def run(rows, **options):
    chosen = model(**options)
    (start,) = chosen.initial_states()
    return replay(chosen, start, flat(rows))


def row(number, steps, before, after):
    """A row of the table, read off the configurations before and after it."""
    c, old = after.configuration, before.configuration

    def text(elements):
        return "".join(element.value for element in elements) or "-"

    new = (c.outputs - old.outputs).elements
    is_snapshot = any(element.kind == "snapshot" for element in new)
    shown = f"[{text(new)}]" if is_snapshot else text(new)
    names = {Input: "input", Transform: "transform", Output: "output", Recover: "recovery"}
    columns = (
        text(c.inputs - old.inputs),
        text(c.working.of_kind("in")),
        text(c.working.of_kind("state"))[-2:],
        text(c.working.of_kind("out")),
        shown,
    )
    step = "snapshot" if is_snapshot else names[type(steps[-1])]
    return f"{number:3}  " + "".join(f"{column:<7}" for column in columns) + step


def test_table_ii_is_a_run():
    rows = [*UNTIL_13, *recovered("acdb", "be")]
    path = run(rows)
    lines, at = ["  τ  a ∈ A  x ∈ W  s ∈ W  y ∈ W  b ∈ B  step"], 0
    for number, steps in enumerate(rows, start=1):
        after = at + len(steps)
        lines.append(row(number, steps, path.states[at], path.states[after]))
        at = after
    assert "\n".join(lines) == TABLE_II.strip("\n")


def test_table_ii_is_explained_and_de_is_not():
    """Every input is applied exactly once, and yet `de` contradicts `db`."""
    good, bad = recovered("acdb", "be"), recovered("acbd", "de")
    assert run([*UNTIL_13, *bad]).last.configuration.inputs == bag(*INPUTS)
    assert is_explained([*UNTIL_13, *good])
    assert is_explained([*UNTIL_13, *bad[:-1]])
    assert not is_explained([*UNTIL_13, *bad])


def is_explained(rows):
    """Does a run without failures show the same? Definition 6, by run."""
    chosen, actions = model(), flat(rows)
    return not is_unexplained(chosen, chosen.reference(), actions, order=Seen.is_before)


def test_definition_5_be_is_consistent_and_de_is_not():
    reference = Reference(model().reference())
    before = run([*UNTIL_13, *recovered("acdb", "be")[:-1]]).last
    seen = model().observation(before)
    assert reference.is_exhaustive
    assert reference.is_consistent(seen, seen.outputs + bag(Element("out", "be")))
    assert not reference.is_consistent(seen, seen.outputs + bag(Element("out", "de")))


class AfterRow13:
    """The model from row 13 on: so far nothing has failed, so the reference is there too."""

    def __init__(self, chosen):
        self.chosen, self.actions, self.step = chosen, chosen.actions, chosen.step
        self.observation = chosen.observation

    def initial_states(self):
        return [run(UNTIL_13).last]


def test_the_checker_finds_de():
    chosen = model()
    found = explainable(AfterRow13(chosen), AfterRow13(chosen.reference()), reduce=False)
    assert [str(step) for step in found.counterexample.actions] == [
        "in e enters",
        "failure; {in e, state acbd} is restored",
        "{in e, state acbd} becomes {out de, state acbde}",
        "out de leaves",
    ]


def test_the_checker_finds_nothing_where_the_order_is_kept():
    chosen = model("replay in the order that outputs show")
    found = explainable(AfterRow13(chosen), AfterRow13(chosen.reference()), reduce=False)
    assert (found.holds, found.checked.is_exhaustive) == (True, True)
    assert found.checked.unique_states == 34


def test_section_ii_bac_after_a_and_ab_is_found():
    found = classify(released_at_once("replay in any order", window=None), letters("abc"))
    assert str(found) == "none"
    assert [str(step) for step in found.verdicts["exactly-once"].by_run.witness.actions] == [
        "in a enters",
        "in b enters",
        "in c enters",
        "{in a} becomes {out a, state a}",
        "out a leaves",
        "{in b, state a} becomes {out ab, state ab}",
        "out ab leaves",
        "failure; {in c, state ba} is restored",
        "{in c, state ba} becomes {out bac, state bac}",
        "out bac leaves",
    ]


@pytest.mark.parametrize(
    ("recovery", "is_possible"),
    [("replay in the order that outputs show", False), ("replay in any order", True)],
)
def test_section_ii_bac_after_ab_is_impossible_where_the_order_is_kept(recovery, is_possible):
    ab, bac = Element("out", "ab"), Element("out", "bac")
    claim = always("ab, then not bac", lambda p: not bag(ab, bac) <= p.configuration.outputs)
    found = check_model(model(recovery, None, letters("abc")), [claim])
    assert found.holds == (not is_possible)
    kept = classify(released_at_once("replay in the order that outputs show", None), letters("abc"))
    assert str(kept) == "exactly-once"
