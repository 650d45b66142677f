"""Delivery (P2, sections III and IV): systems with inputs, outputs, a working set, and failures.

`system` has the four steps, `model` the explorable model and its reference, `published` and
`epochs` the systems of the paper and broken variants. Imports the leaves. Begin with `system`.
"""

__all__: list[str] = []
