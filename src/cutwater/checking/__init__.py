"""Checks of operators, flows and protocols against the properties of the papers.

A counterexample is a result, never an exception: it is shrunk, and the same seed finds it again.
Imports `semantics`, `flow`, `operators` and the leaves. Begin with `explorer`.
"""

from cutwater.checking.explorer.model import Model, Property, always, eventually, sometimes
from cutwater.checking.explorer.paths import Path, replay
from cutwater.checking.explorer.search import Checked, Discovery, SearchProgress, check_model
from cutwater.checking.flows.check import check_flow
from cutwater.checking.flows.reexecution import Reexecuted, reexecute
from cutwater.checking.flows.report import Finding, FlowReport
from cutwater.checking.operators.check import check_operator
from cutwater.checking.operators.report import Counterexample, OperatorReport, PropertyResult
from cutwater.checking.transparency.counterexamples import CrashCounterexample, find_counterexample
from cutwater.checking.transparency.explainability import (
    Explainability,
    explainable,
    failure_transparency,
    is_explained,
    is_monotonically_explained,
    view,
    without,
)
from cutwater.checking.transparency.explanation import (
    Commit,
    Explanation,
    Generation,
    NotExplained,
    explain,
)
from cutwater.checking.transparency.monotonicity import Monotonicity, monotonicity

__all__ = [
    "Checked",
    "Commit",
    "Counterexample",
    "CrashCounterexample",
    "Discovery",
    "Explainability",
    "Explanation",
    "Finding",
    "FlowReport",
    "Generation",
    "Model",
    "Monotonicity",
    "NotExplained",
    "OperatorReport",
    "Path",
    "Property",
    "PropertyResult",
    "Reexecuted",
    "SearchProgress",
    "always",
    "check_flow",
    "check_model",
    "check_operator",
    "eventually",
    "explain",
    "explainable",
    "failure_transparency",
    "find_counterexample",
    "is_explained",
    "is_monotonically_explained",
    "monotonicity",
    "reexecute",
    "replay",
    "sometimes",
    "view",
    "without",
]
