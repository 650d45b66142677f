"""Failure transparency (P1, sections 5 and 6): can an observer see that a run had failures?

`explainability` checks models, `explanation` a recorded trace, which `replay` re-runs and
`causality` orders; `counterexamples` shrinks what was found. Imports `explorer`, `semantics` and
the leaves. Begin with `explainability`.
"""

__all__: list[str] = []
