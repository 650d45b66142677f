"""One name, one thing: no public name is defined twice in a layer of the package.

The models in `semantics` are worlds of their own, so each of their modules counts for itself; so
does every command, which is named as what it runs.
"""

import ast
import importlib
from collections import defaultdict

import pytest
from support.repo.package import MODULES

WORLDS = "semantics"


def defined(source: str) -> set[str]:
    """The names that a module defines and does not keep to itself."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def room(module: str) -> str:
    """The part of the package in which a name means one thing."""
    parts = module.split(".")[1:]
    if parts[:1] == [WORLDS] or parts[:2] == ["cli", "commands"]:
        return module
    return parts[0] if parts else "cutwater"


def clashes(sources: dict[str, str]) -> list[str]:
    """Every name that two modules of a room define."""
    where = defaultdict(list)
    for module, source in sources.items():
        for name in defined(source):
            where[room(module), name].append(module)
    return [
        f"{name}: {', '.join(sorted(modules))}"
        for (_, name), modules in sorted(where.items())
        if len(modules) > 1
    ]


def test_no_public_name_stands_in_two_modules_for_two_things():
    assert clashes({module: path.read_text() for module, path in MODULES.items()}) == []


IN_TWO_LAYERS = ["main", "task"]
"""Names that two layers define for the same thing: where a process begins; a task of a flow, as the
decorator that declares it and as the operator that runs it."""


def across_layers(sources: dict[str, str]) -> list[str]:
    """Every name that modules of different layers define, the models and commands left out."""
    layers = defaultdict(set)
    for module, source in sources.items():
        if room(module) != module:
            for name in defined(source):
                layers[name].add(room(module))
    return sorted(name for name, found in layers.items() if len(found) > 1)


def test_no_further_name_stands_in_two_layers_for_two_things():
    sources = {module: path.read_text() for module, path in MODULES.items()}
    assert across_layers(sources) == IN_TWO_LAYERS


def test_a_name_in_two_layers_is_found():
    two = {"cutwater.layer.one": "class Plan: ...", "cutwater.other.two": "def Plan(): ..."}
    assert across_layers(two) == ["Plan"]
    assert across_layers({**two, "cutwater.other.two": "_Plan = 1"}) == []


def test_a_name_that_packages_export_is_the_same_thing_in_all_of_them():
    exported = defaultdict(dict)
    for module, path in MODULES.items():
        if path.name == "__init__.py" and not module.startswith(f"cutwater.{WORLDS}"):
            package = importlib.import_module(module)
            for name in package.__all__:
                exported[name][id(getattr(package, name))] = module
    assert {name: list(of.values()) for name, of in exported.items() if len(of) > 1} == {}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (
            "class Entry: pass",
            "def Entry(): pass",
            ["Entry: cutwater.layer.one, cutwater.layer.two"],
        ),
        ("LIMIT = 1", "LIMIT: int = 1", ["LIMIT: cutwater.layer.one, cutwater.layer.two"]),
        ("_own = 1", "_own = 1", []),
        ("from x import Entry", "class Entry: pass", []),
    ],
)
def test_a_name_with_two_meanings_is_found(one, other, expected):
    assert clashes({"cutwater.layer.one": one, "cutwater.layer.two": other}) == expected
