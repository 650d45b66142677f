"""The state of a bucket of keys: what lies in Spark's state store, and what a worker caches of it.

A `bucket` reads and writes a `changelog`; a `cache` keeps what was read between epochs; the
`working_set` is what an epoch works on, a `map` of states by key or a `table` of columns. Imports
the leaves and `storage`; no connector and no engine. Begin with `bucket`.
"""

__all__: list[str] = []
