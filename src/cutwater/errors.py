"""Errors are sentences: subject, rule, actual value, way out.

::

    CutwaterError            everything this library raises on purpose
    ├── FlowError            a flow that cannot mean anything
    ├── InputError           data that does not fit: records, times, orders
    ├── TargetError          a name on the command line that leads nowhere
    └── RunError             a run that must not start, or could not go on
        ├── RefusedError     somebody must change something first: a setting, a flow, an output
        ├── StepError        a function of the user's failed, or made what it must not
        └── RunFailure       a run that could not go on; starting it again may help
            ├── FencedError      another run has taken over
            ├── ConnectorError   a system that is read or written did not do its part
            └── ResourceError    the machine did not: a lock, a disk, memory, the JVM

Every error carries one or more `Problem`; validation collects them all before it raises.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

__all__ = [
    "ConnectorError",
    "CutwaterError",
    "FencedError",
    "FlowError",
    "InputError",
    "Problem",
    "RefusedError",
    "ResourceError",
    "RunError",
    "RunFailure",
    "StepError",
    "TargetError",
    "did_you_mean",
    "embed",
    "many",
    "recover",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, in words a user can act on.

    >>> print(Problem("unknown-field", "'at' is no field of Reading", "it has: sensor, time"))
    [unknown-field] 'at' is no field of Reading
      hint: it has: sensor, time
    """

    code: str
    """A stable name for the rule that was broken."""
    message: str
    """Subject, rule and actual value, in one sentence."""
    hint: str = ""
    """The way out."""

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class CutwaterError(Exception):
    """Base of all errors raised on purpose; its text is meant to be shown to a user."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[CutwaterError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class FlowError(CutwaterError):
    """The flow is not well-formed; all its problems are listed."""


class InputError(CutwaterError):
    """A record, a time or an order does not keep its rule."""


class TargetError(CutwaterError):
    """A target such as ``module:flow`` cannot be loaded."""


class RunError(CutwaterError):
    """A run must not start, or could not go on."""


class RefusedError(RunError):
    """A run must not start as it was asked for; nothing was written."""


class StepError(RunError):
    """A function of the user's failed, or made what it must not; so it would the next time."""

    order: bytes = b""
    """Where what the function was given stands in the order of its epoch, if that is known."""

    def came_from(self, place: str) -> StepError:
        """The same, with the place that the value came from."""
        said = [replace(p, message=f"{p.message}; it came from {place}") for p in self.problems]
        return StepError(said)


class RunFailure(RunError):
    """A run could not go on; what it finished stays, and it can be run again."""


class FencedError(RunFailure):
    """Another run has taken over; this one must write nothing more."""

    @classmethod
    def because(
        cls, message: str, hint: str = "another run of this flow is active; stop one of the two"
    ) -> FencedError:
        """What a run is told that was overtaken."""
        return cls(Problem("fenced", message, hint))


class ConnectorError(RunFailure):
    """A system that a source or a sink talks to did not answer, or refused."""


class ResourceError(RunFailure):
    """The machine did not provide what a run needs: a lock, a disk, memory, the JVM."""


_KINDS: dict[str, type[CutwaterError]] = {
    kind.__name__: kind
    for kind in (
        FlowError,
        InputError,
        TargetError,
        RunError,
        RefusedError,
        StepError,
        RunFailure,
        FencedError,
        ConnectorError,
        ResourceError,
    )
}
_OPEN, _CLOSE = "<<cutwater:", ":cutwater>>"


def embed(error: CutwaterError) -> str:
    """The error as one line of ASCII that survives being quoted in another error's text.

    >>> recover("Caused by: x " + embed(InputError(Problem("bad", "no")))).problems[0].message
    'no'
    """
    data = {"type": type(error).__name__, "problems": [asdict(p) for p in error.problems]}
    return _OPEN + json.dumps(data).encode().hex() + _CLOSE


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question for somebody who may have mistyped a name; nothing if no name is near.

    >>> did_you_mean("untill", ["mode", "until"])
    "did you mean 'until'?"
    """
    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean '{close[0]}'?" if close else ""


def many(count: int, word: str) -> str:
    """A number of things in words.

    >>> many(1, "crash"), many(2, "crash")
    ('1 crash', '2 crashes')
    """
    plural = {"crash": "crashes"}.get(word, word + "s")
    return f"{count:,} {word if count == 1 else plural}"


def recover(text: str) -> CutwaterError | None:
    """The first error that `embed` hid in a text, or None."""
    for found in re.finditer(f"{_OPEN}((?:[0-9a-f]{{2}})+){_CLOSE}", text):
        try:
            data = json.loads(bytes.fromhex(found[1]))
            problems = [Problem(**problem) for problem in data["problems"]]
            return _KINDS.get(data["type"], CutwaterError)(problems)
        except (ValueError, TypeError, KeyError):  # only looks like one
            continue
    return None
