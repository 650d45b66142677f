"""Checks of what users and this library define, against the properties of the papers.

A counterexample is a result, never an exception: it is shrunk, and the same seed finds it again.
"""

from cutwater.checking.counterexamples import CrashCounterexample, find_counterexample
from cutwater.checking.explanation import Commit, Explanation, Generation, NotExplained, explain
from cutwater.checking.flow_report import Finding, FlowReport
from cutwater.checking.flows import check_flow
from cutwater.checking.model import Model, Property, always, eventually, sometimes
from cutwater.checking.operator_report import Counterexample, OperatorReport, PropertyResult
from cutwater.checking.operators import check_operator
from cutwater.checking.paths import Path, replay
from cutwater.checking.search import Checked, Discovery, Progress, check
from cutwater.checking.transparency import (
    Explainability,
    explainable,
    failure_transparency,
    is_explained,
    is_monotonically_explained,
    monotonicity,
    view,
    without,
)

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
    "NotExplained",
    "OperatorReport",
    "Path",
    "Progress",
    "Property",
    "PropertyResult",
    "always",
    "check",
    "check_flow",
    "check_operator",
    "eventually",
    "explain",
    "explainable",
    "failure_transparency",
    "find_counterexample",
    "is_explained",
    "is_monotonically_explained",
    "monotonicity",
    "replay",
    "sometimes",
    "view",
    "without",
]
