"""Delivery guarantees (P2, section III): which one a system gives, and what its outputs wait for.

`classify` compares a system with its reference; `determinism` holds Definitions 9 and 10,
`recoverability` Theorem 1, `release` what an output waits for, `table` the table in the docs. For
flows, `order_sensitivity` searches for events whose order matters, `claims` tests tasks' claims.
Imports the rest of `checking`, `semantics`, `flow` and the leaves. Begin with `classify`.
"""

__all__: list[str] = []
