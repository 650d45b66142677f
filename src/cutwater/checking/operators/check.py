"""The four properties that make an operator correct (P4, section 4.3), for any operator.

==============================  =============================================
P4                              here
==============================  =============================================
soundness, completeness         two user predicates, called on random monotone streams
``mono lxs W ⟹ mono (...) W``   monotonicity, with W empty
``prod lxs ⟹ prod (...)``       productivity: whenever the input owes nothing, the output owes
                                nothing `lag` inputs later
==============================  =============================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cutwater.checking.operators.properties import (
    Check,
    Completeness,
    Settled,
    Soundness,
    check_completeness,
    check_monotonicity,
    check_operator_purity,
    check_productivity,
    check_soundness,
)
from cutwater.checking.operators.report import Counterexample, OperatorReport, PropertyResult
from cutwater.checking.operators.streams import Samples, StreamSearch, require_hypothesis
from cutwater.errors import InputError, Problem
from cutwater.events import Event, uncompleted
from cutwater.operators import Operator
from cutwater.times import Product, check_order

__all__ = ["check_operator"]

_NUMBERS = tuple(range(4))
_GRID = tuple(Product(a, b) for a in range(3) for b in range(3))
_LETTERS = "abc"


def check_operator(
    op: Operator,
    *,
    soundness: Soundness | None = None,
    completeness: Completeness | None = None,
    times: Sequence[Any] | None = None,
    values: Sequence[Any] | Callable[[Any], Sequence[Any]] | None = None,
    settled: Settled | None = None,
    lag: int = 0,
    examples: int = 100,
    seed: int = 0,
) -> OperatorReport:
    """Look for a stream on which an operator is not correct, and shrink it.

    Parameters
    ----------
    op
        The operator. It gets random monotone streams of data and watermarks.
    soundness
        ``soundness(inputs, output)``: is this data output correct, given all inputs? Called for
        every data output of a stream that ends.
    completeness
        ``completeness(inputs, outputs)``: are all required outputs there? Called for streams that
        end, and for streams that do not end but whose watermarks have completed every item: the
        outputs must then be complete without the end.
    times
        Sample times, simplest first. By default small numbers, and pairs of them (`Product`):
        an operator should work over any partial order. Pass ``times=range(4)`` if yours does not.
    values
        Sample values, or a function from a time to sample values. By default three letters.
    settled
        ``settled(inputs)``: does an input that may continue owe nothing? By default it owes
        nothing if a watermark completes every item. Pass a stricter test for an operator that
        needs more, as `union` needs both sides to complete a time.
    lag
        The number of inputs by which the operator may lag in completing its outputs.
    examples
        The number of streams to try over each order.
    seed
        The same seed tries the same streams.

    Returns
    -------
    OperatorReport
        One result each for soundness, completeness, monotonicity and productivity: holds, a
        counterexample, or not checked. It is true if there is no counterexample; it never raises
        for one. If the operator is not a pure function of states and events (a repeated step
        differs, a state is changed in place, it raises, it emits something other than an event),
        that is the result `purity`, and the others are not checked.

    Notes
    -----
    At most a thousand of the outputs at the end of the input are checked.

    Examples
    --------
    >>> from cutwater.events import Data, Watermark
    >>> from cutwater.operators import map_values
    >>> double = map_values(lambda time, value: value + value)
    >>> def doubles_an_input(inputs, output):
    ...     return any(output.value == 2 * e.value for e in inputs if isinstance(e, Data))
    >>> print(check_operator(double, soundness=doubles_an_input))
    soundness holds on 200 streams
    completeness was not checked: no predicate was given
    monotonicity holds on 200 streams
    productivity holds on 200 streams

    An operator that forgets watermarks:

    >>> def forget(state, event):
    ...     return state, [event] if isinstance(event, Data) else []
    >>> print(check_operator(Operator(None, forget))["productivity"])
    productivity does not hold: time 0 was not completed, although the input owes nothing
      in   Data(time=0, value='a')  # or any other value
      in   Watermark(time=3)
      out  Data(time=0, value='a')  # here
    """
    chosen = _samples(times, values, lag, examples)
    require_hypothesis()
    settled = _Remembering(settled or _owes_nothing)
    found: dict[str, PropertyResult] = {}
    tried = 0
    for samples in chosen:
        closing = samples.closing()
        checks = {
            "purity": check_operator_purity(op, closing, lag),
            "soundness": soundness and check_soundness(op, soundness),
            "completeness": completeness
            and check_completeness(op, completeness, closing, settled, lag),
            "monotonicity": check_monotonicity(op),
            "productivity": check_productivity(op, closing, settled, lag),
        }
        wanted = {name: check for name, check in checks.items() if check and name not in found}
        search = StreamSearch(samples, examples, seed)
        failed, more = _first_failures(search, wanted)
        for name, (position, counterexample) in failed.items():
            shrunk = _shrunk(search, wanted[name], counterexample)
            found[name] = PropertyResult(name, tried + position, shrunk)
        tried += more
        if "purity" in found:
            break
    unknown = {
        "soundness": "" if soundness else "no predicate was given",
        "completeness": "" if completeness else "no predicate was given",
        "monotonicity": "",
        "productivity": "" if settled.was_true else "the input was never settled",
    }
    return OperatorReport(tuple(_results(found, unknown, tried)), seed)


class _Remembering:
    """A predicate on inputs that records whether it was ever true."""

    def __init__(self, predicate: Settled) -> None:
        self.predicate = predicate
        self.was_true = False

    def __call__(self, inputs: list[Event]) -> bool:
        is_true = bool(self.predicate(inputs))
        self.was_true |= is_true
        return is_true


def _owes_nothing(inputs: Sequence[Event]) -> bool:
    return not uncompleted(inputs)


def _first_failures(
    search: StreamSearch, checks: Mapping[str, Check]
) -> tuple[dict[str, tuple[int, Counterexample]], int]:
    """One pass over the streams: the first failure of each check, and the number of streams.

    Stops at an impure operator, on which the other checks mean nothing.
    """
    failed: dict[str, tuple[int, Counterexample]] = {}
    tried = 0

    def look(stream: list[Event]) -> bool:
        nonlocal tried
        if "purity" in failed:
            return False
        tried += 1
        for name, check in checks.items():
            counterexample = None if name in failed else check(stream)
            if counterexample:
                failed[name] = tried, counterexample
                if name == "purity":
                    break
        return False

    search.smallest(look)
    impure = failed.get("purity")
    return ({"purity": impure} if impure else failed), tried


def _shrunk(search: StreamSearch, check: Check, first: Counterexample) -> Counterexample:
    """The counterexample of the smallest stream; the first one if an impurity does not recur."""
    stream = search.smallest(lambda stream: check(stream) is not None)
    counterexample = check(stream) if stream is not None else None
    if stream is None or counterexample is None:
        return first
    free = search.any_value(stream, lambda changed: check(changed) is not None)
    kept = frozenset(index for index in free if index < len(counterexample.inputs))
    return replace(counterexample, any_value=kept)


def _results(
    found: Mapping[str, PropertyResult], unknown: Mapping[str, str], tried: int
) -> Iterator[PropertyResult]:
    impure = found.get("purity")
    if impure:
        yield impure
    for name, why_not in unknown.items():
        if impure:
            yield PropertyResult(name, 0, not_checked="the operator is not pure")
        elif name in found:
            yield found[name]
        elif why_not:
            yield PropertyResult(name, 0, not_checked=why_not)
        else:
            yield PropertyResult(name, tried)


def _samples(
    times: Sequence[Any] | None,
    values: Sequence[Any] | Callable[[Any], Sequence[Any]] | None,
    lag: int,
    examples: int,
) -> list[Samples]:
    """The samples to draw streams from, one per order; `InputError` for invalid arguments."""
    orders = [_NUMBERS, _GRID] if times is None else [tuple(times)]
    problems = [
        Problem("bad-argument", message, hint)
        for is_bad, message, hint in [
            (lag < 0, f"lag is {lag}; an operator cannot be early", "give 0 or more"),
            (examples < 1, f"examples is {examples}; it takes one to check", "give 1 or more"),
            (not all(orders), "times is empty; a stream needs times", "give some sample times"),
        ]
        if is_bad
    ]
    of = _values_of(values)
    problems += [
        Problem("bad-argument", f"there are no values for the time {time!r}", "give some samples")
        for order in orders
        for time in order
        if not of(time)
    ]
    if problems:
        raise InputError(problems)
    for order in orders:
        check_order(order)
    return [Samples.of(order, of) for order in orders]


def _values_of(
    values: Sequence[Any] | Callable[[Any], Sequence[Any]] | None,
) -> Callable[[Any], Sequence[Any]]:
    if callable(values):
        return values
    samples = _LETTERS if values is None else values
    return lambda _time: samples
