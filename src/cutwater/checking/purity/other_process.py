"""The same calls in other processes, which have not called any of the user's functions before.

For each of several fixed hash seeds there is an interpreter without any user code. For each check
it forks a process that imports the user's modules and calls nothing. That process forks two more:
one makes the calls in their original order, the other in reverse order, with another environment,
time zone and clock. A function that hides state, depends on the order of a set, or reads the clock
gives other results there, and the same ones in every check.
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
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic  # bound here: a check has a clock of its own
from typing import Any, NamedTuple, NoReturn

from cutwater.checking.purity.surroundings import another_time, move
from cutwater.flow.builder import Flow
from cutwater.flow.travel.pickling import pickle_by_value
from cutwater.semantics.hanging import HangingError, interrupting, longest_call_s

__all__ = [
    "HANGS",
    "HASH_SEEDS",
    "CallOrigin",
    "CallsToRepeat",
    "Elsewhere",
    "call_after",
    "call_elsewhere",
    "call_origin",
]

HASH_SEEDS = (1, 2, 3, 4)
"""Fixed, so that a check is reproducible; several, since two may order a small set alike."""
_PATIENCE_S = 600
"""How long to wait for all results. Python calls that hang are interrupted much earlier."""
HANGS = b'"does not return"'
"""The result of a call that was interrupted; later calls of the same function are not made."""
_INSIDE = "CUTWATER_CALLED_ELSEWHERE"
"""Set in the other process, so that a module that checks flows on import starts no third one."""

CallOrigin = tuple[str, str, tuple[str, ...]] | bytes
"""A module, its file, and the path to the function in it: its name, or the names of a flow, a step
and the function's role there. Or, if it cannot be imported, the pickled function itself: as it was
before its first call, with what it closes over."""


class CallsToRepeat(NamedTuple):
    """The calls of one function."""

    origin: CallOrigin
    arguments: Sequence[Sequence[Any]]
    gives: str
    """What its result is."""


class Elsewhere(NamedTuple):
    """The results of each function's calls in one of the processes."""

    hash_seed: int
    is_reversed: bool
    """Were they made in reverse order, with another clock, time zone and environment?"""
    results: list[list[bytes] | None]
    """By function; None if the function or its arguments are not available there."""


def call_elsewhere(
    jobs: Sequence[CallsToRepeat], hash_seeds: Sequence[int] = HASH_SEEDS
) -> list[Elsewhere] | None:
    """The results of the calls in processes with other hash seeds; None if these cannot run."""
    if not jobs or _INSIDE in os.environ:
        return None
    asked: list[_Interpreter] = []
    try:
        calls = [_sent(job) for job in jobs]
        origins = [job.origin for job in jobs]
        where = (sys.path, str(Path.cwd()), dict(os.environ))
        data = pickle.dumps((*where, longest_call_s(), origins, calls))
        for seed in hash_seeds:
            asked.append(_interpreter(seed))
            asked[-1].ask(data)
        return [each for interpreter in asked for each in interpreter.answer()]
    except (pickle.PickleError, EOFError, OSError):
        for interpreter in asked:  # an unread answer would be read as that to the next request
            interpreter.end()
        return None


def call_after(job: CallsToRepeat, before: Sequence[int], last: int) -> bytes | None:
    """The result of a call in a fresh process after some others; None if it cannot run there."""
    arguments = [job.arguments[index] for index in (*before, last)]
    found = call_elsewhere([job._replace(arguments=arguments)], HASH_SEEDS[:1])
    results = found[0].results[0] if found else None
    return results[-1] if results else None


def _sent(job: CallsToRepeat) -> bytes | None:
    """The calls of a function as bytes; None if an argument cannot be pickled."""
    calls = (list(job.arguments), job.gives)
    if isinstance(job.origin, bytes):  # then its types cannot be imported either
        return _by_value(calls)
    try:
        return pickle.dumps(calls)
    except Exception:  # a class that cannot be imported, or anything user code raises
        return _by_value(calls)


def _by_value(value: Any) -> bytes | None:
    try:
        return pickle_by_value(value)
    except Exception:  # a lock, a connection, or anything a user's class raises
        return None


class _Interpreter:
    """An interpreter with a hash seed; it forks a process to answer each request."""

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
        data = _read_frame(self._process.stdout.fileno(), monotonic() + _PATIENCE_S)
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
"""The interpreters started, by process id and hash seed: a forked process has none of its own."""


def _interpreter(seed: int) -> _Interpreter:
    worker = (os.getpid(), seed)
    known = _interpreters.get(worker)
    if known is None or not known.is_alive:
        known = _interpreters[worker] = _Interpreter(seed)
    return known


def _write_frame(file: int, data: bytes) -> None:
    rest = memoryview(len(data).to_bytes(8, "big") + data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _read_frame(file: int, deadline: float | None = None) -> bytes:
    return _read(file, int.from_bytes(_read(file, 8, deadline), "big"), deadline)


def _read(file: int, size: int, deadline: float | None) -> bytes:
    """Read `size` bytes; `EOFError` if the file ends before that, or on timeout."""
    data = bytearray()
    while len(data) < size:
        patience = None if deadline is None else max(0.0, deadline - monotonic())
        is_ready, _, _ = select.select([file], [], [], patience)
        part = os.read(file, size - len(data)) if is_ready else b""
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def call_origin(f: Callable[..., Any], step: str, role: str) -> CallOrigin | None:
    """How another process gets a function that was not called yet; None if it cannot.

    It is imported if possible: then nothing that was computed here is sent.
    """
    return _imported_from(f, step, role) or _by_value(f)


def _imported_from(f: Callable[..., Any], step: str, role: str) -> CallOrigin | None:
    module = sys.modules.get(getattr(f, "__module__", None) or "")
    name = getattr(f, "__qualname__", "<")
    file = getattr(module, "__file__", None)
    if module is None or file is None or (module.__name__ == "__main__" and not _is_guarded(file)):
        return None
    if "<" not in name and _find(module, (name,)) is f:
        return module.__name__, file, (name,)
    flows = [n for n, value in vars(module).items() if isinstance(value, Flow)]
    roles = ((flow, step, role) for flow in flows)
    found = next((name for name in roles if _find(module, name) is f), None)
    return found and (module.__name__, file, found)


def _is_guarded(script: str) -> bool:
    """Does a script have a ``__main__`` guard? Without one, importing it may do anything."""
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
        return getattr(found, "f", found)  # the function that a task decorates
    _, step, role = names
    steps = [each for each in getattr(found, "steps", ()) if each.name == step]
    held = getattr(steps[0], role, None) if steps else None
    return getattr(held, "f", held)


def _found(origin: CallOrigin) -> Any:
    """The function at a location; None if it is not there, or its module cannot be imported."""
    try:
        if isinstance(origin, bytes):
            return pickle.loads(origin)
        name, file, names = origin
        return _find(_imported(name, file), names)
    except (Exception, SystemExit):
        return None


_SCRIPT = "__cutwater_main__"
"""The name a script is imported under, so that its ``__main__`` block does not run."""


def _imported(name: str, file: str) -> Any:
    if name == "__main__":
        # Types of the script are pickled under its name in the process that runs it.
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
    """Answer requests until there are no more; a process that fails sends an empty answer."""
    answers, number = os.dup(1), int(os.environ["PYTHONHASHSEED"])
    os.dup2(2, 1)  # keep the user's prints out of the answer
    with suppress(EOFError):
        while True:
            data = _read_frame(0)
            child = os.fork()
            if child == 0:
                _answer(data, answers, number)
            if os.waitpid(child, 0)[1] != 0:
                _write_frame(answers, b"")


def _answer(data: bytes, answers: int, number: int) -> NoReturn:
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        path, folder, environment, limit_s, origins, calls = pickle.loads(data)
        os.environ.clear()
        os.environ.update({**environment, _INSIDE: "1"})
        os.chdir(folder)
        sys.path[:] = path
        forward = _forked(origins, calls, limit_s, 0)
        left = [
            None if HANGS in (made or ()) else one for one, made in zip(calls, forward, strict=True)
        ]
        backward = _forked(origins, left, limit_s, number)
        _write_frame(answers, pickle.dumps((forward, backward)))
        code = 0
    finally:
        os._exit(code)


_Results = list[list[bytes] | None]


def _forked(
    origins: Sequence[CallOrigin], calls: Sequence[bytes | None], limit_s: float, other: int
) -> _Results:
    """The results of all calls, made in a forked process; not 0: in other surroundings."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with another_time(other):
                functions = [_found(origin) for origin in origins]
                # Arguments after functions: the functions' modules define the arguments' types.
                jobs = [_received(data) for data in calls]
                made = _made(functions, jobs, limit_s, other)
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
    """The calls of a function; None if its arguments cannot be unpickled here."""
    try:
        return None if data is None else pickle.loads(data)
    except Exception:  # anything a user's class raises on unpickling
        return None


def _made(functions: list[Any], jobs: list[Any], limit_s: float, other: int) -> _Results:
    from cutwater.checking.purity.repeated_calls import encoded_result

    can_be = [f is not None and job is not None for f, job in zip(functions, jobs, strict=True)]
    results = [[b""] * len(jobs[n][0]) if can_be[n] else None for n in range(len(jobs))]
    calls_made = [(n, i) for n, made in enumerate(results) for i in range(len(made or ()))]
    move(other)
    for n, i in reversed(calls_made) if other else calls_made:
        (arguments, gives), made = jobs[n], results[n]
        assert made is not None
        if HANGS in made:
            continue
        try:
            with interrupting(limit_s):
                made[i] = encoded_result(functions[n], arguments[i], gives, has_order=True)
        except HangingError:
            made[i] = HANGS
    return results


if __name__ == "__main__":
    import cutwater.checking.purity.repeated_calls  # noqa: F401 (what every request needs)

    random.seed(0)
    _serve()
