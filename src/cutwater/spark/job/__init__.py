"""What is sent to every Spark process: a flow bound to its sources and sinks.

`spec` is the job; `topology` has its segments, levels and addresses, `codecs` how events,
watermarks and states are encoded; `transport` serialises it, `error_boundary` brings errors to the
driver. Imports the contract of connectors, `exchange`, `state`, no engine. Begin with `spec`.
"""

__all__: list[str] = []
