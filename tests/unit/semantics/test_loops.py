"""Loops in flows: order, crashes, bounds, and what stays with its key."""

from dataclasses import dataclass

import pytest
from support.flows.loops import nested

import cutwater as cw
from cutwater.errors import RunError


@dataclass(frozen=True)
class Text:
    key: str
    text: str


@cw.task(initial="")
def grown(whole: str, item: Text) -> tuple[str, list[Text]]:
    """Not commutative: a key's text is what came, in order; every third letter goes round again."""
    whole += item.text
    again = [Text(item.key, item.text.lower() + whole[-2:].upper())] if len(whole) % 3 else []
    return whole, again if len(whole) < 40 else []


def ended(item: Text) -> Text:
    return Text(item.key, f"<{item.text}>")


def concatenating(**settings):
    flow = cw.Flow("concatenating")
    texts = flow.source("texts", Text).key_by("key")

    def body(stream):
        told = stream.apply(grown)
        return told, told.map(ended)

    flow.sink("out", texts.iterate(body, name="grow", **settings))
    return flow


TEXTS = [Text("abcd"[n % 4], chr(65 + n)) for n in range(9)]
CUT = [*TEXTS[:4], cw.BARRIER, *TEXTS[4:7], cw.BARRIER, *TEXTS[7:]]


@pytest.mark.parametrize("instances", [1, 2, 16])
def test_a_body_that_is_not_commutative_shows_the_same_in_any_number_of_instances(instances):
    plain = cw.simulate(concatenating(), {"texts": CUT})
    parallel = cw.simulate(concatenating(), {"texts": CUT}, instances=instances, trace=True)
    assert parallel.by_epoch("out") == plain.by_epoch("out")
    assert len(plain["out"]) > len(TEXTS)


@pytest.mark.parametrize("instances", [1, 2])
@pytest.mark.parametrize("place", [None, *range(len(CUT) + 1)])
def test_with_a_state_per_epoch_an_input_epoch_shows_what_it_shows_alone(instances, place):
    """by_epoch(e1 | e2 | e3) == e1 alone ++ e2 alone ++ e3 alone, crashes or not."""
    alone = [
        [item.text for item in cw.simulate(concatenating(), {"texts": texts})["out"]]
        for texts in (TEXTS[:4], TEXTS[4:7], TEXTS[7:])
    ]
    texts = CUT if place is None else [*CUT[:place], cw.CRASH, *CUT[place:]]
    flow = concatenating(state_per_epoch=True)
    shown = cw.simulate(flow, {"texts": texts}, instances=instances).by_epoch("out")
    assert [[item.text for item in epoch] for epoch in shown] == [*alone, []]
    kept = cw.simulate(concatenating(), {"texts": CUT}).by_epoch("out")
    assert shown != kept, "which a state that is kept would tell"


def test_every_interleaving_of_a_loop_with_a_state_per_epoch_is_explained():
    flow = concatenating(state_per_epoch=True)
    assert cw.check(flow, {"texts": CUT[2:6]}, crashes=1, walks=1).holds


@cw.task(initial="")
def echoed(whole: str, letter: str) -> tuple[str, list[str]]:
    """Shows all that came; capitals come again as small letters."""
    whole += letter
    return whole, [whole]


def test_all_that_comes_in_an_epoch_is_a_round_before_any_of_it_comes_again():
    """The order is (input epoch, round, order of the cause)."""
    flow = cw.Flow("echo")

    def body(stream):
        shown = stream.apply(echoed)
        return shown.filter(lambda s: s[-1].isupper()).map(lambda s: s[-1].lower()), shown

    flow.sink("out", flow.source("letters", str).iterate(body))
    together = cw.simulate(flow, {"letters": ["A", "B"]})["out"]
    apart = cw.simulate(flow, {"letters": ["A", cw.BARRIER, "B"]})["out"]
    assert together == ["A", "AB", "ABa", "ABab"]
    assert apart == ["A", "Aa", "AaB", "AaBb"]


@pytest.mark.parametrize("place", range(len(CUT) + 1))
def test_a_crash_anywhere_changes_nothing(place):
    texts = [*CUT[:place], cw.CRASH, *CUT[place:]]
    wanted = cw.simulate(concatenating(), {"texts": CUT}).by_epoch("out")
    assert cw.simulate(concatenating(), {"texts": texts}, instances=2).by_epoch("out") == wanted


def test_every_interleaving_with_crashes_is_explained():
    report = cw.check(concatenating(), {"texts": CUT[2:6]}, crashes=1, walks=1)
    assert report.holds
    found = {finding.check: finding for finding in report.findings}
    assert "explored all" in found["failure transparency, all runs"].extent


def test_every_interleaving_of_loops_in_loops_with_notifications_is_explained():
    numbers = [cw.Data(0, 5), cw.Data(1, 2), cw.BARRIER, cw.Watermark(0)]
    report = cw.check(nested(3), {"numbers": numbers}, crashes=1, walks=1)
    assert report.holds


CALLS = []


def impure(n: int) -> int:
    CALLS.append(n)
    return n // 2 + len(CALLS) % 2


def test_a_function_in_a_body_that_is_not_pure_is_found():
    flow = cw.Flow("impure")
    numbers = flow.source("numbers", int)
    flow.sink("out", numbers.iterate(lambda s: s.map(impure).filter(lambda n: n > 3), name="loop"))
    report = cw.check(flow, {"numbers": [40, 50]})
    assert not report.holds
    assert "purity of 'impure'" in {finding.check for finding in report.findings}


def test_a_bound_that_is_reached_is_reported():
    flow = cw.Flow("bounded")
    numbers = flow.source("numbers", int)

    def less(stream):
        return stream.map(lambda n: n - 1).filter(lambda n: n > 0)

    flow.sink("out", numbers.iterate(less, max_rounds=3, name="down"))
    assert cw.simulate(flow, {"numbers": [3, 1]})["out"] == [2, 1]
    with pytest.raises(RunError) as caught:
        cw.simulate(flow, {"numbers": [5, 4, 3]})
    (problem,) = caught.value.problems
    assert problem.code == "loop-bound"
    assert "iterate 'down'" in problem.message
    assert "has run 3 iterations" in problem.message
    assert "still feeds back 2 values, for example 2 at time 0" in problem.message


def test_a_bound_of_one_iteration_is_worded_so():
    flow = cw.Flow("once")
    numbers = flow.source("numbers", int)
    flow.sink("out", numbers.iterate(lambda s: s.filter(lambda n: n > 1), max_rounds=1, name="one"))
    assert cw.simulate(flow, {"numbers": [1]})["out"] == []
    with pytest.raises(RunError, match="has run 1 iteration, its max_rounds, and still feeds"):
        cw.simulate(flow, {"numbers": [2, 1]})


def test_a_loop_with_a_key_by_in_its_body_has_a_state_for_each_key_of_all_rounds():
    """Distances from a node: what is nearer goes on to the neighbours."""
    streets = {"a": {"b": 7, "c": 2}, "c": {"b": 1, "d": 9}, "b": {"d": 1}}

    @cw.task(initial=None)
    def nearest(best: int | None, at: tuple[str, int]) -> tuple[int | None, list[tuple[str, int]]]:
        return (best, []) if best is not None and best <= at[1] else (at[1], [at])

    def onward(at):
        return [(there, at[1] + length) for there, length in streets.get(at[0], {}).items()]

    def body(stream):
        better = stream.key_by(lambda at: at[0]).apply(nearest)
        return better.flat_map(onward), better

    flow = cw.Flow("distances")
    flow.sink("out", flow.source("starts", tuple).iterate(body))
    shown = cw.simulate(flow, {"starts": [("a", 0)]})["out"]
    assert dict(shown) == {"a": 0, "c": 2, "b": 3, "d": 4}
    assert shown[0] == ("a", 0)


def test_a_round_is_to_the_steps_of_a_body_what_an_epoch_is_outside():
    flow = cw.Flow("rounds")

    def body(stream):
        counted = stream.aggregate(emit="epoch", n=cw.agg.count())
        return counted.flat_map(lambda c: [0] * (3 - c.n) if c.n < 3 else []), counted

    flow.sink("out", flow.source("numbers", int).iterate(body))
    shown = cw.simulate(flow, {"numbers": [5]})["out"]
    assert [record.n for record in shown] == [1, 3]


def test_what_joins_in_a_loop_joins_round_by_round():
    flow = cw.Flow("joins")

    def body(stream):
        odd = stream.filter(lambda n: n % 2 == 1, name="odd")
        even = stream.filter(lambda n: n % 2 == 0, name="even")
        pairs = odd.join(even, lambda a, b: (a, b))
        return pairs.flat_map(lambda pair: [pair[0] - 2, pair[1] - 2] if pair[0] > 2 else []), pairs

    flow.sink("out", flow.source("numbers", int).iterate(body))
    numbers = [cw.Data(1, 7), cw.Data(1, 4), cw.Data(2, 5), cw.Watermark(2)]
    assert cw.simulate(flow, {"numbers": numbers})["out"] == [(7, 4), (5, 2), (3, 0), (1, -2)]


def test_requests_before_the_first_event_are_notified_in_a_loop_too():
    flow = cw.Flow("awake")

    def received(state, time, n):
        return state, []

    def completed(state, time):
        return state, [time.second[0]] if time.second[0] else [8]

    first = [cw.Product(3, (0,)), cw.Product(3, (2,))]

    def body(stream):
        told = stream.on_complete(received, completed, initial=0, requests=first)
        return told.filter(lambda n: n == 8), told

    flow.sink("out", flow.source("numbers", int).iterate(body))
    simulation = cw.simulate(flow, {"numbers": [cw.Watermark(2), cw.BARRIER, cw.Watermark(4)]})
    assert simulation.by_epoch("out") == [[], [8, 2], []]


def split(letter: str) -> list[str]:
    """Capitals become two; what is small ends."""
    return [letter.lower(), letter.lower() + "'"] if letter.isupper() else []


def copied(stream):
    """An event and its copy are taken one after the other, each with all that it causes."""
    return stream.merge(stream, name="twice").flat_map(split)


def joined(stream):
    """What two ways make of an event comes before what they make of the next."""
    left, right = stream.flat_map(split), stream.map(lambda letter: letter + "!", name="loud")
    return left.merge(right.filter(lambda text: text[0].isupper())).apply(echoed)


@pytest.mark.parametrize("body", [copied, joined])
def test_a_round_has_the_order_that_its_body_has_outside_of_a_loop(body):
    outside = cw.Flow("outside")
    outside.sink("out", body(outside.source("letters", str)))
    inside = cw.Flow("inside")
    letters = inside.source("letters", str)

    def once(stream):
        shown = body(stream)
        return shown.filter(lambda _: False), shown

    inside.sink("out", letters.iterate(once))
    given = {"letters": ["A", "B", "C"]}
    assert cw.simulate(inside, given)["out"] == cw.simulate(outside, given)["out"]
