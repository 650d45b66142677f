"""Which rules of a protocol a variant overrides.

What is proven of a protocol holds for the unmodified protocol only: a variant that overrides a
rule has to be searched exhaustively.
"""

from __future__ import annotations

__all__ = ["overridden"]


def overridden(instance: object, base: type) -> frozenset[str]:
    """The methods of `base` that a subclass or the object itself replaces.

    Values are parameters, not rules: overriding one is not counted.

    Examples
    --------
    >>> class Rules:
    ...     limit = 1
    ...     def start(self): ...
    ...     def stop(self): ...
    >>> class Variant(Rules):
    ...     limit = 2
    ...     def stop(self): ...
    >>> sorted(overridden(Variant(), Rules))
    ['stop']
    """
    own = getattr(instance, "__dict__", {})
    return frozenset(
        name
        for name, rule in vars(base).items()
        if _is_rule(name, rule) and (name in own or _found(type(instance), name) is not rule)
    )


def _is_rule(name: str, value: object) -> bool:
    is_method = callable(value) or isinstance(value, (staticmethod, classmethod, property))
    return is_method and not name.startswith("__")


def _found(cls: type, name: str) -> object:
    return next((vars(known)[name] for known in cls.__mro__ if name in vars(known)), None)
