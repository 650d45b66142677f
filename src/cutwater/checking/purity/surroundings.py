"""Another clock, time zone, environment and random seed, for as long as calls are made."""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["another_clock", "surroundings"]

_THEN = 1_704_110_400.0
"""A noon of 2024: the clock stands still there, so that the same check says the same."""
_LATER_S = 86_400.0 * 400 + 3_600 * 7 + 61
_TAKING_NOTHING = ("time", "monotonic", "perf_counter")
_OF_A_TIME = ("localtime", "gmtime", "ctime")
_KEPT = ("PATH", "HOME", "TMPDIR", "LD_", "PYTHON", "VIRTUAL_ENV", "CUTWATER", "COVERAGE")


@contextmanager
def another_clock(now: Callable[[], float]) -> Iterator[None]:
    """Clocks that say `now`: those of `time`, and of the classes in `datetime`."""
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
    """A class of the interpreter with other methods; as it is where that cannot be done."""
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
    """A fixed clock and random seed; if they are others, another time zone and environment too.

    For a process that ends soon: environment and time zone are not put back.
    """
    random.seed(seed)
    numbers = sys.modules.get("numpy.random")
    if numbers:
        numbers.seed(seed)
    drawn = random.Random(seed)
    os.urandom = drawn.randbytes
    random._urandom = drawn.randbytes  # type: ignore[attr-defined]
    os.environ["TZ"] = "OTHER-13:45" if are_others else "UTC"
    time.tzset()
    if are_others:
        for name in [name for name in os.environ if not name.startswith((*_KEPT, "TZ"))]:
            os.environ[name] = "another environment"
    then = _THEN + (_LATER_S if are_others else 0.0)
    with another_clock(lambda: then):
        yield
