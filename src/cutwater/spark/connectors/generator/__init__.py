"""Records that are a function of their number, for demonstrations and benchmarks.

Begin with `source`.
"""

__all__: list[str] = []
