"""Strings that name modules (registries, lazy imports, patches, pages) name ones that exist."""

import importlib
import re
from pathlib import Path

import pytest
from support.repo.package import MODULES, ROOT

LAYERS = {module.split(".")[1] for module in MODULES if "." in module}
NAME = re.compile(r"(?<![\w/.@-])cutwater(?:\.[A-Za-z_]\w*)+")
FOLDERS = ["src", "tests", "docs", "examples", "benchmarks", "scripts"]
FILES = ["README.md", "CONTRIBUTING.md", "pyproject.toml", "Makefile"]
PAGES = ["docs/architecture.md"]
SHORT = re.compile(rf"`((?:{'|'.join(sorted(LAYERS))})(?:\.\w+)*)(?:\(\))?`")


def named(text: str) -> set[str]:
    """Every dotted name of a text that begins with a layer: metrics and files are other things."""
    return {name for name in NAME.findall(text) if name.split(".")[1] in LAYERS}


def leads_somewhere(name: str) -> bool:
    """Is it a module, or something in one?"""
    parts = name.split(".")
    size = next(n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in MODULES)
    found = importlib.import_module(".".join(parts[:size]))
    for part in parts[size:]:
        if not hasattr(found, part):
            return part in getattr(found, "__annotations__", {})
        found = getattr(found, part)
    return True


def places() -> list[Path]:
    inside = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file()]
    texts = [
        p for p in inside if p.suffix in {".py", ".md", ".sh", ""} and "results" not in p.parts
    ]
    return [*texts, *(ROOT / name for name in FILES)]


def test_every_module_can_be_imported():
    for module in MODULES:
        importlib.import_module(module)


def test_every_name_leads_somewhere():
    gone = {}
    for path in places():
        if path == Path(__file__) or path.name == "test_layers.py":  # these name what is not there
            continue
        for name in named(path.read_text(errors="replace")):
            if not leads_somewhere(name):
                gone.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert gone == {}


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_modules_as_they_are(page):
    names = SHORT.findall((ROOT / page).read_text())
    assert len(names) > 20
    assert [name for name in names if not leads_somewhere(f"cutwater.{name}")] == []


@pytest.mark.parametrize(
    "text", ["cutwater.spark.sinks.folder", "'cutwater.flow:NoSuch'.x", "cutwater.errors.NoError"]
)
def test_a_name_that_leads_nowhere_is_found(text):
    text = text.replace(":", ".").replace("'", "")
    assert [name for name in named(text) if not leads_somewhere(name)] != []
