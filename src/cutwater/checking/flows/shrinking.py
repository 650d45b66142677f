"""Shrinking: the smallest inputs of a flow that still demonstrate the same.

Not by hypothesis, which shrinks what it drew itself: here inputs of the user are shrunk too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from cutwater.checking.flows.samples import sample_value
from cutwater.checking.flows.scenario import Scenario
from cutwater.errors import CutwaterError
from cutwater.events import Data, Watermark
from cutwater.flow.steps import Source
from cutwater.semantics.inputs import BARRIER

__all__ = ["shrink_inputs"]


def shrink_inputs(
    scenario: Scenario, shows: Callable[[Mapping[str, list[Any]]], bool]
) -> tuple[dict[str, list[Any]], frozenset[tuple[str, int]]]:
    """Inputs from which nothing can be removed, and which of their values do not matter.

    Inputs on which the flow fails do not count as showing the same.
    """

    def is_still(smaller: Mapping[str, list[Any]]) -> bool:
        try:
            return shows(smaller)
        except CutwaterError:
            return False

    inputs = {name: list(items) for name, items in scenario.inputs.items()}
    for name in inputs:
        size = max(1, len(inputs[name]) // 2)
        while size:
            start = len(inputs[name]) - size
            while start > -size:
                kept = inputs[name][: max(start, 0)] + inputs[name][start + size :]
                if is_still({**inputs, name: kept}):
                    inputs[name] = kept
                start -= size
            size //= 2
    free = frozenset(
        (name, index)
        for name, items in inputs.items()
        for index in range(len(items))
        if _is_free(scenario, inputs, name, index, is_still)
    )
    return inputs, free


def _is_free(
    scenario: Scenario,
    inputs: Mapping[str, list[Any]],
    name: str,
    index: int,
    is_still: Callable[[Mapping[str, list[Any]]], bool],
) -> bool:
    """Do other values at this position still show the same?"""
    item = inputs[name][index]
    if item is BARRIER or isinstance(item, Watermark):
        return False
    source = next(s for s in scenario.flow.steps if isinstance(s, Source) and s.name == name)
    drawn = random.Random(0)
    for _ in range(3):
        try:
            value = sample_value(source.type, drawn)
        except CutwaterError:
            return False
        other = Data(item.time, value) if isinstance(item, Data) else value
        changed = [*inputs[name][:index], other, *inputs[name][index + 1 :]]
        if not is_still({**inputs, name: changed}):
            return False
    return True
