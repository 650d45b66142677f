"""The state of a bucket of keys: in Spark's state store, and cached in a worker.

A `bucket` reads and writes a `changelog`; a `cache` keeps states in memory between epochs; the
`working_set` holds what an epoch touches. A `map` has states by key, a `table` has columns. Imports
the leaves and `storage`; no connector and no engine. Begin with `bucket`.
"""

__all__: list[str] = []
