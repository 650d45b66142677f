"""What sources read and sinks write: one package for each system, all with the same inside.

`base` is the contract of a source and of a sink; `registry` knows them by the names that
configurations use. A connector has `settings`, `source`, `sink`, `ledger`, `checks` and `errors`
where it needs them. Connectors know no engine and not each other. Begin with `base`.
"""

__all__: list[str] = []
