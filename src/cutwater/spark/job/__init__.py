"""What is sent to every Spark process: a flow bound to its sources and sinks.

`spec` is the job, and `transport` serialises it. What follows from it is derived where it is used:
`topology`, `addresses` of buckets and sinks, `loops` by a log, `column_requirements`, `codecs`.
Imports the contract of connectors, `exchange`, `state`, no engine. Begin with `spec`.
"""

__all__: list[str] = []
