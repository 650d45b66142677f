"""A source of five items and a crash after the third, as other systems test their recovery."""

import pytest

from cutwater.semantics.barrier_model import BarrierModel, Fail, Recover, TakeEvent
from cutwater.semantics.barriers import EventContent, Task, initial_configuration, output
from cutwater.semantics.wellformed import checked_configuration, graph_of


def echo(value, word):
    return value, [word]


@pytest.mark.parametrize(
    ("epochs", "first_seen", "processed_again"),
    [([[0, 1, 2, 3, 4]], [], [0, 1, 2, 3, 4]), ([[0], [1], [2], [3], [4]], [0, 1, 2], [3, 4])],
    ids=["no snapshot", "a snapshot per item"],
)
def test_0_1_2_crash_3_4(epochs, first_seen, processed_again):
    task = Task("echo", echo, ("items",), "echoed")
    model = BarrierModel(
        checked_configuration(initial_configuration(graph_of([task]), {"items": epochs})), crashes=1
    )
    (point,) = model.initial_states()
    wanted = 3 + len(first_seen)  # three items, and the barriers behind them
    before, point = until(
        model, point, lambda point: point.configuration.position(0, "echoed") == wanted
    )
    assert taken(before) == [0, 1, 2]
    assert seen(point) == first_seen
    point = model.step(model.step(point, Fail("echo")), Recover())
    assert seen(point) == first_seen
    after, point = until(model, point, lambda p: False)
    assert taken(after) == processed_again
    assert seen(point) == [0, 1, 2, 3, 4]


def taken(moves):
    return [move.message.content.payload for move in moves if isinstance(move, TakeEvent)]


def until(model, point, is_enough):
    moves = []
    while not is_enough(point):
        work = [move for move in model.actions(point) if not isinstance(move, Fail)]
        if not work:
            break
        moves.append(work[0])
        point = model.step(point, work[0])
    return moves, point


def seen(point):
    """What an observer sees on the sink."""
    shown = sorted((m for m in output(point.configuration) if m.stream == "echoed"),
                   key=lambda m: m.n)  # fmt: skip
    return [m.content.payload for m in shown if isinstance(m.content, EventContent)]
