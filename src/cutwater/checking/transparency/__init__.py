"""Failure transparency (P1, sections 5 and 6): can a run with failures be told from one without?

`explainability` asks it of models, `explanation` of a recorded trace, which `replay` reads again
and `causality` orders; `counterexamples` makes what was found small. Imports `explorer`,
`semantics` and the leaves. Begin with `explainability`.
"""

__all__: list[str] = []
