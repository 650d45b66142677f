"""Names of a package that are imported when they are first asked for.

A worker of Spark needs little of what a package offers, and there are a dozen of them in a run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["Missing", "lazily"]


Missing = Callable[[str, ModuleNotFoundError], Exception | None]
"""A name, and why it cannot be imported: what to raise instead, if anything."""


def lazily(
    package: str, places: Mapping[str, str], missing: Missing | None = None
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: where each name lies, as ``module:name`` in the package.

    >>> get = lazily("collections", {"Rows": "abc:Sequence"})
    >>> get("Rows")
    <class 'collections.abc.Sequence'>
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module, _, attribute = places[name].partition(":")
        try:
            found = getattr(import_module(f"{package}.{module}"), attribute)
        except ModuleNotFoundError as error:
            said = missing(f"{package}.{name}", error) if missing else None
            if said is None:
                raise
            raise said from None
        setattr(sys.modules[package], name, found)
        return found

    return get
