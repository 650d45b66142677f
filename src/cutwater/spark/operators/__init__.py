"""The work of a segment in one bucket: a task, a vectorised task, an aggregate, or fused steps.

`segment_runner` is the general case, the others are faster for the steps that most flows have;
`late_filter` keeps late rows of DataFrames out. Imports `state`, `exchange` and `job`; no engine.
Begin with `segment_runner`.
"""

__all__: list[str] = []
