"""Drifting state (P2, section V): speculation with retractions, acker, barriers, recovery.

`elements` is the order and the grouping, `protocol` the rules of its agents, `model` everything
that may go wrong, `replay` the same for long inputs. Imports the leaves. Begin with `elements`.
"""

__all__: list[str] = []
