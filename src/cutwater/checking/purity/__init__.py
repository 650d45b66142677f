"""Does a function depend on, or change, more than its arguments? Never "pure": "none found".

`repeated_calls` makes each call again, `other_process` does so where text hashes otherwise, and
`static_hints` reads what the code names. Imports the leaves, `flow` and `semantics.frozen`.
Begin with `repeated_calls`.
"""

__all__: list[str] = []
