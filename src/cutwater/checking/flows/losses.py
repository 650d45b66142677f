"""What does not survive a snapshot or an exchange, in the runs of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cutwater.annotations import is_known
from cutwater.checking.flows.report import Finding, FindingVerdict
from cutwater.checking.purity.repeated_calls import Call, Calls, encoded_result
from cutwater.codec import codec_of
from cutwater.errors import FlowError, Problem
from cutwater.flow import steps as s
from cutwater.flow.builder import Flow
from cutwater.flow.fusing import plan
from cutwater.jsonable import plain, shown
from cutwater.round_trip import round_trip, shared_part

__all__ = ["Losses"]


class Losses:
    """Collects losses, the first of each step."""

    def __init__(self) -> None:
        self._noted: dict[str, Problem] = {}

    def __call__(self, problem: Problem) -> None:
        """Record a loss and continue."""
        self._noted.setdefault(problem.message.split(": ")[0], problem)

    def finding(self, flow: Flow, calls: Calls) -> Finding:
        """The finding over all runs of a flow, and over the recorded calls."""
        for problem in _sharing(calls):
            self(problem)
        unknown = _of_unknown_types(flow)
        hint = f"; not checked, for lack of a declared type: {', '.join(unknown)}"
        return self.noted(hint if unknown else "")

    def noted(self, hint: str = "") -> Finding:
        """The finding over what was recorded so far."""
        found = tuple(str(problem) for problem in self._noted.values())
        extent = f"at every barrier, exchange and sink{hint}"
        verdict: FindingVerdict = "violated" if found else "not refuted"
        return Finding("states and events survive encoding", extent, verdict, found)


def _of_unknown_types(flow: Flow) -> list[str]:
    """Inputs of stateful steps without a declared type, which an engine refuses."""
    segments = [segment for segment in plan(flow, numbered=int).segments if segment.is_stateful]
    edges = [edge for segment in segments for edge in segment.inputs if not is_known(edge.value)]
    return list(dict.fromkeys(f"what '{edge.sender.name}' sends" for edge in edges))


def _sharing(calls: Calls) -> Iterator[Problem]:
    """Tasks that rely on two parts of their state being one object; a snapshot restores two."""
    for (name, role), (step, f) in calls.functions.items():
        if isinstance(step, (s.Apply, s.OnComplete)):
            found = (_shared_state_problem(step, f, call) for call in calls.made[name, role])
            problem = next((problem for problem in found if problem), None)
            if problem:
                yield problem


def _shared_state_problem(
    step: s.Apply | s.OnComplete, f: Callable[..., Any], call: Call
) -> Problem | None:
    state, *others = call.copies()
    parts = shared_part(state)
    if parts is None:
        return None
    try:
        back, loss = round_trip(state, codec_of(step.state_type))
    except FlowError:  # reported elsewhere: it has no codec
        return None
    if loss is not None:
        return None
    one = encoded_result(f, (back, *others), gives="a state and values")
    if one == encoded_result(f, (state, *call.copies()[1:]), gives="a state and values"):
        return None
    return Problem(
        "lost-in-a-snapshot",
        f"{step.title} keeps a state in which '{parts[0]}' and '{parts[1]}' are one object, and "
        f"depends on that; a snapshot restores two: given {shown(plain(state))} as restored, "
        "it gives another result",
        "keep it once, or copy it where it is changed",
    )
