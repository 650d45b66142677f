"""The same calls in other processes, in which none of the user's functions was called before.

For each of several fixed hash seeds an interpreter is started that imports the user's modules and
calls nothing. From it two processes are forked: one makes the calls as they came, the other in the
opposite order, with another environment, time zone and clock. What hides state, goes by the order
of a set, or looks at the clock gives other results there, and the same ones in every check.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from cutwater.checking.purity.surroundings import surroundings
from cutwater.flow.builder import Flow

__all__ = ["HASH_SEEDS", "Elsewhere", "Job", "call_elsewhere", "place_of"]

HASH_SEEDS = (1, 2, 3, 4)
_PATIENCE_S = 60
_INSIDE = "CUTWATER_CALLED_ELSEWHERE"
"""Set in the other process: a module that checks flows when it is imported starts no third one."""

_Place = tuple[str, str, tuple[str, ...]]
"""A module, its file, and how the function is found in it: by its name, or by that of a flow, of
a step and of the role of the function there."""


class Job(NamedTuple):
    """The calls of one function."""

    place: _Place
    arguments: Sequence[Sequence[Any]]
    is_listing: bool


class Elsewhere(NamedTuple):
    """What the calls of each function gave in one of the processes."""

    hash_seed: int
    is_reversed: bool
    """Were they made in the opposite order, at another time and place?"""
    results: list[list[bytes]]


def call_elsewhere(jobs: Sequence[Job]) -> list[Elsewhere] | None:
    """What the calls give in processes with other hash seeds; None if they cannot be made there."""
    if not jobs or _INSIDE in os.environ:
        return None
    try:
        data = pickle.dumps((sys.path, [job.place for job in jobs]))
        data += pickle.dumps([(list(job.arguments), job.is_listing) for job in jobs])
        with ExitStack() as running:
            started = [_start(seed, running) for seed in HASH_SEEDS]
            return [each for seed, one in started for each in _answer(seed, one, data)]
    except (pickle.PickleError, AttributeError, TypeError, EOFError, subprocess.SubprocessError):
        return None


def _start(seed: int, running: ExitStack) -> tuple[int, subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", __name__]
    env = {**os.environ, "PYTHONHASHSEED": str(seed), _INSIDE: "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=env, **pipes)  # type: ignore[call-overload]
    running.callback(_end, process)
    return seed, process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    process.wait()


def _answer(seed: int, process: subprocess.Popen[bytes], data: bytes) -> list[Elsewhere]:
    answer, _ = process.communicate(data, timeout=_PATIENCE_S)
    forward, backward = pickle.loads(answer)
    return [Elsewhere(seed, False, forward), Elsewhere(seed, True, backward)]


def place_of(f: Callable[..., Any], step: str, role: str) -> _Place | None:
    """Where a function is found that another process can import; None if nowhere."""
    module = sys.modules.get(getattr(f, "__module__", None) or "")
    name = getattr(f, "__qualname__", "<")
    file = getattr(module, "__file__", None)
    if module is None or module.__name__ == "__main__" or file is None:
        return None
    if "<" not in name and _find(module, (name,)) is f:
        return module.__name__, file, (name,)
    flows = [n for n, value in vars(module).items() if isinstance(value, Flow)]
    places = ((flow, step, role) for flow in flows)
    found = next((place for place in places if _find(module, place) is f), None)
    return found and (module.__name__, file, found)


def _find(module: Any, names: tuple[str, ...]) -> Any:
    found = module
    for part in names[0].split("."):
        found = getattr(found, part, None)
    if len(names) == 1:
        return getattr(found, "f", found)  # what a task decorates
    _, step, role = names
    steps = [each for each in getattr(found, "steps", ()) if each.name == step]
    held = getattr(steps[0], role, None) if steps else None
    return getattr(held, "f", held)


def _imported(name: str, file: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
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
    given = sys.stdin.buffer
    path, places = pickle.load(given)
    output = os.dup(1)
    os.dup2(2, 1)  # what the user's code prints is not the answer
    sys.path[:] = path
    functions = [_find(_imported(name, file), names) for name, file, names in places]
    data = given.read()  # after the functions, whose modules define the types of arguments
    answers = [_forked(functions, data, is_reversed=flag) for flag in (False, True)]
    with os.fdopen(output, "wb") as answer:
        answer.write(pickle.dumps(answers))


def _forked(functions: list[Any], data: bytes, *, is_reversed: bool) -> list[list[bytes]]:
    """The results of all calls, made in a process of their own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made = _made(functions, pickle.loads(data), is_reversed)
            with os.fdopen(writing, "wb") as answer:
                answer.write(pickle.dumps(made))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        results: list[list[bytes]] = pickle.load(answer)
    os.waitpid(child, 0)
    return results


def _made(functions: list[Any], jobs: list[Any], is_reversed: bool) -> list[list[bytes]]:
    from cutwater.checking.purity.repeated_calls import encoded_result

    results: list[list[bytes]] = [[b""] * len(arguments) for arguments, _ in jobs]
    places = [(n, i) for n, (arguments, _) in enumerate(jobs) for i in range(len(arguments))]
    with surroundings(seed=int(is_reversed), are_others=is_reversed):
        for n, i in reversed(places) if is_reversed else places:
            arguments, is_listing = jobs[n]
            results[n][i] = encoded_result(functions[n], arguments[i], is_listing)
    return results


if __name__ == "__main__":
    random.seed(0)
    _main()
