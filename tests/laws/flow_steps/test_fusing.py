"""A fused flow and the unfused one produce the same: every event, at every sink, in every epoch."""

import pytest
from hypothesis import given, settings
from support.flows.random_flows import recipes

import cutwater as cw
from cutwater.flow import fusing, plan
from cutwater.flow.steps import AggregateAll


@given(recipes())
@settings(max_examples=250)
def test_fused_equals_unfused(recipe):
    flow = recipe.flow()
    fused = cw.simulate(flow, recipe.inputs, epoch_size=recipe.epoch_size, fuse=True)
    unfused = cw.simulate(flow, recipe.inputs, epoch_size=recipe.epoch_size, fuse=False)
    assert fused.events == unfused.events
    assert (fused.late, fused.epochs) == (unfused.late, unfused.epochs)


@given(recipes())
def test_aggregates_over_columns_need_no_further_exchange(recipe):
    """As many levels of stateful segments, and as many of these, as if they were not alone."""
    flow = recipe.flow()
    alone = plan(flow)
    taking_batches = fusing._taking_batches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fusing,
            "_taking_batches",
            lambda steps, types, behind: {
                number
                for number in taking_batches(steps, types, behind)
                if not isinstance(steps[number], AggregateAll)
            },
        )
        together = plan(flow)
    assert exchanges(alone) == exchanges(together)


def exchanges(planned):
    """How many levels there are, and how many segments that keep states."""
    depth = {}
    for segment in planned.segments:
        below = max((depth[edge.segment] for edge in segment.inputs), default=0)
        depth[segment.number] = below + segment.is_stateful
    return max(depth.values()), sum(segment.is_stateful for segment in planned.segments)
