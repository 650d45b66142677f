"""``cutwater frontier``: up to which time each step is complete, and what holds it back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cutwater.cli.durations import duration
from cutwater.cli.screen import print_json, stdout, table
from cutwater.cli.targets import spark_package
from cutwater.errors import Problem, RefusedError
from cutwater.times import Product

if TYPE_CHECKING:
    from cutwater.spark import Frontiers, IteratingInput, Position, StepFrontier

__all__ = ["frontier"]


def frontier(
    checkpoint: Annotated[Path, typer.Argument(help="The checkpoint folder of a run")],
    step: Annotated[str | None, typer.Argument(help="Only this step")] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--time", help="Is this time complete? Written as in the input: 12, 2024-05-01"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON")] = False,
) -> None:
    """Show up to which time each step is complete, and which source holds it back.

    Works during a run and after it; writes nothing and starts no Spark.

    Example:  cutwater frontier state hourly --time 2024-05-01T12:05:00Z
    """
    found = spark_package().read_frontiers(checkpoint, asked=at)
    steps = _chosen(found, step)
    if as_json:
        data = {
            "flow": found.flow,
            "epoch": found.epoch,
            "unit": found.unit,
            "is_closed": found.is_closed,
        }
        loop = {"loop": found.loop, "iterating": found.iterating} if found.loop else {}
        print_json({**data, **loop, "steps": steps})
    else:
        _show(found, steps)


def _chosen(found: Frontiers, name: str | None) -> list[StepFrontier]:
    steps = [each for each in found.steps if name in (None, each.step)]
    if steps:
        return steps
    raise RefusedError(
        Problem(
            "unknown-step",
            f"flow '{found.flow}' has no step '{name}'",
            f"it has: {', '.join(each.step for each in found.steps)}",
        )
    )


def _show(found: Frontiers, steps: list[StepFrontier]) -> None:
    _print(f"{found.flow}: {_how_far(found)}")
    if found.is_closed:
        return
    if found.loop is not None:
        _print(
            f"'{found.loop.loop}' {found.loop.message}: its output is complete when no "
            "iteration is left"
        )
        for sentence in _iterating(found, found.loop.loop):
            _print(sentence)
    columns = ["step", "", "complete up to", "held by"]
    rows = [("  " * s.depth + s.step, s.verb, _time(s.completed), _held_by(s)) for s in steps]
    table(columns, rows)
    # Steps that only forward events wait for nothing; the steps downstream are held instead.
    for each in [s for s in steps if s.waits or len(steps) == 1 or s.asked is not None]:
        for sentence in _sentences(found, each):
            _print(sentence)


def _iterating(found: Frontiers, loop: str) -> Iterator[str]:
    """Which times are in which round of a loop, or the round of the requested time."""
    asked = next((each.asked for each in found.steps if each.step == loop), None)
    for each in found.iterating:
        where = f"input epoch {each.number} is in round {each.round}"
        if asked is None:
            yield f"{where}: {_times_of(each)}"
        elif each.may_have(asked):
            yield f"{asked} may still iterate in '{loop}': {where}, with {_times_of(each)}"
    if asked is not None and not any(each.may_have(asked) for each in found.iterating):
        was_complete = any(each.was_complete(asked) for each in found.iterating)
        late = ", unless it came late" if was_complete else ""
        yield f"nothing of {asked} iterates in '{loop}'{late}"


def _times_of(inputs: IteratingInput) -> str:
    if inputs.newest is None:
        return "unknown times"
    after = "" if inputs.after is None else f" after {inputs.after}"
    return f"times{after} up to {inputs.newest}"


def _how_far(found: Frontiers) -> str:
    if found.is_closed:
        return "the input has ended, and every time is complete"
    return f"no {found.unit} yet" if found.epoch < 0 else f"{found.unit} {found.epoch}"


def _held_by(step: StepFrontier) -> str:
    return "nothing" if step.is_complete else ", ".join(each.label for each in step.holders)


def _time(value: Any) -> str:
    if isinstance(value, Product):
        return f"{_time(value.first)} × {_time(value.second)}"
    return "nothing" if value is None else str(value)


def _sentences(found: Frontiers, step: StepFrontier) -> Iterator[str]:
    """What a step waits for, and for each holder what would release it."""
    if step.is_complete:
        yield f"{step.step}: {step.asked} is complete"
        return
    if any(holder.is_loop for holder in step.holders):
        return  # reported for the loop, once for all steps downstream
    wanted = step.asked if step.asked is not None else step.next_end
    waits = f"waits for {wanted}" if wanted is not None else "waits"
    for holder in step.holders:
        yield f"{step.step} {waits}: {'; '.join(_why(found, step, holder))}"


def _why(found: Frontiers, step: StepFrontier, holder: Position) -> Iterator[str]:
    times = found.topology.sources[holder.source]
    if not times.is_ours:
        yield f"{holder.title} is a DataFrame, and Spark keeps its watermark in a state"
    elif not times.has_watermark:
        yield f"{holder.title} has no watermark, so no time is complete before the input ends"
        yield "give it one in the flow: watermark=bounded_delay(...)"
    elif not times.kind:
        yield f"what {holder.title} has completed is not known: no step needs its times"
    elif holder.follows:
        yield f"{_reached(holder)}; it is idle and follows the other sources"
    else:
        yield _reached(holder)
        yield from _enough(found, step, holder)
        yield from _way_out(found, step, holder)


def _reached(holder: Position) -> str:
    if holder.last_input is None:
        return f"{holder.title} has had no record yet"
    ago = duration(time.time() - holder.last_input)
    return f"{holder.title} is at {holder.newest}, its last record came {ago} ago"


def _enough(found: Frontiers, step: StepFrontier, holder: Position) -> Iterator[str]:
    """Which record would complete what the step waits for."""
    times = found.topology.sources[holder.source]
    if holder.last_input is None or times.is_numbered:
        return
    delay = times.delay_as_time()
    if step.asked is not None:
        yield f"a record later than {step.asked + delay} would complete it{_with(delay)}"
    elif step.next_end is not None:
        yield f"a record of {step.next_end + delay} or later would complete it{_with(delay)}"
    else:
        yield "any later record moves it"


def _with(delay: Any) -> str:
    return f" (the delay is {delay})" if delay else ""


def _way_out(found: Frontiers, step: StepFrontier, holder: Position) -> Iterator[str]:
    """What releases a holder without input."""
    limit = found.topology.sources[holder.source].idle_after
    (clock,) = (names for names in step.clocks if holder.source in names)
    others = [p for p in found.positions if p.source in clock and p != holder]
    if not others:
        of_it = " of its clock" if len(step.clocks) > 1 else ""
        yield f"nothing else moves it: it is the only source{of_it}"
    elif found.unit == "tick":
        yield "nothing else moves it: in real time no source or partition follows another"
    elif all(other.follows for other in others):
        yield "nothing else moves it: the other sources are idle"
    elif limit is None:
        yield f"--idle-after {holder.source}=60 would release it after a minute without input"
    else:
        yield f"it is released after {duration(limit)} without input while others have some"


def _print(text: str) -> None:
    stdout.print(text, soft_wrap=True)
