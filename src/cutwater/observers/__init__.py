"""Observers: what a sink shows, read from outside as any reader of that system would.

Imports the systems' clients and `errors`, nothing of `spark`. Begin with `observer`.
"""

__all__: list[str] = []
