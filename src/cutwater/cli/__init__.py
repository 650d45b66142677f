"""The command line, one file per verb."""

from cutwater.cli.app import main

__all__ = ["main"]
