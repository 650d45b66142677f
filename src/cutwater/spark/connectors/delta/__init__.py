"""A Delta table as a sink: an epoch is one transaction of the table. Needs the extra `delta`.

`sink` stages and commits, the `ledger` is the table's own log, `checks` compares schemas, `files`
writes, syncs and deletes files. Imports `base`, `exchange` and `storage`. Begin with `sink`.
"""

__all__: list[str] = []
