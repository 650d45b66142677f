"""Every example in a docstring, in README.md and in docs/ runs and prints what it shows."""

import doctest
import importlib
import shutil
import sys
from types import ModuleType

import pytest
from support.repo.documents import blocks, check_document, commands
from support.repo.package import MODULES, ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def needs_spark(text: str) -> list[pytest.MarkDecorator]:
    """Return the mark of examples that start a JVM."""
    starts_jvm = "SparkSession" in text or "cutwater run" in text or "cutwater.spark" in text
    return [pytest.mark.spark] if starts_jvm else []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.spark if name.startswith("cutwater.spark") else ())
        for name, path in MODULES.items()
        if ">>> " in path.read_text()
    ],
)
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
    assert result.attempted > 0


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Check a document as if its reader stood at the root of the repository."""
    if (ROOT / "examples").is_dir():
        ignore = shutil.ignore_patterns("__pycache__", ".cutwater")
        shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignore)
    monkeypatch.chdir(tmp_path)
    module = ModuleType("document")
    monkeypatch.setitem(sys.modules, "document", module)
    return lambda path: check_document(path, module, tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=needs_spark(path.read_text()), id=str(path.relative_to(ROOT)))
        for path in DOCUMENTS
    ],
)
def test_documents(check, path):
    assert "\n".join(check(path)) == ""


GOOD = """
```python
from dataclasses import dataclass

@dataclass
class Reading:
    value: int
```

```python
>>> Reading(3)
Reading(value=3)
```

<!-- not run: it would fail -->
```python
raise ValueError
```

```console
$ python -c \\
    'print(1); print("two"); print(3)'
1
...
3
$ rm -r everything
```
"""


def test_a_good_document_passes(check, tmp_path):
    (tmp_path / "good.md").write_text(GOOD)
    assert check(tmp_path / "good.md") == []


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", ">>> 1 + 1\n3"),
        ("python", ">>> 1 / 0"),
        ("console", "$ python -c 'print(1)'\n2"),
        ("console", "$ python -c 'print(1)'"),
        ("console", "$ python -c 'pass'\n1"),
        ("console", "$ python -c 'raise ValueError'"),
    ],
)
def test_a_wrong_example_is_found(check, tmp_path, language, code):
    (tmp_path / "bad.md").write_text(f"```{language}\n{code}\n```\n")
    assert len(check(tmp_path / "bad.md")) == 1


def test_a_python_block_that_raises_names_its_line(check, tmp_path):
    (tmp_path / "bad.md").write_text("text\n\n```python\nx = 1\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as raised:
        check(tmp_path / "bad.md")
    assert (raised.traceback[-1].path.name, raised.traceback[-1].lineno + 1) == ("bad.md", 5)


def test_what_is_not_run_needs_a_reason():
    assert len(list(blocks("<!-- not run -->\n```python\n1 / 0\n```\n"))) == 1
    assert not list(blocks("<!-- not run: too long -->\n```python\n1 / 0\n```\n"))


def test_commands_are_read_with_their_output():
    read = list(commands("$ cutwater graph a:b\nx\n\ny\n$ cutwater --version\n"))
    assert read == [("cutwater graph a:b", "x\n\ny\n"), ("cutwater --version", "")]
