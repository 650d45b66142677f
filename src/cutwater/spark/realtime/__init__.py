"""The real-time engine: a flow in ticks of about ten milliseconds, on Spark's real-time mode.

`protocol` lists the rules and where each is implemented; `drive` starts and supervises the query.
`reader_task` and `operator_task` run inside it. Imports the job, exchange, state, connectors and
the checkpoint, never the other engine. Begin with `protocol`.
"""

__all__: list[str] = []
