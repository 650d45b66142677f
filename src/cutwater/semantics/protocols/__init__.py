"""The protocols of our own engines, as models that are explored before and beside the code.

`microbatch` is what `spark.recovery` and the ledgers do, `realtime` the ten rules of ticks, plans
and snapshots; each has a `_model` that crashes it and observes it. Imports the leaves. Begin with
`microbatch`.
"""

__all__: list[str] = []
