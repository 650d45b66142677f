"""The command line: its verbs in `commands`, and one handler for every error.

Imports everything, most of it when it is needed: a help page starts no Spark. Begin with `app`.
"""

from cutwater.cli.app import main

__all__ = ["main"]
