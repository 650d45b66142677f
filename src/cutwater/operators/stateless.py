"""What stateless operators have in common."""

from __future__ import annotations

from typing import Any

__all__ = ["keeps_nothing", "same_values"]


def keeps_nothing(_state: Any) -> bool:
    """True: for operators that keep nothing."""
    return True


def same_values(_time: Any, value: Any) -> Any:
    """The output type of an operator that leaves values unchanged."""
    return value
