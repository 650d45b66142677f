"""Validation of a flow: reports every problem at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutwater.annotations import signature_of, typename
from cutwater.errors import FlowError, Problem
from cutwater.flow import steps as s
from cutwater.flow.inference import infer
from cutwater.flow.inferred.stream_type import StreamType
from cutwater.flow.tasks import Task, are_outputs, gives_outputs
from cutwater.flow.timely.bodies import with_bodies
from cutwater.flow.timely.cutting import plan_problems
from cutwater.flow.timely.own_names import own_prefix
from cutwater.flow.where import of_function

__all__ = ["checked", "problems_of"]


def problems_of(
    steps: Sequence[s.Step], *, flow: object = "a flow", numbered: Any = Any
) -> list[Problem]:
    """All problems of a flow with these steps, including its name."""
    found = infer(steps, numbered=numbered)[1]
    bodies = [step.body for step in with_bodies(steps) if isinstance(step, s.Iterate)]
    inputs = [problem for body in [steps, *bodies] for problem in _inputs(body)]
    every = [step for step in with_bodies(steps) if not isinstance(step, s.Enter)]
    problems = [
        *_flow_name(flow),
        *_names(every),
        *inputs,
        *_ends(steps),
        *found,
        *_results(every),
    ]
    return problems or list(plan_problems(steps))


def checked(
    steps: Sequence[s.Step], *, flow: object = "a flow", numbered: Any = Any
) -> list[StreamType]:
    """The type of each step's output; raises `FlowError` if the flow has problems."""
    problems = problems_of(steps, flow=flow, numbered=numbered)
    if problems:
        raise FlowError(problems)
    return infer(steps, numbered=numbered)[0]


def _results(steps: Sequence[s.Step]) -> list[Problem]:
    """Functions annotated to return something that their step cannot use."""
    return [*_without_outputs(steps), *_not_several(steps)]


def _not_several(steps: Sequence[s.Step]) -> list[Problem]:
    return [
        Problem(
            "not-several-values",
            f"{step.title} has a function that is annotated to return "
            f"{typename(signature_of(step.f).result)}; flat_map emits each element of a list",
            "return a list, or use map for one value each",
        )
        for step in steps
        if isinstance(step, s.FlatMap)
        and signature_of(step.f).result is not str
        and not are_outputs(signature_of(step.f).result)
    ]


def _without_outputs(steps: Sequence[s.Step]) -> list[Problem]:
    return [
        Problem(
            "no-state-and-outputs",
            f"{step.title} has a function ({of_function(f)}) that is annotated to return "
            f"{typename(signature_of(f).result)}; it returns a pair of the new state and a list of "
            "outputs",
            "annotate it as  -> tuple[State, list[Output]]  and return state, []  where there is "
            "nothing to emit",
        )
        for step in steps
        for f in _functions_with_outputs(step)
        if not gives_outputs(signature_of(f).result)
    ]


def _functions_with_outputs(step: s.Step) -> list[Any]:
    if isinstance(step, s.Apply):
        is_row_by_row = type(step.task) is Task
        return [step.task.f] if is_row_by_row else []
    return [step.receive, step.complete] if isinstance(step, s.OnComplete) else []


_LONGEST_NAME = 200
"""In bytes of UTF-8: file systems allow 255, and some names get a prefix or suffix."""


def _why_no_name(name: str) -> str | None:
    """Why a name cannot name a folder, a topic or a row of a ledger; None if it can."""
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > _LONGEST_NAME:
        return f"is {size} bytes long; at most {_LONGEST_NAME} are allowed"
    if name[0] == ".":
        return "begins with a dot"
    if name != name.strip():
        return "begins or ends with a space"
    bad = next((char for char in name if char in "/\\" or not char.isprintable()), None)
    return None if bad is None else f"has the character {bad!r}"


def _flow_name(name: object) -> list[Problem]:
    if not isinstance(name, str) or not name:
        hint = "name it by a non-empty string"
        return [Problem("no-name", f"the flow {name!r} has no name", hint)]
    why = _why_no_name(name)
    return [_bad_name(f"flow {name[:_LONGEST_NAME]!r}", why)] if why else []


def _bad_name(title: str, why: str) -> Problem:
    return Problem(
        "bad-name",
        f"the name of {title} {why}; names become folders of the checkpoint and entries of ledgers",
        "use letters, digits, '-', '_' and spaces between them",
    )


def _own_name(title: str, prefix: str) -> Problem:
    return Problem(
        "bad-name",
        f"the name of {title} begins with '{prefix}', which names sinks and logs that a "
        "run adds to a flow",
        "choose another name; a run keeps bad records and late events in the checkpoint anyway",
    )


def _names(steps: Sequence[s.Step]) -> list[Problem]:
    first: dict[tuple[str, str], s.Step] = {}
    problems = []
    for step in steps:
        sort = step.verb if isinstance(step, (s.Source, s.Sink)) else "step"
        if not isinstance(step.name, str) or not step.name:
            problems.append(
                Problem("no-name", f"{step.title} has no name", "name it by a non-empty string")
            )
        elif why := _why_no_name(step.name):
            problems.append(_bad_name(f"{step.verb} {step.name!r} ({step.where})", why))
        elif (prefix := own_prefix(step.name)) and not isinstance(step, (s.FromLog, s.ToLog)):
            problems.append(_own_name(f"{step.verb} '{step.name}' ({step.where})", prefix))
        earlier = first.setdefault((sort, step.name), step)
        if earlier is not step:
            problems.append(
                Problem(
                    "duplicate-step",
                    f"{step.title} has the name of a {sort} that is already defined at "
                    f"{earlier.where}; steps name their state in the checkpoint, so a name is "
                    "used once",
                    f"rename one of them, for example name='{step.name}_2'",
                )
            )
    return problems


def _inputs(steps: Sequence[s.Step]) -> list[Problem]:
    problems = []
    for number, step in enumerate(steps):
        if isinstance(step, s.Sink) and any(i < 0 for i in step.inputs):
            problems.append(
                Problem(
                    "unreached-sink",
                    f"{step.title} is reached by no stream of this flow",
                    "pass it a stream that was made from this flow: flow.sink('name', stream)",
                )
            )
        elif any(i < 0 or i >= len(steps) for i in step.inputs):
            is_body = isinstance(steps[0], s.Enter)
            problems.append(
                Problem(
                    "foreign-stream",
                    f"{step.title} reads something that is not a stream of this "
                    + ("loop" if is_body else "flow"),
                    "merge it with the stream of the loop, before the loop"
                    if is_body
                    else "pass a stream that was made from this flow",
                )
            )
        elif any(i >= number for i in step.inputs):
            problems.append(
                Problem(
                    "cycle",
                    f"{step.title} reads its own output, directly or through "
                    f"{steps[max(step.inputs)].title}; a cycle needs a loop",
                    "use iterate for a loop, or read a step that is defined earlier",
                )
            )
    return problems


def _ends(steps: Sequence[s.Step]) -> list[Problem]:
    problems = []
    if not any(isinstance(step, s.Sink) for step in steps):
        problems.append(
            Problem(
                "no-sink",
                "the flow has no sink; its results would be discarded",
                "end it with flow.sink('name', stream)",
            )
        )
    if not any(isinstance(step, s.Source) for step in steps):
        problems.append(
            Problem(
                "no-source",
                "the flow has no source; it would never receive an event",
                "begin it with flow.source('name', type)",
            )
        )
    used = {i for step in steps for i in step.inputs}
    for number, step in enumerate(steps):
        if number not in used and not isinstance(step, s.Sink):
            problems.append(
                Problem(
                    "unused-step",
                    f"the output of {step.title} is read by nothing",
                    "connect it to a sink, or remove it",
                )
            )
    return problems
