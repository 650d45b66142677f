"""The report of a flow's check: what was checked, how far, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cutwater.jsonable import plain
from cutwater.trace import Trace

__all__ = ["Finding", "FindingVerdict", "FlowReport"]

FindingVerdict = Literal["holds", "not refuted", "violated", "note"]


_MARKS = {"violated": "✗", "note": "·"}


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    """What was checked."""
    extent: str
    """How far it was checked."""
    verdict: FindingVerdict
    """``note``: neither right nor wrong, but worth knowing."""
    details: tuple[str, ...] = ()
    """The counterexample, or the notes; each may have several lines."""
    inputs: Mapping[str, Sequence[Any]] | None = None
    """The shrunk inputs of a counterexample."""
    any_value: frozenset[tuple[str, int]] = frozenset()
    """Source and index of inputs whose value did not matter."""
    trace: Trace | None = None
    """The run of a counterexample."""
    is_interrupted: bool = False
    """Did the user interrupt it?"""

    def inputs_text(self) -> list[str]:
        """The inputs, one per line, with values that did not matter marked."""
        lines = []
        for source, items in (self.inputs or {}).items():
            lines.append(f"{source}:")
            for index, item in enumerate(items):
                note = "  # or any other value" if (source, index) in self.any_value else ""
                lines.append(f"  {item!r}{note}")
        return lines


@dataclass(frozen=True)
class FlowReport:
    """All findings on a flow; a counterexample is a result, never an exception."""

    flow: str
    seed: int
    findings: tuple[Finding, ...]
    inputs: int = 0
    """The number of inputs that were tried."""
    events: int = 0
    """The number of events in all of them together."""

    @property
    def holds(self) -> bool:
        """Was no violation found?"""
        return not self.violations

    @property
    def is_interrupted(self) -> bool:
        """Did the user interrupt the check?"""
        return any(finding.is_interrupted for finding in self.findings)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings with a counterexample."""
        return tuple(finding for finding in self.findings if finding.verdict == "violated")

    def table(self) -> list[tuple[str, str, str]]:
        """What was checked, how far, and the verdict."""
        return [(f.check, f.extent, f.verdict) for f in self.findings]

    def lines(self) -> list[str]:
        """One line per finding, with a short form of what is wrong or worth knowing."""
        return [_line(finding) for finding in self.findings]

    def details(self) -> str:
        """The counterexamples and notes, for people."""
        lines: list[str] = []
        for finding in self.findings:
            if not finding.details:
                continue
            lines.append(f"{_MARKS.get(finding.verdict, ' ')} {finding.check}")
            shown = [*finding.details, *finding.inputs_text()]
            lines += [f"  {line}" for text in shown for line in text.splitlines()]
        return "\n".join(lines)

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
        return "\n".join([f"check of '{self.flow}'", *lines, *self.details().splitlines()])

    def as_data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "flow": self.flow,
            "holds": self.holds,
            "interrupted": self.is_interrupted,
            "seed": self.seed,
            "inputs": self.inputs,
            "events": self.events,
            "findings": [
                {
                    "check": finding.check,
                    "extent": finding.extent,
                    "verdict": finding.verdict,
                    "details": list(finding.details),
                    "inputs": plain(dict(finding.inputs)) if finding.inputs else None,
                }
                for finding in self.findings
            ],
        }


def _line(finding: Finding) -> str:
    words = finding.details[0].splitlines()[0].strip() if finding.details else ""
    if finding.is_interrupted:
        return f"  {finding.check}: {finding.verdict}: {finding.extent}"
    is_said = words and finding.verdict in _MARKS
    line = f"{_MARKS.get(finding.verdict, '✓')} {finding.check}: {finding.verdict}"
    return f"{line}: {words}" if is_said else line
