"""The check of a user's flow: can an observer see a crash, and what else could go wrong?

`check` is the entry point; a `scenario` is a flow with its input, `runs` explores it, `report`
holds the findings. Imports the rest of `checking`, `semantics` and `flow`. Begin with `check`.
"""

__all__: list[str] = []
