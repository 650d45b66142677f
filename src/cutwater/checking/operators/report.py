"""The report of an operator's check: one result per property, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutwater.events import Event

__all__ = ["Counterexample", "OperatorReport", "PropertyResult"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest input stream found on which a property does not hold."""

    inputs: tuple[Event, ...]
    """The stream, shrunk: no event can be removed or made simpler."""
    outputs: tuple[Event, ...]
    """The operator's outputs on it."""
    reason: str
    """What is wrong with the outputs, in one sentence."""
    position: int | None = None
    """Index of the wrong output; None if the outputs are wrong as a whole."""
    any_value: frozenset[int] = frozenset()
    """Indexes of the inputs whose value did not matter."""

    def __str__(self) -> str:
        lines = [self.reason]
        for index, event in enumerate(self.inputs):
            note = "  # or any other value" if index in self.any_value else ""
            lines.append(f"  in   {event}{note}")
        for index, event in enumerate(self.outputs):
            note = "  # here" if index == self.position else ""
            lines.append(f"  out  {event}{note}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PropertyResult:
    """Whether one property of an operator holds on all streams that were tried."""

    name: str
    inputs_tried: int
    """The number of streams until the first counterexample, or in total."""
    counterexample: Counterexample | None = None
    not_checked: str = ""
    """Why the property was not checked; empty if it was."""

    @property
    def holds(self) -> bool:
        """Was it checked, and was no counterexample found?"""
        return not self.counterexample and not self.not_checked

    @property
    def fails(self) -> bool:
        """Was a counterexample found?"""
        return self.counterexample is not None

    def __str__(self) -> str:
        if self.counterexample:
            return f"{self.name} does not hold: {self.counterexample}"
        if self.not_checked:
            return f"{self.name} was not checked: {self.not_checked}"
        return f"{self.name} holds on {self.inputs_tried} streams"


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """The results of `check_operator`; true if no property has a counterexample."""

    results: tuple[PropertyResult, ...]
    seed: int
    """The same seed finds the same counterexamples."""

    def __bool__(self) -> bool:
        return not any(result.fails for result in self.results)

    def __iter__(self) -> Iterator[PropertyResult]:
        return iter(self.results)

    def __getitem__(self, name: str) -> PropertyResult:
        """The result of a property by its name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    @property
    def failures(self) -> dict[str, Counterexample]:
        """The counterexample of each property that does not hold."""
        return {
            result.name: result.counterexample for result in self.results if result.counterexample
        }

    def __str__(self) -> str:
        return "\n".join(str(result) for result in self.results)
