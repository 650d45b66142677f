"""The same calls in another process, which hashes text otherwise.

The process is one of our own: it is sent where to find the function, and its arguments, and sends
back the results as plain data.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["call_elsewhere"]

_PATIENCE_S = 60
_INSIDE = "CUTWATER_CALLED_ELSEWHERE"
"""Set in the other process: a module that checks flows when it is imported starts no third one."""


def call_elsewhere(
    f: Callable[..., Any], arguments: Sequence[Sequence[Any]], is_listing: bool
) -> list[bytes] | None:
    """What the calls give in a process with another hash seed; None if `f` is not found there."""
    place = _place_of(f)
    if place is None or not arguments or _INSIDE in os.environ:
        return None
    try:
        job = pickle.dumps((sys.path, *place, is_listing)) + pickle.dumps(list(arguments))
        ours = os.environ.get("PYTHONHASHSEED", "random")
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=job,
            capture_output=True,
            timeout=_PATIENCE_S,
            env={**os.environ, "PYTHONHASHSEED": "2" if ours == "1" else "1", _INSIDE: "1"},
            check=True,
        )
        results: list[bytes] = pickle.loads(done.stdout)
    except (pickle.PickleError, AttributeError, TypeError, EOFError, subprocess.SubprocessError):
        return None
    return results


def _place_of(f: Callable[..., Any]) -> tuple[str, str, str] | None:
    """Module, its file, and name of a function that can be found by them."""
    module = sys.modules.get(getattr(f, "__module__", None) or "")
    name = getattr(f, "__qualname__", "<")
    file = getattr(module, "__file__", None)
    if module is None or module.__name__ == "__main__" or "<" in name or file is None:
        return None
    return (module.__name__, file, name) if _find(module, name) is f else None


def _find(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return getattr(found, "f", found)  # what a task decorates


def _imported(name: str, file: str) -> Any:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is not None and found.origin == file:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(Path(file).parent))
    spec.loader.exec_module(module)
    return module


def _main() -> None:
    from cutwater.checking.purity.repeated_calls import encoded_result

    given = sys.stdin.buffer
    path, name, file, qualname, is_listing = pickle.load(given)
    output = os.dup(1)
    os.dup2(2, 1)  # what the user's code prints is not the answer
    sys.path[:] = path
    f = _find(_imported(name, file), qualname)  # before the arguments, whose types it defines
    results = [encoded_result(f, arguments, is_listing) for arguments in pickle.load(given)]
    with os.fdopen(output, "wb") as answer:
        answer.write(pickle.dumps(results))


if __name__ == "__main__":
    _main()
