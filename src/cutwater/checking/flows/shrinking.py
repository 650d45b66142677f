"""Inputs of a flow made as small as they can be and still show what they are there to show."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from cutwater.checking.flows.samples import sample_value
from cutwater.checking.flows.scenario import Given
from cutwater.errors import CutwaterError
from cutwater.events import Data, Watermark
from cutwater.flow.steps import Source
from cutwater.semantics.inputs import BORDER

__all__ = ["shrink_inputs"]


def shrink_inputs(
    given: Given, shows: Callable[[Mapping[str, list[Any]]], bool]
) -> tuple[dict[str, list[Any]], frozenset[tuple[str, int]]]:
    """Inputs of which nothing can be left out, and which of their values did not matter.

    Inputs on which the flow fails show something else.
    """

    def is_still(smaller: Mapping[str, list[Any]]) -> bool:
        try:
            return shows(smaller)
        except CutwaterError:
            return False

    inputs = {name: list(items) for name, items in given.inputs.items()}
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
        if _is_free(given, inputs, name, index, is_still)
    )
    return inputs, free


def _is_free(
    given: Given,
    inputs: Mapping[str, list[Any]],
    name: str,
    index: int,
    is_still: Callable[[Mapping[str, list[Any]]], bool],
) -> bool:
    """Does it still show with other values in this place?"""
    item = inputs[name][index]
    if item is BORDER or isinstance(item, Watermark):
        return False
    source = next(s for s in given.flow.steps if isinstance(s, Source) and s.name == name)
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
