"""The same calls in other processes, in which none of the user's functions was called before.

For each of several fixed hash seeds there is an interpreter that knows nothing of the user's. For
each check it forks a process that imports the user's modules and calls nothing, and that one two
more: one makes the calls as they came, the other in the opposite order, with another environment,
time zone and clock. What hides state, goes by the order of a set, or looks at the clock gives other
results there, and the same ones in every check.
"""

from __future__ import annotations

import ast
import atexit
import importlib
import importlib.util
import os
import pickle
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from cutwater.checking.purity.surroundings import surroundings
from cutwater.flow.builder import Flow
from cutwater.flow.travel.pickling import by_value

__all__ = [
    "HASH_SEEDS",
    "Elsewhere",
    "Job",
    "Place",
    "call_after",
    "call_elsewhere",
    "place_of",
]

HASH_SEEDS = (1, 2, 3, 4)
_PATIENCE_S = 60
_INSIDE = "CUTWATER_CALLED_ELSEWHERE"
"""Set in the other process: a module that checks flows when it is imported starts no third one."""

Place = tuple[str, str, tuple[str, ...]] | bytes
"""A module, its file, and how the function is found in it: by its name, or by that of a flow, of
a step and of the role of the function there. Or the function itself, if it is found nowhere: as it
was before it was called, with what it closes over."""


class Job(NamedTuple):
    """The calls of one function."""

    place: Place
    arguments: Sequence[Sequence[Any]]
    is_listing: bool


class Elsewhere(NamedTuple):
    """What the calls of each function gave in one of the processes."""

    hash_seed: int
    is_reversed: bool
    """Were they made in the opposite order, at another time and place?"""
    results: list[list[bytes] | None]
    """For each function; None where it, or what it is given, is not to be had there."""


def call_elsewhere(
    jobs: Sequence[Job], hash_seeds: Sequence[int] = HASH_SEEDS
) -> list[Elsewhere] | None:
    """What the calls give in processes with other hash seeds; None if they cannot be made there."""
    if not jobs or _INSIDE in os.environ:
        return None
    asked: list[_Interpreter] = []
    try:
        calls = [_sent(job) for job in jobs]
        places = [job.place for job in jobs]
        data = pickle.dumps((sys.path, str(Path.cwd()), dict(os.environ), places, calls))
        for seed in hash_seeds:
            asked.append(_interpreter(seed))
            asked[-1].ask(data)
        return [each for interpreter in asked for each in interpreter.answer()]
    except (pickle.PickleError, EOFError, OSError):
        for interpreter in asked:  # one that was asked and not heard would answer the next time
            interpreter.end()
        return None


def call_after(job: Job, before: Sequence[int], last: int) -> bytes | None:
    """What a call gives in a fresh process after some others; None if it cannot be made there."""
    arguments = [job.arguments[index] for index in (*before, last)]
    found = call_elsewhere([job._replace(arguments=arguments)], HASH_SEEDS[:1])
    results = found[0].results[0] if found else None
    return results[-1] if results else None


def _sent(job: Job) -> bytes | None:
    """The calls of a function as bytes; None if some of what it is given cannot be sent."""
    calls = (list(job.arguments), job.is_listing)
    if isinstance(job.place, bytes):  # then the types that it knows are found nowhere either
        return _by_value(calls)
    try:
        return pickle.dumps(calls)
    except Exception:  # a class that is found nowhere, or whatever one of the user's raises
        return _by_value(calls)


def _by_value(value: Any) -> bytes | None:
    try:
        return by_value(value)
    except Exception:  # a lock, a connection, and whatever a class of the user's raises
        return None


class _Interpreter:
    """An interpreter with a hash seed; it answers each request by a process that it forks."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env={**os.environ, "PYTHONHASHSEED": str(seed), _INSIDE: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        atexit.register(self.end)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, data: bytes) -> None:
        assert self._process.stdin is not None
        _write_frame(self._process.stdin.fileno(), data)

    def answer(self) -> list[Elsewhere]:
        assert self._process.stdout is not None
        data = _read_frame(self._process.stdout.fileno(), time.monotonic() + _PATIENCE_S)
        forward, backward = pickle.loads(data)
        return [
            Elsewhere(self._seed, False, forward),
            Elsewhere(self._seed, True, backward),
        ]

    def end(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.wait()


_interpreters: dict[tuple[int, int], _Interpreter] = {}
"""Those that were started, by process: one that was forked has none of them."""


def _interpreter(seed: int) -> _Interpreter:
    place = (os.getpid(), seed)
    known = _interpreters.get(place)
    if known is None or not known.is_alive:
        known = _interpreters[place] = _Interpreter(seed)
    return known


def _write_frame(file: int, data: bytes) -> None:
    rest = memoryview(len(data).to_bytes(8, "big") + data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _read_frame(file: int, deadline: float | None = None) -> bytes:
    return _read(file, int.from_bytes(_read(file, 8, deadline), "big"), deadline)


def _read(file: int, size: int, deadline: float | None) -> bytes:
    """So many bytes; raises `EOFError` where it ends before, or takes too long."""
    data = bytearray()
    while len(data) < size:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        is_ready, _, _ = select.select([file], [], [], patience)
        part = os.read(file, size - len(data)) if is_ready else b""
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def place_of(f: Callable[..., Any], step: str, role: str) -> Place | None:
    """How another process gets at a function that was not called yet; None if it cannot.

    It imports it, if it can: then nothing that was computed here is sent.
    """
    return _imported_from(f, step, role) or _by_value(f)


def _imported_from(f: Callable[..., Any], step: str, role: str) -> Place | None:
    module = sys.modules.get(getattr(f, "__module__", None) or "")
    name = getattr(f, "__qualname__", "<")
    file = getattr(module, "__file__", None)
    if module is None or file is None or (module.__name__ == "__main__" and not _is_guarded(file)):
        return None
    if "<" not in name and _find(module, (name,)) is f:
        return module.__name__, file, (name,)
    flows = [n for n, value in vars(module).items() if isinstance(value, Flow)]
    places = ((flow, step, role) for flow in flows)
    found = next((place for place in places if _find(module, place) is f), None)
    return found and (module.__name__, file, found)


def _is_guarded(script: str) -> bool:
    """Does a script do its work only where it is run? Others may do anything when imported."""
    try:
        statements = ast.parse(Path(script).read_text(encoding="utf-8")).body
    except (OSError, ValueError, SyntaxError):
        return False
    asked = [ast.unparse(each.test) for each in statements if isinstance(each, ast.If)]
    return "__name__ == '__main__'" in asked


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


def _found(place: Place) -> Any:
    """The function at a place; None if it is not there, or its module cannot be imported."""
    try:
        if isinstance(place, bytes):
            return pickle.loads(place)
        name, file, names = place
        return _find(_imported(name, file), names)
    except (Exception, SystemExit):
        return None


_SCRIPT = "__cutwater_main__"
"""What a script is called here: what it does only when it is run is not done."""


def _imported(name: str, file: str) -> Any:
    if name == "__main__":
        # Types of the script are pickled by the name that it has in the process that runs it.
        module = _imported(_SCRIPT, file)
        sys.modules["__main__"] = module
        return module
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


def _serve() -> None:
    """Answer requests until there are no more; a process that fails answers with nothing."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what the user's code prints is not the answer
    with suppress(EOFError):
        while True:
            data = _read_frame(0)
            child = os.fork()
            if child == 0:
                _answer(data, answers)
            if os.waitpid(child, 0)[1] != 0:
                _write_frame(answers, b"")


def _answer(data: bytes, answers: int) -> NoReturn:
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        path, folder, environment, places, calls = pickle.loads(data)
        os.environ.clear()
        os.environ.update({**environment, _INSIDE: "1"})
        os.chdir(folder)
        sys.path[:] = path
        functions = [_found(place) for place in places]
        # The arguments come after the functions, whose modules define their types.
        found = [_forked(functions, calls, is_reversed=flag) for flag in (False, True)]
        _write_frame(answers, pickle.dumps(found))
        code = 0
    finally:
        os._exit(code)


_Results = list[list[bytes] | None]


def _forked(functions: list[Any], calls: Sequence[bytes | None], *, is_reversed: bool) -> _Results:
    """The results of all calls, made in a process of their own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made = _made(functions, [_received(data) for data in calls], is_reversed)
            with os.fdopen(writing, "wb") as answer:
                answer.write(pickle.dumps(made))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        results: _Results = pickle.load(answer)
    os.waitpid(child, 0)
    return results


def _received(data: bytes | None) -> Any:
    """The calls of a function; None if what it is given cannot be had here."""
    try:
        return None if data is None else pickle.loads(data)
    except Exception:  # whatever a class of the user's raises when it is made again
        return None


def _made(functions: list[Any], jobs: list[Any], is_reversed: bool) -> _Results:
    from cutwater.checking.purity.repeated_calls import encoded_result

    can_be = [f is not None and job is not None for f, job in zip(functions, jobs, strict=True)]
    results = [[b""] * len(jobs[n][0]) if can_be[n] else None for n in range(len(jobs))]
    places = [(n, i) for n, made in enumerate(results) for i in range(len(made or ()))]
    with surroundings(seed=int(is_reversed), are_others=is_reversed):
        for n, i in reversed(places) if is_reversed else places:
            (arguments, is_listing), made = jobs[n], results[n]
            assert made is not None
            made[i] = encoded_result(functions[n], arguments[i], is_listing)
    return results


if __name__ == "__main__":
    import cutwater.checking.purity.repeated_calls  # noqa: F401 (what every request needs)

    random.seed(0)
    _serve()
