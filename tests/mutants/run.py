"""Does a test notice? Each mutant changes one line; the tests named for it have to fail.

Mutants are data (`mutants.toml`): for each module the quick tests that must kill them, and pairs of
a line as it is and as it must not be. One that no test can kill because it means the same is listed
under ``equivalent`` with the reason, and is not run.

    make mutants                       all of them
    make mutants ARGS="frontier -j 2"  those of modules with "frontier" in their path, two at a time

Before the first mutant of a module its tests have to pass with nothing changed: a test that fails
anyway notices nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")
SECONDS = 120
"""A mutant whose tests take longer goes round for ever, and was noticed."""


Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Mutant:
    """One line changed."""

    path: str
    """Of the module, from the root of the repository."""
    old: str
    new: str
    tests: tuple[str, ...]
    why_equivalent: str = ""
    """Why no test can kill it."""

    def __str__(self) -> str:
        return f"{self.path}\n  - {self.old}\n  + {self.new}"


def read(path: Path = LIST) -> list[Mutant]:
    """All mutants, those that are equivalent included."""
    with path.open("rb") as file:
        modules = tomllib.load(file)["module"]
    found = []
    for module in modules:
        where, tests = f"src/cutwater/{module['path']}", tuple(module["tests"])
        found += [Mutant(where, old, new, tests) for old, new in module["mutants"]]
        found += [
            Mutant(where, old, new, tests, why) for old, new, why in module.get("equivalent", ())
        ]
    return found


def copied(root: Path, to: Path) -> Path:
    """A scratch copy of what tests need."""
    for name in ("src", "tests", "examples", "docs", "benchmarks"):
        shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "Makefile", "README.md"):
        shutil.copy(root / name, to / name)
    return to


def is_killed(mutant: Mutant, scratch: Path) -> bool:
    """Does a test fail, in a scratch copy of the repository?"""
    module = scratch / mutant.path
    before = module.read_text()
    module.write_text(before.replace(mutant.old, mutant.new))
    try:
        return pytest(scratch, mutant.tests, SECONDS).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        module.write_text(before)


def pytest(scratch: Path, tests: Iterable[str], seconds: float | None = None) -> Done:
    """Run tests in a scratch copy, up to the first that fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(scratch / "src"),
        # A mutant may have its module's size; only what was compiled before it is kept.
        "PYTHONDONTWRITEBYTECODE": "1" if seconds else "",
        "HYPOTHESIS_PROFILE": "mutants",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command,
        cwd=scratch,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


class Unchanged:
    """Which tests are known to pass without any mutant."""

    def __init__(self) -> None:
        self._passed: set[tuple[str, ...]] = set()

    def check(self, tests: tuple[str, ...], scratch: Path) -> None:
        """Exit if one of the tests fails, or if there is none."""
        if tests not in self._passed:
            done = pytest(scratch, tests)
            if done.returncode:
                sys.exit(f"{done.stdout}{done.stderr}the tests do not pass without a mutant")
            self._passed.add(tests)


def survivors(mutants: Sequence[Mutant], jobs: int) -> Iterator[Mutant]:
    """Those that no test noticed; tells how far it is."""
    with tempfile.TemporaryDirectory() as folder:
        free: Queue[Path] = Queue()
        for number in range(jobs):
            free.put(copied(ROOT, Path(folder) / str(number)))
        unchanged = Unchanged()

        def tried(mutant: Mutant) -> tuple[bool, float]:
            scratch, began = free.get(), time.monotonic()
            try:
                unchanged.check(mutant.tests, scratch)
                return is_killed(mutant, scratch), time.monotonic() - began
            finally:
                free.put(scratch)

        with ThreadPoolExecutor(jobs) as pool:
            for count, (mutant, (killed, seconds)) in enumerate(
                zip(mutants, pool.map(tried, mutants), strict=True), 1
            ):
                word = "killed" if killed else "SURVIVED"
                print(
                    f"{count:>4} of {len(mutants)}  {word:<8}  {seconds:>4.0f} s  {mutant.path}",
                    flush=True,
                )
                if not killed:
                    yield mutant


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants; 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="?", default="", help="a part of the modules' paths")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many at a time")
    given = parser.parse_args(arguments)
    known = [mutant for mutant in read() if given.only in mutant.path]
    tried = [mutant for mutant in known if not mutant.why_equivalent]
    if not tried:
        sys.exit(f"no mutant is listed for a module with {given.only!r} in its path")
    began = time.monotonic()
    left = list(survivors(tried, given.jobs))
    minutes = (time.monotonic() - began) / 60
    argued = len(known) - len(tried)
    print(f"{len(tried)} mutants in {minutes:.0f} minutes, {argued} more are equivalent")
    for mutant in left:
        print(f"survived: {mutant}")
    print(f"{len(left)} survived" if left else "none survived")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
