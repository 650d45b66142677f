"""A user's function as a sink: tasks call it with the rows.

It is at-least-once, and reports that. Imports `base` and `storage`. Begin with `sink`.
"""

__all__: list[str] = []
