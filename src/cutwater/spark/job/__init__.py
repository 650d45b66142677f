"""What travels to every Spark process: a plan bound to its sources and sinks.

`spec` is the job itself, with the topology of the plan; `column_requirements` works out what each
segment must be told with its events. Imports the contract of connectors, `exchange` and `state`,
and no engine. Begin with `spec`.
"""

__all__: list[str] = []
