"""Does a test notice? Each mutant changes one line; the tests named for it have to fail.

Mutants are data (`mutants.toml`): for each module the quick tests that must kill them, and pairs of
a line as it is and as it must not be. One that no test can kill because it means the same is listed
under ``equivalent`` with the reason, and is not run.

    make mutants                       all of them
    make mutants ARGS="frontier -j 2"  those of modules with "frontier" in their path, two at a time
    make mutants ARGS="--killed FILE"  goes on where a run that was cut off ended

Before the first mutant of a module its tests have to pass with nothing changed: a test that fails
anyway notices nothing. How long they take then is the measure of what counts as an endless loop.

By hand, not by mutmut: that mutates every line by pattern and runs all tests. These mutants break a
named rule each, and only the tests that claim to hold the rule may notice.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
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
LEAST_LIMIT_S = 120.0
TIMES_UNCHANGED = 10
"""A mutant whose tests take so much longer than without it loops for ever, and was noticed."""
MAX_BYTES = 4 << 30
"""Of memory, for each process: an endless loop often collects something."""
SURVIVED = "SURVIVED"


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


def verdict(mutant: Mutant, scratch: Path, limit_s: float = LEAST_LIMIT_S) -> str:
    """``killed``, ``timed out`` or ``SURVIVED``, in a scratch copy of the repository."""
    module = scratch / mutant.path
    before = module.read_text()
    module.write_text(before.replace(mutant.old, mutant.new))
    try:
        return "killed" if pytest(scratch, mutant.tests, limit_s).returncode else SURVIVED
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        module.write_text(before)


def pytest(scratch: Path, tests: Iterable[str], seconds: float | None = None) -> Done:
    """Run tests in a scratch copy, up to the first that fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(scratch / "src"), os.environ.get("PYTHONPATH", "")]),
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
    """Which tests are known to pass without any mutant, and how long they take."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}

    def limit_s(self, tests: tuple[str, ...], scratch: Path) -> float:
        """How long they may take with a mutant; exits if one fails, or if there is none."""
        if tests not in self._seconds:
            began = time.monotonic()
            done = pytest(scratch, tests)
            if done.returncode:
                sys.exit(f"{done.stdout}{done.stderr}the tests do not pass without a mutant")
            self._seconds[tests] = time.monotonic() - began
        return max(LEAST_LIMIT_S, TIMES_UNCHANGED * self._seconds[tests])


class Killed:
    """The mutants that an earlier run killed, as lines of a file.

    A line is a digest of the mutant, its module and its tests: what changed since is tried again.
    Digests are of the files as they were when first asked for: one may be edited while it runs.
    """

    def __init__(self, path: Path | None, root: Path = ROOT) -> None:
        self._path = path
        self._root = root
        self._digests: dict[Mutant, str] = {}
        self._known = set(path.read_text().split()) if path and path.exists() else set()

    def __contains__(self, mutant: Mutant) -> bool:
        return self._digest(mutant) in self._known

    def add(self, mutant: Mutant) -> None:
        """Note it at once: the next mutant may be the one at which the run is cut off."""
        if self._path:
            with self._path.open("a") as file:
                file.write(f"{self._digest(mutant)}\n")

    def _digest(self, mutant: Mutant) -> str:
        if mutant not in self._digests:
            self._digests[mutant] = self._made(mutant)
        return self._digests[mutant]

    def _made(self, mutant: Mutant) -> str:
        files = [mutant.path, *(test.partition("::")[0] for test in mutant.tests)]
        parts = [str(mutant), *mutant.tests, *((self._root / name).read_text() for name in files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def survivors(mutants: Sequence[Mutant], jobs: int, killed: Killed) -> Iterator[Mutant]:
    """Those that no test noticed; tells how far it is."""
    with tempfile.TemporaryDirectory() as folder:
        free: Queue[Path] = Queue()
        for number in range(jobs):
            free.put(copied(ROOT, Path(folder) / str(number)))
        unchanged = Unchanged()

        def tried(mutant: Mutant) -> tuple[str, float]:
            scratch, began = free.get(), time.monotonic()
            try:
                limit_s = unchanged.limit_s(mutant.tests, scratch)
                return verdict(mutant, scratch, limit_s), time.monotonic() - began
            finally:
                free.put(scratch)

        with ThreadPoolExecutor(jobs) as pool:
            for count, (mutant, (word, seconds)) in enumerate(
                zip(mutants, pool.map(tried, mutants), strict=True), 1
            ):
                print(
                    f"{count:>4} of {len(mutants)}  {word:<9}  {seconds:>4.0f} s  {mutant.path}",
                    flush=True,
                )
                if word == SURVIVED:
                    yield mutant
                else:
                    killed.add(mutant)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants; 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="?", default="", help="a part of the modules' paths")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--killed", type=Path, metavar="FILE", help="note them, skip those noted")
    given = parser.parse_args(arguments)
    known = [mutant for mutant in read() if given.only in mutant.path]
    listed = [mutant for mutant in known if not mutant.why_equivalent]
    if not listed:
        sys.exit(f"no mutant is listed for a module with {given.only!r} in its path")
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))  # tests inherit it
    began = time.monotonic()
    killed = Killed(given.killed)
    tried = [mutant for mutant in listed if mutant not in killed]
    left = list(survivors(tried, given.jobs, killed))
    minutes = (time.monotonic() - began) / 60
    print(
        f"{len(tried)} mutants in {minutes:.0f} minutes, {len(listed) - len(tried)} killed before, "
        f"{len(known) - len(listed)} more are equivalent"
    )
    for mutant in left:
        print(f"survived: {mutant}")
    print(f"{len(left)} survived" if left else "none survived")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
