"""Checks of what users and this library define, against the properties of the papers.

A counterexample is a result, never an exception: it is shrunk, and the same seed finds it again.
"""

from cutwater.checking.operator_report import Counterexample, OperatorReport, PropertyResult
from cutwater.checking.operators import check_operator

__all__ = ["Counterexample", "OperatorReport", "PropertyResult", "check_operator"]
