"""The records of the example `averages`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

from averages import Reading, Reset

__all__ = ["Reading", "Reset"]
