"""Which requests are new ones: those that do not stand already (Definition 3: N − N₁)."""

from cutwater.progress import Edge
from cutwater.semantics.timely.behaviour import Request, requested
from cutwater.semantics.timely.dataflow import (
    Dataflow,
    Message,
    Notified,
    Processor,
    Received,
    reaction,
)

MESSAGE = Received("in", Message(0))


def asking_after(first, initial):
    """It asks for 0 on a message whose event before was a ``first``; else it is silent for ever."""

    def g1(state, event):
        if state is None and isinstance(event, first):
            return reaction("asks")
        is_asking = state == "asks" and isinstance(event, Received)
        return reaction("asks" if is_asking else "silent", requests=[0] if is_asking else [])

    processor = Processor("work", g1, ((None, frozenset(initial)),))
    return Dataflow((processor,), (Edge("in", None, "work"),), (0,), (Message(0),))


def test_a_request_that_stands_is_not_made_again_after_a_message():
    assert requested(asking_after(Received, initial=[0])) == []


def test_one_that_does_not_stand_is_new():
    assert requested(asking_after(Received, initial=[])) == [Request("work", MESSAGE, 0)]


def test_one_that_a_notification_has_answered_is_new():
    assert requested(asking_after(Notified, initial=[0])) == [Request("work", MESSAGE, 0)]
