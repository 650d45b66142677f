"""What sources read and sinks write: one package for each system, all with the same inside.

`base` is the contract of a source and of a sink; `registry` knows them by name. A connector has
`settings`, `source`, `sink`, `ledger`, `checks` and `errors` where it needs them. Each imports
`base`, `exchange` and `storage`: no engine, and no other connector. Begin with `base`.
"""

__all__: list[str] = []
