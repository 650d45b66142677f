"""A run by the rules of barrier snapshots, crashes and all, shows what a run without them does."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.flows.random_flows import Recipe, recipes

import cutwater as cw
from cutwater.checking import explain
from cutwater.flow import steps


def sprinkled(recipe: Recipe, drawn: random.Random, count: int) -> dict[str, list[Any]]:
    """The inputs of a recipe with crashes anywhere, of everything or of one step."""
    inputs = {name: list(items) for name, items in recipe.inputs.items()}
    names = [s.name for s in recipe.flow().steps if not isinstance(s, (steps.Source, steps.Sink))]
    for _ in range(count):
        items = inputs[drawn.choice(sorted(inputs))]
        mark = cw.crash(drawn.choice(names)) if drawn.random() < 0.5 else cw.CRASH
        items.insert(drawn.randint(0, len(items)), mark)
    return inputs


def told_once(events: dict[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    """The events without watermarks that repeat the previous one."""
    return {
        sink: [
            [e for i, e in enumerate(epoch) if i == 0 or e != epoch[i - 1] or is_data(e)]
            for epoch in epochs
        ]
        for sink, epochs in events.items()
    }


def is_data(event: Any) -> bool:
    return isinstance(event, cw.Data)


@settings(max_examples=150, deadline=None)
@given(recipes(), st.integers(1, 3), st.integers(0, 4), st.randoms(use_true_random=False))
def test_crashes_cannot_be_seen_in_the_result(recipe, instances, count, drawn):
    flow = recipe.flow()
    plain = cw.simulate(flow, recipe.inputs)
    inputs = sprinkled(recipe, drawn, count)
    crashed = cw.simulate(flow, inputs, trace=True, instances=instances)
    # several instances may tell of a time again that is complete
    seen = (lambda e: e) if instances == 1 else told_once
    assert seen(crashed.events) == seen(plain.events)
    assert (crashed.epochs, crashed.late) == (plain.epochs, plain.late)
    assert sum(step.rule == "recover" for step in crashed.trace.steps) == count
    assert explain(crashed.trace).holds
