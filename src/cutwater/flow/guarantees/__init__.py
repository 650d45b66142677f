"""Guarantees of a flow, known before it runs: where order matters, and what holds end to end.

Imports the rest of `flow` and the leaves; knows no engine. Begin with `end_to_end`.
"""

__all__: list[str] = []
