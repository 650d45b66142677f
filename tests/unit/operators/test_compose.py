from cutwater.events import Data, Watermark
from cutwater.operators import Operator, accumulate, batch, compose, identity, map_values, produce


def tagged(tag):
    """Emits a tag when an epoch ends, and marks what passes."""
    return Operator(
        0,
        lambda n, event: (n + 1, [f"{event}{tag}"]),
        lambda n: [f"{tag} end"],
        barrier=lambda n: (n + 10, [f"{tag} barrier"]),
    )


def test_the_state_is_the_tuple_of_the_states():
    op = compose(batch(), accumulate(), identity())
    assert len(op.initial) == 3
    assert compose(batch()).initial == batch().initial


def test_a_barrier_passes_through_every_operator():
    op = compose(tagged("a"), tagged("b"))
    state, outputs = op.barrier(op.initial)
    assert state == (10, 11)
    assert outputs == ["a barrierb", "b barrier"]


def test_there_is_a_barrier_only_if_some_operator_has_one():
    assert compose(identity(), identity()).barrier is None
    state, outputs = compose(identity(), tagged("b")).barrier((None, 0))
    assert (state, outputs) == ((None, 10), ["b barrier"])


def test_the_end_passes_through_every_operator():
    assert list(produce(compose(tagged("a"), tagged("b")), ["x"])) == ["xab", "a endb", "b end"]


def test_states_start_by_key_if_some_operator_starts_so():
    by_key = Operator("", lambda state, event: (state, [event]), start=str.upper)
    assert compose(identity(), by_key).start_for("k") == (None, "K")
    assert compose(identity(), identity()).start is None


def test_a_composition_is_idle_and_blank_if_all_parts_are():
    op = compose(map_values(lambda _, value: value), batch())
    assert op.is_idle(op.initial)
    assert op.is_blank(op.initial)
    state, _ = op.step(op.initial, Data(1, "a"))
    assert not op.is_idle(state)
    assert not op.is_blank(state)
    state, _ = op.step(state, Watermark(1))
    assert op.is_idle(state)
    assert op.is_blank(state)


def test_a_composition_is_due_when_its_first_part_that_waits_is():
    """What is idle waits for nothing, whether it could say when it is due or not."""
    op = compose(identity(), batch(), batch())
    state, _ = op.step(op.initial, Data(3, "a"))
    assert op.due(state) == 3
    state, _ = op.step(state, Data(2, "b"))
    assert op.due(state) == 2


def test_a_composition_is_not_due_at_a_known_time_if_a_part_that_waits_cannot_say():
    unknown = Operator(0, lambda n, event: (n + 1, [event]), is_idle=lambda n: n == 0)
    op = compose(unknown, batch())
    state, _ = op.step(op.initial, Data(3, "a"))
    assert op.due(state) is None
