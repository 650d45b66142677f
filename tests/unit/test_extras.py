"""An installation without an extra: what needs it says which to install."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cutwater import extras

ROOT = Path(__file__).parents[2]

EACH_NAME = """
import json, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
from cutwater import spark
from cutwater.errors import CutwaterError

refusals = {}
for name in spark.__all__:
    try:
        getattr(spark, name)
    except CutwaterError as error:
        refusals[name] = str(error)
print(json.dumps(refusals))
"""


def refusals_without(*packages):
    """What the names of `cutwater.spark` say that cannot be had."""
    done = subprocess.run(
        [sys.executable, "-c", EACH_NAME, ",".join(packages)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_any_extra_each_name_is_there_or_says_what_to_install():
    refusals = refusals_without(*extras.EXTRAS)
    assert {
        "run",
        "json_lines",
        "kafka_messages",
        "postgres_table",
        "delta_table",
    } <= refusals.keys()
    for name, text in refusals.items():
        assert text.startswith(f"[not-installed] cutwater.spark.{name} needs the package '")
        assert text.endswith("hint: pip install 'cutwater[spark,java]'")


def test_the_kit_for_connectors_says_what_to_install():
    package = "cutwater.testing.connectors"
    code = f"import sys; sys.modules['numpy'] = None; import {package}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"[not-installed] {package} needs the package 'numpy'" in done.stderr
    assert "hint: pip install 'cutwater[spark,java]'" in done.stderr


@pytest.mark.parametrize("package", ["confluent_kafka", "deltalake", "psycopg"])
def test_the_client_of_a_system_is_asked_for_when_the_system_is(package):
    assert refusals_without(package) == {}


def test_a_module_that_no_extra_brings_is_an_error_of_its_own():
    assert extras.not_installed("it", ModuleNotFoundError(name="cutwater.nowhere")) is None


def test_the_extras_are_those_of_the_package():
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = offered["optional-dependencies"].keys()
    assert {name for refusals in extras.EXTRAS.values() for name in refusals.split(",")} <= known
