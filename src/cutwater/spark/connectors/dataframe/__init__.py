"""A streaming DataFrame of the user's as a source: the settings, and what is wrong with them.

The engine turns its rows into events (`microbatch.dataframes`). Imports `base` and `exchange`.
Begin with `source`.
"""

__all__: list[str] = []
