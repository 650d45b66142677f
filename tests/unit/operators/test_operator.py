import pytest

from cutwater.operators import Ended, Operator, Produced, batch, fproduce, produce, produce_1


def echo_from_third():
    """Counts its inputs, and emits them from the third on."""
    return Operator(
        0,
        lambda n, event: (n + 1, [event, n] if n >= 2 else []),
        lambda n: [f"saw {n}"],
    )


def test_an_operator_can_go_on_from_any_of_its_states():
    op = echo_from_third()
    assert list(produce(op.at(2), "a")) == ["a", 2, "saw 3"]
    assert op.initial == 0


def test_the_state_of_a_key_is_the_initial_one_unless_the_operator_starts_it():
    op = echo_from_third()
    assert op.start_for("key") == 0
    assert Operator("", op.step, start=str.upper).start_for("key") == "KEY"


def test_nothing_is_known_of_states_by_default():
    op = echo_from_third()
    assert not op.is_idle(0)
    assert not op.is_blank(0)
    assert list(Operator(0, op.step).finish(0)) == []


def test_fproduce_says_nothing_at_the_end():
    later, outputs = fproduce(echo_from_third(), "abc")
    assert (later.initial, outputs) == (3, ["c", 2])


def test_produce_1_stops_at_the_first_output():
    found = produce_1(echo_from_third(), "abcde", depth=10)
    assert isinstance(found, Produced)
    assert (found.first, found.others, list(found.rest)) == ("c", (2,), ["d", "e"])
    assert found.op.initial == 3


def test_produce_1_stops_at_the_end():
    found = produce_1(echo_from_third(), "ab", depth=10)
    assert isinstance(found, Ended)
    assert found.op.initial == 2


@pytest.mark.parametrize(("depth", "is_none"), [(0, True), (2, True), (3, False)])
def test_produce_1_gives_up_at_a_depth(depth, is_none):
    assert (produce_1(echo_from_third(), "abcde", depth=depth) is None) == is_none


def test_produce_steps_nothing_until_it_is_asked():
    assert next(produce(batch(), iter(())), "nothing") == "nothing"
    produce(Operator(0, None), "ab")
