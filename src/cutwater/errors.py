"""Errors: each message names the subject, the rule, the actual value and the way out.

::

    CutwaterError            everything this library raises on purpose
    ├── FlowError            a flow that is not well-formed
    ├── InputError           data that breaks a rule: records, times, orders
    ├── TargetError          a target on the command line that cannot be loaded
    └── RunError             a run that must not start, or cannot continue
        ├── RefusedError     a setting, a flow or an output must change first
        ├── StepError        a user's function failed, or returned something invalid
        └── RunFailure       a run that failed; a restart may help
            ├── FencedError      another run has taken over
            ├── ConnectorError   an external system did not answer, or refused
            └── ResourceError    the machine failed: a lock, a disk, memory, the JVM

Every error carries one `Problem` or more; validation collects them all before it raises.
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
    "extract",
    "many",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, with a message a user can act on.

    >>> print(Problem("unknown-field", "'at' is no field of Reading", "it has: sensor, time"))
    [unknown-field] 'at' is no field of Reading
      hint: it has: sensor, time
    """

    code: str
    """A stable name of the rule that was broken."""
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
    """A record, a time or an order breaks its rule."""


class TargetError(CutwaterError):
    """A target such as ``module:flow`` cannot be loaded."""


class RunError(CutwaterError):
    """A run must not start, or cannot continue."""


class RefusedError(RunError):
    """A run must not start as requested; nothing was written."""


class StepError(RunError):
    """A user's function failed, or returned something invalid; a restart fails the same way."""

    order: bytes = b""
    """Order key of the function's input within its epoch; empty if unknown."""

    def came_from(self, origin: str) -> StepError:
        """The same error, with the location the value came from."""
        return self._with_more(f"it came from {origin}")

    def of_key(self, key: object) -> StepError:
        """The same error, with the key whose state was passed to the function."""
        return self._with_more(f"the key is {key!r:.200}")

    def called_since(self, why: str) -> StepError:
        """The same error, with why the function was called, if not for an event."""
        return self._with_more(f"it was called since {why}")

    def _with_more(self, more: str) -> StepError:
        return StepError([replace(p, message=f"{p.message}; {more}") for p in self.problems])


class RunFailure(RunError):
    """A run failed; what it committed stays, and it can be restarted."""


class FencedError(RunFailure):
    """Another run has taken over; this one is fenced and must write nothing more."""

    @classmethod
    def because(
        cls, message: str, hint: str = "another run of this flow is active; stop one of the two"
    ) -> FencedError:
        """The error of a run that another one has overtaken."""
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

    >>> extract("Caused by: x " + embed(InputError(Problem("bad", "no")))).problems[0].message
    'no'
    """
    data = {"type": type(error).__name__, "problems": [asdict(p) for p in error.problems]}
    return _OPEN + json.dumps(data).encode().hex() + _CLOSE


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion for a mistyped name; empty if no known name is similar.

    >>> did_you_mean("untill", ["mode", "until"])
    "did you mean 'until'?"
    """
    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean '{close[0]}'?" if close else ""


def many(count: int, word: str) -> str:
    """A count with its noun, in singular or plural.

    >>> many(1, "crash"), many(2, "crash")
    ('1 crash', '2 crashes')
    """
    plural = {"crash": "crashes"}.get(word, word + "s")
    return f"{count:,} {word if count == 1 else plural}"


def extract(text: str) -> CutwaterError | None:
    """The first error that `embed` put into a text; None if there is none."""
    for found in re.finditer(f"{_OPEN}((?:[0-9a-f]{{2}})+){_CLOSE}", text):
        try:
            data = json.loads(bytes.fromhex(found[1]))
            problems = [Problem(**problem) for problem in data["problems"]]
            return _KINDS.get(data["type"], CutwaterError)(problems)
        except (ValueError, TypeError, KeyError):  # only looks like an embedded error
            continue
    return None
