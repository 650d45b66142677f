"""What is installed with the package has an upper bound, and what is tested lies below it."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_USERS = [name for name in EXTRAS if name not in ("dev", "docs", "bench")]
NEEDED = [
    *PROJECT["dependencies"],
    *(needed for name in FOR_USERS for needed in EXTRAS[name]),
]
TESTED = dict(
    line.replace("_", "-").split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if "==" in line
)


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)]


@pytest.mark.parametrize("needed", NEEDED)
def test_a_dependency_has_an_upper_bound_above_what_is_tested(needed):
    name = re.match(r"[\w-]+", needed)[0]
    least, below = (re.search(sign + r"([\d.]+)", needed) for sign in (">=", "<"))
    assert least, needed
    assert below, needed
    assert numbers(least[1]) <= numbers(TESTED[name]) < numbers(below[1])
