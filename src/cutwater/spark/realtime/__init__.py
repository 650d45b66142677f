"""The real-time engine: a flow at ticks of about ten milliseconds, on Spark's real-time mode.

`protocol` has the rules, and where each of them lies; `drive` starts and supervises the query.
`reader_task` and `operator_task` are what runs inside of it. Imports the job, exchange, state,
connectors and the checkpoint, never the other engine. Begin with `protocol`.
"""

__all__: list[str] = []
