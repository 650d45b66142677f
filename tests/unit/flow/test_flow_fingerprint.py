"""The fingerprint of a flow: what the user's own modules say counts, their layout does not."""

import importlib
import subprocess
import sys
import sysconfig
from types import ModuleType

import pytest

import cutwater as cw
from cutwater.flow import user_modules
from cutwater.flow.fingerprint import flow_fingerprint

JOB = '''
"""A flow, as users write them."""

from dataclasses import dataclass

import numpy
import cutwater as cw
from shop import rates
from shop.limits import LIMIT

FACTOR = 2

@dataclass(frozen=True)
class Order:
    amount: int
    currency: str = "EUR"

    def total(self) -> int:
        return self.amount + 1

def scaled(amount: int) -> int:
    """Scale."""
    return amount * FACTOR

def priced(order: Order) -> int:
    from shop.late import bonus

    return scaled(order.total()) + rates.rate(order.currency) + LIMIT + bonus()

def build() -> cw.Flow:
    flow = cw.Flow("orders")
    flow.sink("out", flow.source("orders", Order).map(priced, name="priced"))
    return flow
'''

PROJECT = {
    "job.py": JOB,
    "shop/__init__.py": "",
    "shop/rates.py": "from .tables import TABLE\n\ndef rate(name):\n    return TABLE[name]\n",
    "shop/tables.py": 'TABLE = {"EUR": 1, "USD": 2}\n',
    "shop/limits.py": "LIMIT = 10\n",
    "shop/late.py": "def bonus():\n    return 5\n",
}

OTHER_MEANING = {
    "helper function": ("job.py", "amount * FACTOR", "amount * FACTOR + 1"),
    "module constant": ("job.py", "FACTOR = 2", "FACTOR = 3"),
    "method": ("job.py", "self.amount + 1", "self.amount + 2"),
    "default of a record": ("job.py", '"EUR"', '"USD"'),
    "function of another module": ("shop/rates.py", "TABLE[name]", "TABLE[name] + 1"),
    "constant of another module": ("shop/limits.py", "10", "11"),
    "module that another module imports": ("shop/tables.py", '"USD": 2', '"USD": 3'),
    "module that is imported when it is needed": ("shop/late.py", "5", "6"),
    "package that its modules are in": ("shop/__init__.py", "", "import shop.tables\n"),
    "default of an argument": ("job.py", "(amount: int)", "(amount: int = 0)"),
}

SAME_MEANING = {
    "comment": ("job.py", "FACTOR = 2", "FACTOR = 2  # twice"),
    "formatting": ("job.py", "FACTOR = 2\n", "\n\nFACTOR   =  (2)\n\n"),
    "docstring of a function": ("job.py", '"""Scale."""', '"""Scale an amount."""'),
    "docstring of a module": ("job.py", '"""A flow, as users write them."""', ""),
    "comment of another module": ("shop/tables.py", "TABLE", "# rates\nTABLE"),
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """The fingerprint of the flow of a project, which is imported anew each time."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def found(change=None) -> str:
        for name, text in PROJECT.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            if change and change[0] == name:
                assert change[1] in text
                text = text.replace(change[1], change[2], 1)
            path.write_text(text)
        for name in [n for n in sys.modules if n == "job" or n.split(".")[0] == "shop"]:
            monkeypatch.delitem(sys.modules, name)
        importlib.invalidate_caches()
        return flow_fingerprint(importlib.import_module("job").build())

    return found


@pytest.mark.parametrize("change", OTHER_MEANING.values(), ids=OTHER_MEANING)
def test_another_meaning_is_another_fingerprint(digest, change):
    assert digest(change) != digest()


@pytest.mark.parametrize("change", SAME_MEANING.values(), ids=SAME_MEANING)
def test_another_layout_is_the_same_fingerprint(digest, change):
    assert digest(change) == digest()


def test_another_version_of_an_imported_package_is_another_fingerprint(digest, monkeypatch):
    before = digest()
    user_modules._package.cache_clear()
    monkeypatch.setattr(user_modules, "version", lambda name: f"{name} 99")
    assert digest() != before
    user_modules._package.cache_clear()


def test_another_version_of_a_connector_is_another_fingerprint(monkeypatch):
    """It is bound by name in a file, so that no module of the user's imports it."""
    name, real = "connector_of_others", user_modules.version
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", int))
    connector = type("Rows", (), {"__module__": name})()
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    found = set()
    for number in "12":
        user_modules._package.cache_clear()
        versions = {name: number}
        monkeypatch.setattr(user_modules, "version", lambda n, v=versions: v.get(n) or real(n))
        found.add(flow_fingerprint(flow, [connector]))
    user_modules._package.cache_clear()
    assert len(found) == 2


def test_modules_that_nothing_imports_do_not_count(digest, tmp_path):
    before = digest()
    (tmp_path / "unrelated.py").write_text("X = 1\n")
    assert digest() == before


def test_what_a_sink_is_bound_to_counts(tmp_path, monkeypatch):
    """A function that is called with rows travels like those of the steps."""
    monkeypatch.syspath_prepend(str(tmp_path))
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", int))

    class Bound:
        def __init__(self, function):
            self.function = function

    found = set()
    for body in ("pass", "return 1"):
        (tmp_path / "sending.py").write_text(f"def send(epoch, bucket, rows):\n    {body}\n")
        monkeypatch.delitem(sys.modules, "sending", raising=False)
        importlib.invalidate_caches()
        module = importlib.import_module("sending")
        found.add(flow_fingerprint(flow, [Bound(module.send)]))
    assert len(found) == 2


def test_a_module_without_a_source_counts_by_its_functions_and_the_constants_they_name(monkeypatch):
    """As in a notebook: what is tried out beside the flow does not count, what it names does."""

    def digest(code: str) -> str:
        module = ModuleType("typed_in")
        monkeypatch.setitem(sys.modules, "typed_in", module)
        exec(f"def f(n: int) -> int:\n    return helper(n)\n{code}", vars(module))
        flow = cw.Flow("flow")
        flow.sink("out", flow.source("items", int).map(module.f, name="mapped"))
        return flow_fingerprint(flow)

    first = digest("def helper(n): return n + A\nA = 1\nseen = 1")
    assert first == digest("def helper(n): return n + A\nA = 1\nseen = 2")
    assert first != digest("def helper(n): return n + A\nA = 2\nseen = 1")
    assert first != digest("def helper(n): return n - A\nA = 1\nseen = 1")


def test_every_process_finds_the_same(tmp_path):
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    code = (
        "import job\nfrom cutwater.flow.fingerprint import flow_fingerprint\n"
        "print(flow_fingerprint(job.build()))"
    )
    paths = ":".join([*sys.path, sysconfig.get_paths()["purelib"]])
    found = {
        subprocess.run(
            [sys.executable, "-B", "-c", code],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1
