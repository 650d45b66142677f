"""The version of this installation: that of the tag that it was built from, or after."""

from importlib.metadata import version

__all__: list[str] = []

__version__ = version("cutwater")
