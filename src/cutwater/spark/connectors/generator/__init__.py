"""Synthetic records: a function of their number, for demonstrations and benchmarks.

Imports the contract of a source. Begin with `source`.
"""

__all__: list[str] = []
