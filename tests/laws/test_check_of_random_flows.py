"""A flow of pure functions is never accused, whatever it is made of."""

from hypothesis import given, settings
from support.flows.random_flows import recipes

import cutwater as cw


@settings(max_examples=20, deadline=None)
@given(recipes(max_steps=4))
def test_a_pure_flow_is_not_accused(recipe):
    report = cw.check(recipe.flow(), recipe.inputs, max_states=300, walks=2, crashes=1)
    assert report.holds, str(report)
