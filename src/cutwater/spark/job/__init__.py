"""What is sent to every Spark process: a flow bound to its sources and sinks.

`spec` is the job. What follows from it is derived when it is first used, and never sent:
`column_requirements` has the columns that segments need, `addresses` the numbers of buckets, sinks
and late filters, `loops` the loops that feed back through a log, `topology` the segments and
levels, `codecs` how events, watermarks and states are encoded. `transport` serialises a job,
`error_boundary` brings errors to the driver. Imports the contract of connectors, `exchange`,
`state`, no engine. Begin with `spec`.
"""

__all__: list[str] = []
