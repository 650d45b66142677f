"""Sending a flow to other processes, and finding what cannot be sent.

Functions are pickled by value, with the variables they reference. Imports `flow` and the leaves.
Begin with `unpicklable`.
"""

__all__: list[str] = []
