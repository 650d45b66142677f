"""Options that are declared elsewhere, as options of a command."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection
from functools import wraps
from typing import Annotated, Any

import typer

from cutwater.cli.pairs import Bindings
from cutwater.spark.options import Option, declared

__all__ = ["with_options"]


def with_options(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of some groups; it receives those that were given, by name."""
    options = {name: each for group in groups for name, each in declared(group).items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        kept = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [_parameter(name, tp, option) for name, (tp, option) in options.items()]

        @wraps(command)
        def called(**values: Any) -> None:
            missing = [name for name in options if values[name] is None]
            given = {name: value for name, value in values.items() if name not in missing}
            off = {name: False for name in given if name in options and _is_on(options[name][1])}
            command(**given | off)

        parameters = [*kept[:-1], *more, kept[-1]]  # --json stays the last one
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        return called

    return decorate


def _parameter(name: str, tp: Any, option: Option) -> inspect.Parameter:
    flag = f"--{'no-' if _is_on(option) else ''}{name.replace('_', '-')}"
    flags = [flag] if tp is bool else []
    made = typer.Option(
        *flags,
        help=option.help,
        min=option.least,
        show_default=False,
        rich_help_panel=option.group,
    )
    optional = _on_the_command_line(tp) | None
    annotation: Any = Annotated[optional, made]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _is_on(option: Option) -> bool:
    """Can it only be switched off, by ``--no-NAME``?"""
    return option.default is True


def _on_the_command_line(tp: Any) -> Any:
    """The type as which an option is read; what it may be is checked where it is used."""
    known = [each for each in (tp, *typing.get_args(tp)) if each in (bool, int, float)]
    if known:
        return known[0]
    return Bindings if typing.get_origin(tp) is Collection else str
