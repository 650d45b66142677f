"""Another clock, time zone, environment and random seed, while calls are made.

What an impure function reads is then the same in every check, and so is the report on it.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
import itertools
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from cutwater.flow.user_modules import is_installed

__all__ = ["another_clock", "another_time", "move", "reproducible"]

_THEN = 1_704_110_400.0
"""A noon in 2024 from which the clock runs, so that checks are reproducible."""
_TICK_S = 0.001
"""How far the clock runs each time it is read: a loop that waits for a deadline ends."""
_OTHER_TIMES = (
    _THEN + 86_400.0 * 400 + 3_600 * 7 + 61,  # 2025, a Tuesday evening
    1_567_228_511.0,  # 2019, the last of August, a Saturday at night
    2_244_578_401.0,  # 2041, a Sunday in February, at six in the morning
    500.0,  # 1970, soon after all clocks began
)
"""When other surroundings are: before and after, in another part of the day, week and year."""
_TAKING_NOTHING = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_OF_A_TIME = ("localtime", "gmtime", "ctime")
_OF_A_STRUCT = ("strftime", "asctime")
"""Their last argument is a `struct_time`; by default the current time."""
_KEPT = ("PATH", "LD_", "PYTHON", "VIRTUAL_ENV", "CUTWATER", "COVERAGE")
_ELSEWHERE = "another environment"
_FOLDERS = {"HOME": "/another home", "TMPDIR": tempfile.gettempdir() + os.sep + os.curdir}
"""A temporary folder has to exist: the same one, by another name."""


@contextmanager
def another_clock(now: Callable[[], float]) -> Iterator[None]:
    """Clocks that return `now`: those of `time`, and of the classes in `datetime`.

    Names that the user's modules bound at import (``from time import time``) return it, too.
    """
    kept = {name: getattr(time, name) for name in dir(time)}
    clocks = _clocks(kept, now)
    vars(time).update(clocks)
    bound = _bound_by_the_user({id(kept[name]): clocks[name] for name in clocks})
    for names, name, _, clock in bound:
        names[name] = clock
    zoned = dt.datetime.fromtimestamp
    changes = {
        "now": classmethod(lambda cls, tz=None: zoned(now(), tz)),
        "today": classmethod(lambda cls: zoned(now())),
        "utcnow": classmethod(lambda cls: zoned(now(), dt.UTC).replace(tzinfo=None)),
    }
    with _changed(dt.datetime, changes):
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(time, name, value)
            for names, name, value, _ in bound:
                names[name] = value


def _clocks(real: dict[str, Any], now: Callable[[], float]) -> dict[str, Any]:
    """Replacements for the functions of `time`."""

    def now_ns() -> int:
        return int(now() * 1e9)

    of_a_struct = {name: _of_a_struct(real[name], real["localtime"], now) for name in _OF_A_STRUCT}
    found = {
        **dict.fromkeys(_TAKING_NOTHING, now),
        **{f"{name}_ns": now_ns for name in _TAKING_NOTHING},
        **{name: _of_a_time(real[name], now) for name in _OF_A_TIME},
        **of_a_struct,
        "clock_gettime": lambda _clock: now(),
        "clock_gettime_ns": lambda _clock: now_ns(),
    }
    return {name: clock for name, clock in found.items() if name in real}


def _of_a_struct(real: Any, localtime: Any, now: Callable[[], float]) -> Any:
    count = 2 if real.__name__ == "strftime" else 1
    return lambda *given: real(*given) if len(given) == count else real(*given, localtime(now()))


_Names = dict[str, Any]


def _bound_by_the_user(clocks: dict[int, Any]) -> list[tuple[_Names, str, Any, Any]]:
    """Where the user's modules hold a clock by a name of their own: (names, name, it, another)."""
    modules = [module for name, module in list(sys.modules.items()) if _is_of_the_user(name)]
    return [
        (vars(module), name, value, clocks[id(value)])
        for module in modules
        for name, value in list(vars(module).items())
        if id(value) in clocks
    ]


def _is_of_the_user(name: str) -> bool:
    module = sys.modules.get(name)
    return isinstance(module, ModuleType) and not is_installed(name)


def _of_a_time(real: Any, now: Callable[[], float]) -> Any:
    return lambda seconds=None: real(now() if seconds is None else seconds)


@contextmanager
def _changed(kind: type, methods: dict[str, Any]) -> Iterator[None]:
    """Patch methods of a built-in class; unchanged where that is not possible."""
    (held,) = gc.get_referents(vars(kind)) or [None]
    if not isinstance(held, dict):
        yield
        return
    missing = object()
    kept = {name: held.get(name, missing) for name in methods}
    held.update(methods)
    _modified(kind)
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is missing:
                del held[name]
            else:
                held[name] = value
        _modified(kind)


def _modified(kind: type) -> None:
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


@contextmanager
def another_time(number: int) -> Iterator[None]:
    """A fixed clock and random seed: for each number others, the first of them for 0."""
    _seed_random(number)
    start = _OTHER_TIMES[(number - 1) % len(_OTHER_TIMES)] if number else _THEN
    with another_clock(_running_from(start)):
        yield


def move(number: int) -> None:
    """A fixed time zone; not 0: another one, another command line, folder and environment.

    That environment answers whatever the user's code asks it. For a short-lived process: nothing is
    restored.
    """
    _seed_random(number)  # again: numpy may have been imported since
    os.environ["TZ"] = "OTHER-13:45" if number else "UTC"
    time.tzset()
    if number:
        _move_elsewhere()


def _move_elsewhere() -> None:
    for name in [name for name in os.environ if not name.startswith((*_KEPT, "TZ"))]:
        os.environ[name] = _ELSEWHERE
    os.environ.update(_FOLDERS)
    sys.argv[:] = [_ELSEWHERE]
    sys.path[:] = [str(Path(folder).absolute()) for folder in sys.path]
    os.chdir("/usr" if Path.cwd() == Path("/") else "/")
    os.environ.__class__ = _Answering


class _Answering(type(os.environ)):  # type: ignore[misc]
    """An environment in which every name is set that the user's own code asks for."""

    def __getitem__(self, name: str) -> str:
        try:
            found: str = super().__getitem__(name)
        except KeyError:
            if not _is_asked_by_the_user():
                raise
            return _ELSEWHERE
        return found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or _is_asked_by_the_user()


_ON_THE_WAY = ("os", "collections.abc", "_collections_abc", __name__)


def _is_asked_by_the_user() -> bool:
    """Is it the user's code that reads the environment, not a library that it calls?"""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__") in _ON_THE_WAY:
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "")
    return name not in sys.modules or _is_of_the_user(name)


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """A fixed clock and random seed in this process, restored afterwards."""
    numbers = sys.modules.get("numpy.random")
    state, bits = random.getstate(), os.urandom
    drawn = numbers.get_state() if numbers else None
    _seed_random(seed)
    try:
        with another_clock(_running_from(_THEN)):
            yield
    finally:
        os.urandom = random._urandom = bits  # type: ignore[attr-defined]
        random.setstate(state)
        if numbers:
            numbers.set_state(drawn)


def _seed_random(seed: int) -> None:
    random.seed(seed)
    numbers = sys.modules.get("numpy.random")
    if numbers:
        numbers.seed(seed % 2**32)
    os.urandom = random._urandom = _drawn_here(seed)  # type: ignore[attr-defined]


def _drawn_here(seed: int) -> Callable[[int], bytes]:
    """`os.urandom` with a seed in this thread; other threads still get random bytes."""
    drawn, real, me = random.Random(seed).randbytes, os.urandom, threading.get_ident()
    return lambda size: (drawn if threading.get_ident() == me else real)(size)


def _running_from(start: float) -> Callable[[], float]:
    readings = itertools.count()
    return lambda: start + _TICK_S * next(readings)
