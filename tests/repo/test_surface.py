"""What a module shows is what it means to show: `__all__` equals its visible names."""

import ast
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import ParamSpec, TypeVar, TypeVarTuple

import pytest
from support.repo.package import MODULES

PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]
TYPE_PARAMETERS = (ParamSpec, TypeVar, TypeVarTuple)


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """Every name that statements at the top of a module define, rather than import."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (
                    name.id
                    for target in targets
                    for name in ast.walk(target)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                )
            case ast.If() | ast.Try():
                yield from defined([*node.body, *node.orelse])
                yield from defined([s for h in getattr(node, "handlers", []) for s in h.body])


def visible(module: ModuleType, source: str) -> set[str]:
    """Return the public names of a module: in a package all but submodules, else the defined."""
    if hasattr(module, "__path__"):
        names = {name for name in vars(module) if f"{module.__name__}.{name}" not in MODULES}
    else:
        names = set(defined(ast.parse(source).body))
    return {
        name
        for name in names
        if name.isidentifier()
        and not name.startswith("_")
        and not isinstance(getattr(module, name), TYPE_PARAMETERS)
    }


def complaints(module: ModuleType, source: str) -> list[str]:
    """Every way in which `__all__` and the visible names differ."""
    if not hasattr(module, "__all__"):
        return [f"{module.__name__} has no __all__"]
    shown = set(module.__all__)
    return [
        *(f"{name} is in __all__ twice" for name in shown if module.__all__.count(name) > 1),
        *(f"{name} is in __all__ but is not there" for name in shown if not hasattr(module, name)),
        *(f"{name} is visible but not in __all__" for name in visible(module, source) - shown),
    ]


@pytest.mark.parametrize("name", PUBLIC)
def test_all_equals_the_visible_names(name):
    assert complaints(importlib.import_module(name), MODULES[name].read_text()) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(): pass", ["sample has no __all__"]),
        ("__all__ = ['f']", ["f is in __all__ but is not there"]),
        ("__all__ = []\ndef f(): pass", ["f is visible but not in __all__"]),
        ("__all__ = []\nif True:\n    x: int = 1", ["x is visible but not in __all__"]),
        ("__all__ = ['f', 'f']\ndef f(): pass", ["f is in __all__ twice"]),
        ("__all__ = ['f']\nfrom os import path\n_g = 1\ndef f(): pass", []),
        ("__all__ = []\n__path__ = []\nimport os", ["os is visible but not in __all__"]),
    ],
)
def test_a_difference_is_found(source, expected):
    module = ModuleType("sample")
    exec(source, vars(module))
    assert complaints(module, source) == expected
