"""P1, section 4, once more: the rules over plain dicts and sets, to compare the library with.

A configuration is a dict: ``tasks`` {p: (f, S, o)}, ``states`` {p: (archive, volatile)} with
archives as dicts and ``None`` for a failed task, ``N`` {p: {s: n}}, ``M`` and ``D`` sets of
``(n, s, e, d)`` where d is ``("EV", w)`` or ``"BD"``.
"""

from typing import Any

import msgspec

from cutwater.semantics import barriers
from cutwater.semantics.barrier_model import Fail, Recover, TakeBarrier, TakeEvent
from cutwater.trace import Header, TraceMessage, TraceStep

Plain = dict[str, Any]


def content(d: Any) -> Any:
    return "BD" if d is barriers.BARRIER else ("EV", d.payload)


def translated(c: barriers.Configuration) -> Plain:
    """The library's configuration as a dict."""
    tasks = c.graph.tasks
    volatile = [
        None if s.volatile is barriers.FAILED else (s.volatile.epoch, s.volatile.value)
        for s in c.states
    ]
    return {
        "tasks": {t.name: (t.f, t.inputs, t.output) for t in tasks},
        "states": {
            t.name: (dict(s.archive), v) for t, s, v in zip(tasks, c.states, volatile, strict=True)
        },
        "N": {
            t.name: dict(zip((*t.inputs, t.output), at, strict=True))
            for t, at in zip(tasks, c.positions, strict=True)
        },
        "M": {(m.n, m.stream, m.epoch, content(m.content)) for m in c.messages},
        "D": {(m.n, m.stream, m.epoch, content(m.content)) for m in c.inputs},
    }


def applied(actions: list[tuple[str, str, Any]], N_p: dict, M: set) -> tuple[dict, set] | None:
    """Definition 4.1, recursive as printed; None is 'undefined'."""
    if not actions:
        return N_p, M
    (sign, s, d), *rest = actions
    message = (N_p[s], s, *d)
    if sign == "-" and message not in M:
        return None
    return applied(rest, {**N_p, s: N_p[s] + 1}, M | {message} if sign == "+" else M)


def gce(c: Plain) -> int:
    """Definition 4.2."""
    return min(max(a) for a, _ in c["states"].values())


def out(c: Plain) -> set:
    """Definition 4.3."""
    return {m for m in c["M"] if m[2] <= gce(c)}


def on(M: set, s: str) -> set:
    """Definition 4.4."""
    return {m for m in M if m[1] == s}


def lcs(c: Plain) -> Plain:
    """Definition 4.5."""
    e = gce(c)
    return {
        **c,
        "states": {
            p: ({k: v for k, v in a.items() if k <= e}, (e + 1, a[e]))
            for p, (a, _) in c["states"].items()
        },
        "N": {p: {s: len(on(out(c), s)) for s in N_p} for p, N_p in c["N"].items()},
        "M": c["D"] | out(c),
    }


def s_step(c: Plain, p: str, actions: list, state: tuple) -> Plain | None:
    result = applied(actions, c["N"][p], c["M"])
    if result is None:
        return None
    return {
        **c,
        "states": {**c["states"], p: state},
        "N": {**c["N"], p: result[0]},
        "M": result[1],
    }


def local_steps(c: Plain, p: str) -> list[tuple[Any, list, tuple]]:
    """What I-Event, I-Border and F-Fail derive, for every word that is on any stream."""
    (f, S, o), (a, volatile) = c["tasks"][p], c["states"][p]
    steps: list[tuple[Any, list, tuple]] = [(("fail", p), [], (a, None))]
    if volatile is None:
        return steps
    e, v = volatile
    for s in S:
        for w in {m[3][1] for m in c["M"] if m[3] != "BD"}:
            v2, W = f(v, w)
            actions = [("-", s, (e, ("EV", w))), *(("+", o, (e, ("EV", x))) for x in W)]
            steps.append((("event", p, s, w), actions, (a, (e, v2))))
    actions = [*(("-", s, (e, "BD")) for s in S), ("+", o, (e, "BD"))]
    steps.append((("barrier", p), actions, ({**a, e: v}, (e + 1, v))))
    return steps


def successors(c: Plain) -> dict[Any, Plain]:
    """All steps of I from a configuration, by what was done."""
    found: dict[Any, Plain] = {}
    for p in c["tasks"]:
        for label, actions, state in local_steps(c, p):
            there = s_step(c, p, actions, state)
            if there is not None:
                found[label] = there
    if any(volatile is None for _, volatile in c["states"].values()):
        found["recover"] = lcs(c)
    return found


def label(move: Any) -> Any:
    """A move of the library as a label here."""
    match move:
        case Recover():
            return "recover"
        case Fail():
            return ("fail", move.task)
        case TakeBarrier():
            return ("barrier", move.task)
        case TakeEvent():
            return ("event", move.task, move.message.stream, move.message.content.payload)


# -- traces: is a sequence of steps a run of these tasks, for some functions?


def _message(m: TraceMessage) -> tuple | None:
    if m.barrier == (m.event is not msgspec.UNSET):
        return None  # neither or both
    d = "BD" if m.barrier else ("EV", msgspec.json.encode(m.event))
    return (m.n, m.stream, m.epoch, d)


class NoRun(Exception):
    """A step that no rule derives."""


def is_run(header: Header, steps: tuple[TraceStep, ...]) -> bool:
    """Is it a trace that is valid (6.3) for some functions of the tasks?

    A function is known by what it did: from the same value with the same word the same follows. A
    value is the history of words that led to it.
    """
    c: Plain = {
        "tasks": {t.name: (None, t.inputs, t.output) for t in header.tasks},
        "states": {t.name: ({0: ()}, (1, ())) for t in header.tasks},
        "N": {t.name: dict.fromkeys((*t.inputs, t.output), 0) for t in header.tasks},
        "M": set(),
    }
    for stream, epochs in header.inputs.items():
        n = 0
        for e, words in enumerate(epochs, 1):
            for d in (*(("EV", msgspec.json.encode(word)) for word in words), "BD"):
                c["M"].add((n, stream, e, d))
                n += 1
    c["D"] = set(c["M"])
    functions: dict[Any, Any] = {}
    try:
        for step in steps:
            c = _taken(c, step, functions)
    except NoRun:
        return False
    return True


def _taken(c: Plain, step: TraceStep, functions: dict) -> Plain:
    consumed = [_message(m) for m in step.consumed]
    produced = [_message(m) for m in step.produced]
    if step.rule == "recover":
        is_down = any(volatile is None for _, volatile in c["states"].values())
        _require(is_down and not consumed and not produced and step.task is None)
        _require(step.epoch == gce(c))
        return lcs(c)
    _require(step.task in c["tasks"] and None not in consumed and None not in produced)
    a, volatile = c["states"][step.task]
    _require(step.epoch == max(a) + 1)
    if step.rule == "fail":
        _require(not consumed and not produced)
        return {**c, "states": {**c["states"], step.task: (a, None)}}
    _require(volatile is not None)
    e, v = volatile
    _, S, o = c["tasks"][step.task]
    if step.rule == "event":
        _require(len(consumed) == 1)
        _, s, _, d = consumed[0]
        _require(s in S and d != "BD" and all(m[3] != "BD" for m in produced))
        words = tuple(m[3][1] for m in produced)
        _require(functions.setdefault((step.task, v, (s, d)), words) == words)
        actions = [("-", s, (e, d)), *(("+", o, (e, ("EV", w))) for w in words)]
        state = (a, (e, (*v, (s, d))))
    else:
        # the order in which a step lists its barriers is no matter
        _require(sorted(m[1] for m in consumed) == sorted(S))
        actions = [*(("-", s, (e, "BD")) for s in S), ("+", o, (e, "BD"))]
        state = ({**a, e: v}, (e + 1, v))
    there = s_step(c, step.task, actions, state)
    _require(there is not None)
    took = {(c["N"][step.task][s], s, *d) for sign, s, d in actions if sign == "-"}
    _require(took == set(consumed) and len(consumed) == len(took))
    at = c["N"][step.task][o]
    sent = [(at + i, s, *d) for i, (_, s, d) in enumerate(x for x in actions if x[0] == "+")]
    _require(sent == produced)
    return there


def _require(holds: Any) -> None:
    if not holds:
        raise NoRun
