"""An explicit-state model checker; it knows nothing of flows.

A model has three methods (`model`); `search` visits every state once and `known` stores them,
`liveness` looks for fair executions that never reach a goal, `reduction` skips interleavings
that no observer can distinguish.
Imports the leaves only. Begin with `model`, then `search`.
"""

__all__: list[str] = []
