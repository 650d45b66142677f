"""The check of a user's flow: can a crash be seen, and what else could go wrong?

`check` is the entrance; a `scenario` is a flow with its input, `runs` explores it, `report` says
what was found. Imports the other rooms of `checking`, `semantics` and `flow`. Begin with `check`.
"""

__all__: list[str] = []
