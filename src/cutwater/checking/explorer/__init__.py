"""An explicit-state model checker; it knows nothing of flows.

A model has three methods (`model`); `search` visits every state once and `known` keeps them,
`liveness` looks for fair executions that never get there, `reduction` leaves out interleavings
nobody can tell apart.
Imports the leaves only. Begin with `model`, then `search`.
"""

__all__: list[str] = []
