"""The protocols of our own engines, as models that are explored alongside the code.

`microbatch` models `spark.recovery` and the ledgers, `realtime` the eleven rules of ticks, plans
and snapshots, `loop_log` a loop that feeds back through a log; each has a `_model` that injects
crashes and observes it. Imports the leaves. Begin with `microbatch`.
"""

__all__: list[str] = []
