"""The work of a segment in one bucket: a task, a vectorised task, an aggregate, or fused steps.

`segment_runner` is the general case, the others are quicker for what most flows are made of;
`late_filter` keeps late rows of DataFrames out. Imports `state`, `exchange` and `job`; no engine.
Begin with `segment_runner`.
"""

__all__: list[str] = []
