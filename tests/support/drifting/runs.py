"""Deployments of drifting state to explore, and runs of it in words."""

from cutwater.checking import always, check_model
from cutwater.semantics.drifting.agents import Deployment
from cutwater.semantics.drifting.elements import Element, Grouping, Time
from cutwater.semantics.drifting.messages import Bundle, CommitSnapshot, Work
from cutwater.semantics.drifting.model import DriftingModel
from cutwater.semantics.drifting.system import Crash, Deliver, Duplicate, Produce, Suspect


def log(count, producer=0):
    """v1, v2, ... of a producer."""
    return tuple(Element(Time((n, producer)), f"v{n}") for n in range(1, count + 1))


def twice(window):
    """Two outputs for an input."""
    return tuple(f"{window[-1]}{letter}" for letter in "ab")


def number(value):
    """The key of v1 is 1."""
    return int(value[1:])


ONE = Deployment((Grouping(2),), (log(1),), snapshots=((2, 0),))
TWO = Deployment((Grouping(2),), (log(2),), snapshots=((2, 0),))
THREE = Deployment((Grouping(2),), (log(3),), snapshots=((3, 0),))
WIDE = Deployment((Grouping(3),), (log(2),), snapshots=((2, 0),))
EACH_BY_ITSELF = Deployment((Grouping(1),), (log(2),), snapshots=((2, 0),))
TWO_OUTPUTS = Deployment((Grouping(1, emit=twice),), (log(1),), snapshots=((2, 0),))
TWO_NODES = Deployment((Grouping(2, key=number),), (log(2),), nodes=2)
TWO_PRODUCERS = Deployment((Grouping(2),), (log(1, 0), log(1, 1)), snapshots=((1, 1),))
TWO_STEPS = Deployment((Grouping(2), Grouping(2)), (log(2),), snapshots=((2, 0),))


def explored(protocol, faults, **options):
    model = DriftingModel(protocol, faults)
    claim = always("exactly-once", model.is_exactly_once, observed=True)
    return model, claim, check_model(model, [claim], **options)


def told(actions):
    """The moves that one has to know to see what goes wrong."""
    return ", ".join(filter(None, map(_told, actions)))


def _told(action):
    match action:
        case Suspect(None):
            return "start"
        case Suspect(agent):
            return f"start, and {agent} lives on"
        case Produce() | Duplicate():
            return ""
        case Crash(agent, _):
            return f"{agent} crashes"
        case Deliver(message):
            return _arrival(message)
    return type(action).__name__


def _arrival(message):
    g, target = message.generation, message.target
    match message.body:
        case Work(_, _, (element, sign)):
            value = element.value if isinstance(element.value, str) else "".join(element.value)
            return f"{target} {'+' if sign > 0 else '-'}{value} ({g})"
        case Bundle(_, output):
            value = output.value if isinstance(output.value, str) else "".join(output.value)
            return f"{target} has {value} ({g})"
        case CommitSnapshot(at):
            return f"snapshot {at[0]} ({g})"
    return ""
