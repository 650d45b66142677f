"""A function of the user's as a sink: it is given the rows, inside the tasks.

It cannot be exactly-once by itself, and says so. Imports `base` and `storage`. Begin with `sink`.
"""

__all__: list[str] = []
