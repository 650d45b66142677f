"""Observers: the content of a sink, read from outside as any other reader of that system reads it.

Imports the systems' clients and `errors`, nothing of `spark`. Begin with `observer`.
"""

__all__: list[str] = []
