"""Lazy imports: names of a package that are imported on first access.

A Spark worker needs little of what a package offers, and a run starts a dozen workers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["Missing", "lazily"]


Missing = Callable[[str, ModuleNotFoundError], Exception | None]
"""Given a name and the error of its import, returns what to raise instead; None: that error."""


def lazily(
    package: str, origins: Mapping[str, str], missing: Missing | None = None
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package; `origins` maps each name to its ``module:name`` in there.

    >>> get = lazily("collections", {"Rows": "abc:Sequence"})
    >>> get("Rows")
    <class 'collections.abc.Sequence'>
    """

    def get(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module, _, attribute = origins[name].partition(":")
        try:
            found = getattr(import_module(f"{package}.{module}"), attribute)
        except ModuleNotFoundError as error:
            message = missing(f"{package}.{name}", error) if missing else None
            if message is None:
                raise
            raise message from None
        setattr(sys.modules[package], name, found)
        return found

    return get
