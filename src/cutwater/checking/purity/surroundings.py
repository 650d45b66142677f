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
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["another_clock", "reproducible", "surroundings"]

_THEN = 1_704_110_400.0
"""A noon in 2024 from which the clock runs, so that checks are reproducible."""
_TICK_S = 0.001
"""How far the clock runs each time it is read: a loop that waits for a deadline ends."""
_LATER_S = 86_400.0 * 400 + 3_600 * 7 + 61
_TAKING_NOTHING = ("time", "monotonic", "perf_counter")
_OF_A_TIME = ("localtime", "gmtime", "ctime")
_KEPT = ("PATH", "HOME", "TMPDIR", "LD_", "PYTHON", "VIRTUAL_ENV", "CUTWATER", "COVERAGE")


@contextmanager
def another_clock(now: Callable[[], float]) -> Iterator[None]:
    """Clocks that return `now`: those of `time`, and of the classes in `datetime`."""
    kept = {name: getattr(time, name) for name in dir(time)}
    for name in _TAKING_NOTHING:
        setattr(time, name, now)
        setattr(time, f"{name}_ns", lambda: int(now() * 1e9))
    for name in _OF_A_TIME:
        setattr(time, name, _of_a_time(kept[name], now))
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
def surroundings(*, seed: int, are_others: bool) -> Iterator[None]:
    """A fixed clock and random seed; with `are_others`, another time zone and environment, too.

    For a short-lived process: environment and time zone are not restored.
    """
    _seed_random(seed)
    os.environ["TZ"] = "OTHER-13:45" if are_others else "UTC"
    time.tzset()
    if are_others:
        for name in [name for name in os.environ if not name.startswith((*_KEPT, "TZ"))]:
            os.environ[name] = "another environment"
    with another_clock(_running_from(_THEN + (_LATER_S if are_others else 0.0))):
        yield


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """A fixed clock and random seed in this process, which gets its own back."""
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
