"""Drifting state (P2, section V): speculation with retractions, acker, barriers, recovery.

`elements` has the order and the grouping, `protocol` the rules of the agents, `model` all the
faults, `replay` the same for long inputs. Imports the leaves. Begin with `elements`.
"""

__all__: list[str] = []
