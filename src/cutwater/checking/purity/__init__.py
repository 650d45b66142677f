"""Does a function depend on, or change, more than its arguments? Never "pure": "none found".

`repeated_calls` repeats each call, `other_process` does so with another hash seed, and
`static_hints` reads which names the code uses. Imports the leaves, `flow` and `semantics.frozen`.
Begin with `repeated_calls`.
"""

__all__: list[str] = []
