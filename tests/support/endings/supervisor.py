"""A small supervisor, as systemd with ``Restart=on-failure`` and ``RestartPreventExitStatus=2``."""

from collections.abc import Callable
from dataclasses import dataclass, field

RESTARTS = 4


@dataclass
class Supervised:
    """What became of a service."""

    codes: list[int] = field(default_factory=list)
    """The exit code of each start."""
    messages: list[str] = field(default_factory=list)
    """What each start wrote to standard error."""

    @property
    def is_up(self) -> bool:
        """Did it end well at last?"""
        return self.codes[-1] == 0


def supervise(start: Callable[[], tuple[int, str]]) -> Supervised:
    """Start a service; again if it ends with 1, no more if it ends with 2.

    `start` gives back the exit code of a start, and what it printed.
    """
    service = Supervised()
    while True:
        code, stderr = start()
        service.codes.append(code)
        service.messages.append(stderr)
        if code in (0, 2) or len(service.codes) > RESTARTS:
            return service
