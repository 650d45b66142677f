"""A fused flow and the unfused one produce the same: every event, at every sink, in every epoch."""

from hypothesis import given, settings
from random_flows import recipes

import cutwater as cw


@given(recipes())
@settings(max_examples=250)
def test_fused_equals_unfused(recipe):
    flow = recipe.flow()
    fused = cw.simulate(flow, recipe.inputs, epoch_size=recipe.epoch_size, fuse=True)
    unfused = cw.simulate(flow, recipe.inputs, epoch_size=recipe.epoch_size, fuse=False)
    assert fused.events == unfused.events
    assert (fused.late, fused.epochs) == (unfused.late, unfused.epochs)
