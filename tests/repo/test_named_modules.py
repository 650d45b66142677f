"""Strings that name modules (registries, lazy imports, patches, pages) name ones that exist."""

import importlib
import re
from pathlib import Path

import pytest
from support.repo.package import MODULES, ROOT

import cutwater

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


def named_below(page: str) -> list[str]:
    """The names below each heading that is a package: in a table those of the first column."""
    names, package = [], ""
    for line in page.splitlines():
        if line.startswith("## "):
            package = "".join(re.findall(r"^## `(cutwater[\w.]*)`$", line))
        elif package:
            text = line.split("|")[1] if line.startswith("|") else line
            names += [f"{package}.{name}" for name in re.findall(r"`([A-Za-z_][\w.]*)`", text)]
    return names


def test_the_overview_names_what_each_package_has():
    names = named_below((ROOT / "docs" / "api.md").read_text())
    assert len(names) > 100
    at_top = {f"{name.rpartition('.')[0]}.{each}" for name in names for each in cutwater.__all__}
    assert [name for name in names if not leads_somewhere(name) and name not in at_top] == []


@pytest.mark.parametrize("package", ["cutwater", "cutwater.checking", "cutwater.spark"])
def test_every_public_name_is_on_the_overview(package):
    page = (ROOT / "docs" / "api.md").read_text()
    public = importlib.import_module(package).__all__
    assert [name for name in public if f"`{name}`" not in page] == []


def test_a_name_below_another_package_is_found():
    page = "## `cutwater.report`\n`html.render`\n| `text.render_text` | `nothing` |\n## More\n`no`"
    names = named_below(page)
    assert names == ["cutwater.report.html.render", "cutwater.report.text.render_text"]
    assert [leads_somewhere(name) for name in names] == [False, True]


@pytest.mark.parametrize(
    "text", ["cutwater.spark.sinks.folder", "'cutwater.flow:NoSuch'.x", "cutwater.errors.NoError"]
)
def test_a_name_that_leads_nowhere_is_found(text):
    text = text.replace(":", ".").replace("'", "")
    assert [name for name in named(text) if not leads_somewhere(name)] != []
