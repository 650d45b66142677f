"""No file names a machine, a package registry or a place on somebody's disk."""

import re
import shutil
import subprocess

import pytest
from support.repo.not_run import need
from support.repo.package import ROOT

REGISTRIES = (
    r"pypi\.org|pythonhosted\.org|anaconda\.org|repo1?\.maven|maven\.org|registry\.npmjs"
    r"|(deb|security)\.debian\.org|archive\.ubuntu\.com|index-ur[l]|find-link[s]|trusted-hos[t]"
)
MACHINE_PATHS = r"(?<![\w.~}-])/(root|home|work|Users)/"
TEMPORARY_PATHS = r"(?<![\w.~}-])/(var/)?tmp\b"


def forbidden(name: str, text: str) -> list[str]:
    """Every line of a file that holds a forbidden word."""
    patterns = [REGISTRIES, MACHINE_PATHS]
    if not name.startswith("tests/"):
        patterns.append(TEMPORARY_PATHS)
    pattern = re.compile("|".join(patterns))
    return [
        f"{name}:{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def text_files() -> dict[str, str]:
    """Every text file of the repository by its name: what git tracks or would add."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        need("this is not a git checkout", provided_by="git clone")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listing, cwd=ROOT, text=True).split("\0")
    texts = {}
    for name in filter(None, names):
        if (ROOT / name).is_file():
            data = (ROOT / name).read_bytes()
            if b"\0" not in data:
                texts[name] = data.decode()
    return texts


def test_no_file_names_a_registry_or_a_machine():
    files = text_files()
    assert "tests/repo/test_words.py" in files
    assert [line for name, text in files.items() for line in forbidden(name, text)] == []


def test_constraints_are_exact_versions_and_nothing_else():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin)] == []


SLASH = "/"  # kept apart, so that this file passes its own test


@pytest.mark.parametrize(
    "line",
    [
        f"cd {SLASH}root/project",
        f"path = '{SLASH}home/someone/data'",
        f"out={SLASH}tmp",
        "https://" + "pypi" + ".org/simple",
        "pip install --extra-index" + "-url x",
    ],
)
def test_a_forbidden_word_is_found(line):
    assert forbidden("README.md", line) == [f"README.md:1: {line}"]


@pytest.mark.parametrize(
    "line", ["src/plan/work.py", "~/home/", "https://www.apache.org/licenses/", "/usr/lib/jvm"]
)
def test_an_ordinary_line_passes(line):
    assert forbidden("README.md", line) == []
