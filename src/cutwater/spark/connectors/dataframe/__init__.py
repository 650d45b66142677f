"""A user's streaming DataFrame as a source: its settings, and their checks.

The engine turns its rows into events (`microbatch.dataframes`). Imports `base` and `exchange`.
Begin with `source`.
"""

__all__: list[str] = []
