"""The verbs of the command line, one file each.

Each imports what it needs when it is called: a help page starts no Spark. What they share (the
screen, targets, durations) is beside this folder. Begin with `simulate`.
"""

__all__: list[str] = []
