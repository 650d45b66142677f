"""A check looks into the bodies of loops: claims, batches, what travels, purity."""

import threading

import pytest

import cutwater as cw
from cutwater.checking.guarantees.order_sensitivity import order_sensitivity
from cutwater.flow.guarantees.settings import assumed_settings

Body = tuple[cw.Stream, cw.Stream]


def first(text: str) -> str:
    return text[:1]


def is_short(text: str) -> bool:
    return len(text) < 3


@cw.task(initial="", commutative=True)
def joined(whole: str, text: str) -> tuple[str, list[str]]:
    """It claims what is not so."""
    whole = (whole + text)[-6:]
    return whole, [whole]


@cw.vectorised(initial=0)
def counted(seen: int, text: str, keys: cw.Keys) -> tuple[int, str]:
    """A batch counts once, however many events it has."""
    counts = keys.running_count(start=seen)
    return keys.last(counts), text


CALLS: list[str] = []


def impure(text: str) -> str:
    CALLS.append(text)
    return text + "xy"[len(CALLS) % 2]


LOCK = threading.Lock()


def locked(lock):
    def is_open(text: str) -> bool:
        with lock:
            return is_short(text)

    return is_open


def looping(body, depth=1, **settings) -> cw.Flow:
    flow = cw.Flow("loops")
    texts = flow.source("texts", str, **settings)

    def nested(level):
        def outer(stream: cw.Stream) -> Body:
            left = stream.iterate(nested(level - 1) if level > 1 else body, name=f"loop {level}")
            return left.filter(lambda _: False, name=f"never {level}"), left

        return outer

    inner = nested(depth - 1) if depth > 1 else body
    flow.sink("out", texts.iterate(inner, name="loop"))
    return flow


def joining(stream: cw.Stream) -> Body:
    told = stream.key_by(first, name="by first").apply(joined)
    return told.filter(is_short), told


def findings(flow, inputs=None):
    report = cw.check(flow, inputs, crashes=1, max_states=300, walks=2)
    return {finding.check: finding for finding in report.findings}


TEXTS = {"texts": ["a", "ab", "ac", cw.BARRIER, "ad", "b"]}


@pytest.mark.parametrize("depth", [1, 3])
def test_a_claim_in_a_body_is_tested(depth):
    found = findings(looping(joining, depth), TEXTS)
    assert found["claim: 'joined' is commutative"].verdict == "violated"


@pytest.mark.parametrize("depth", [1, 2])
def test_the_guarantee_names_the_steps_of_a_body(depth):
    steps = {step.step: step for step in order_sensitivity(looping(joining, depth), TEXTS).steps}
    assert steps["joined"].matters == "yes"
    assert "then" in steps["joined"].witness
    assert [claim.verdict for claim in steps["joined"].claims] == ["violated"]
    assert steps["loop"].matters == "maybe"


def test_batches_of_a_vectorised_task_in_a_body_are_split():
    def body(stream: cw.Stream) -> Body:
        told = stream.key_by(first, name="by first").apply(counted)
        return told.filter(lambda _: False, name="never"), told

    found = findings(looping(body), TEXTS)
    assert "batches mean the same as their events" in found


def test_what_cannot_be_sent_in_a_body_is_named():
    def body(stream: cw.Stream) -> Body:
        told = stream.flat_map(lambda text: [text[1:]] if text else [], name="shorter")
        return told.filter(locked(LOCK), name="locked"), told

    found = findings(looping(body, 2), TEXTS)["functions can be sent to an engine"]
    assert found.verdict == "violated"
    assert "filter 'locked'" in found.details[0]


@pytest.mark.parametrize("depth", [1, 2])
def test_nothing_is_guaranteed_behind_a_loop_whose_body_is_not_pure(depth):
    def body(stream: cw.Stream) -> Body:
        told = stream.map(impure)
        return told.filter(is_short), told

    flow = looping(body, depth)
    sensitivity = order_sensitivity(flow, TEXTS)
    assert sensitivity.impure is not None
    assert "impure" in sensitivity.impure
    for setting in assumed_settings(flow, impure=tuple(sensitivity.impure)):
        assert {each.kind for each in setting.sink_guarantees} == {"none"}
        assert setting.edges[1, 2].status == "weak"
        assert "`impure` is not a function" in setting.edges[1, 2].why


def impure_later(text: str) -> str:
    CALLS.append(text)
    return text + ("xy"[len(CALLS) % 2] if text == "late" else "")


@pytest.mark.parametrize("depth", [1, 2])
def test_what_a_body_does_after_a_snapshot_is_looked_at_too(depth):
    def body(stream: cw.Stream) -> Body:
        told = stream.map(impure_later).apply(counting)
        return told.filter(is_short), told

    texts = {"texts": ["a", cw.BARRIER, "b", cw.BARRIER, "late"]}
    found = findings(looping(body, depth), texts)
    assert found["purity of 'impure_later'"].verdict == "violated"


@cw.task(initial=0)
def counting(count: int, text: str) -> tuple[int, list[str]]:
    return count + 1, [text + "..."]
