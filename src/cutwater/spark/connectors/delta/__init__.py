"""A Delta table as a sink: an epoch is one transaction of the table.

`sink` stages and commits, the `ledger` is the table's own log, `checks` compares schemas and
`files` deletes what nobody refers to. Needs the extra `delta`. Begin with `sink`.
"""

__all__: list[str] = []
