"""How snapshots are taken and how tasks restore them, where P1 leaves it open.

`cuts` takes a snapshot in three ways (P1, Fig. 3) and restores it; `one_by_one` recovers tasks
one after another while messages of the old generation are still in flight (P1, section 4.3).
Both are models for the checker. Imports the leaves. Begin with `cuts`.
"""

from cutwater.semantics.recovering.cuts import (
    Barriers,
    ChandyLamport,
    CutModel,
    Snapshotting,
    Uncoordinated,
)
from cutwater.semantics.recovering.one_by_one import RecoveryCase, RecoveryModel, RecoveryRules

__all__ = [
    "Barriers",
    "ChandyLamport",
    "CutModel",
    "RecoveryCase",
    "RecoveryModel",
    "RecoveryRules",
    "Snapshotting",
    "Uncoordinated",
]
