"""Options of the form NAME=VALUE."""

from __future__ import annotations

from cutwater.errors import Problem, RefusedError

__all__ = ["Bindings", "pairs"]

Bindings = list[str]


def pairs(
    option: str, values: Bindings, binds: str = "name to a folder", form: str = "NAME=FOLDER"
) -> dict[str, str]:
    """What each name is bound to; raises `RunError` with everything that is wrong."""
    problems = []
    pairs: dict[str, str] = {}
    for value in values:
        name, equals, folder = value.partition("=")
        if not (name and equals and folder):
            problems.append(
                Problem(
                    "not-a-binding",
                    f"{option} is {value!r}; it binds a {binds}",
                    f"{option} {form}",
                )
            )
        elif name in pairs:
            problems.append(
                Problem("bound-twice", f"{option} binds '{name}' twice", "remove one of the two")
            )
        pairs[name] = folder
    if problems:
        raise RefusedError(problems)
    return pairs
