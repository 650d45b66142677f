"""What of a flow travels to other processes, and what cannot.

Functions travel by value, with the variables that they name. Imports `flow` and the leaves. Begin
with `unpicklable`.
"""

__all__: list[str] = []
