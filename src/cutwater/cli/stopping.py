"""SIGTERM and Ctrl-C: the epoch that is running is finished; a second Ctrl-C stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["stops_asked_for"]


@contextmanager
def stops_asked_for(tell: Callable[[str], None]) -> Iterator[threading.Event]:
    """An event that is set once the process is asked to end, while something runs."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, _frame: Any) -> None:
        if asked.is_set():
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        asked.set()
        name = "SIGTERM" if number == signal.SIGTERM else "Ctrl-C"
        tell(f"{name}: the epoch that is running is finished first; Ctrl-C cuts it off")

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
