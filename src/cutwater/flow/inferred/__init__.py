"""Type inference for functions, and for the steps that are P4's operators or aggregations.

`stream_type` is what inference knows of a stream. `functions` compares a function's parameters with
what its stream carries; `operator_steps` and `aggregations` infer what such a step emits and keeps;
`problems` are those that several kinds of steps have. Imports the steps. Begin with `functions`.
"""

__all__: list[str] = []
