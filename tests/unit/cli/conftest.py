import textwrap

import pytest
from support.spark.cli_server import cli_server, run_command

FLOW = """
from dataclasses import dataclass
import cutwater as cw

@dataclass(frozen=True)
class Item:
    name: str
    size: int

@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + item.size, [Item(item.name, state + item.size)]

flow = cw.Flow("totals")
flow.sink("sums", flow.source("items", Item).key_by("name").apply(total))
number = 3
inputs = {"items": [Item("a", 1), cw.BARRIER, Item("a", 2)]}
"""


@pytest.fixture
def cli():
    """Run a command in this process."""
    return lambda *arguments: run_command([str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def server():
    """Run commands in one other process, with one JVM for all of them."""
    with cli_server() as run:
        yield run


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file of a flow; commands run beside it."""
    monkeypatch.chdir(tmp_path)

    def write(text=FLOW, name="job.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture(autouse=True)
def modules_and_path(monkeypatch):
    """What a command imports is gone after its test."""
    import sys

    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        if not name.startswith(("cutwater", "pyspark", "pandas", "numpy", "pyarrow", "py4j")):
            file = getattr(sys.modules[name], "__file__", None) or ""
            if "site-packages" not in file and file.endswith("job.py"):
                del sys.modules[name]
