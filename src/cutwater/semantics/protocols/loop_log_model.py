"""Executions of a loop that feeds back through a log, as a `Model`, and what may be released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from cutwater.semantics.protocols.loop_log import LoopLog
from cutwater.semantics.protocols.loop_log_world import LoopCase, LoopWorld, Released, Token

__all__ = ["LoopModel", "LoopMove", "failure_free", "is_all_released", "is_released_in_order"]


class LoopMove(msgspec.Struct, frozen=True):
    """A step, by the name of its rule."""

    rule: str
    choice: bool = False
    """`plan`: does an input epoch enter? `run_tasks`: are rows written in the reverse order?"""
    who: str = ""
    words: str = ""
    """What it does."""

    def __str__(self) -> str:
        return f"{self.who} {self.words}"


class LoopModel:
    """All executions of a case.

    Examples
    --------
    >>> model = LoopModel(LoopLog(LoopCase(inputs=((Token("a", 1),),), crashes=0)))
    >>> (world,) = model.initial_states()
    >>> for _ in range(3):
    ...     (move,) = model.actions(world)
    ...     print(move)
    ...     world = model.step(world, move)
    run 1 starts
    run 1 plans epoch 0 to read input epoch 0
    run 1 runs the tasks of epoch 0
    """

    def __init__(self, protocol: LoopLog) -> None:
        self.protocol, self.case = protocol, protocol.case
        self._last: tuple[LoopWorld | None, dict[LoopMove, LoopWorld]] = (None, {})

    def initial_states(self) -> Iterable[LoopWorld]:
        """Nothing is read, nothing is durable, nothing runs."""
        budget = (self.case.crashes, self.case.losses)
        return (LoopWorld((), 0, 0, (), (), (), (), 0, 0, None, *budget),)

    def actions(self, state: LoopWorld) -> list[LoopMove]:
        """The possible moves: steps of the run, a start, then faults."""
        return list(self._successors(state))

    def step(self, state: LoopWorld, action: LoopMove) -> LoopWorld:
        """The world after a step."""
        return self._successors(state)[action]

    def observation(self, state: LoopWorld) -> Released:
        """What readers of the sink see."""
        return state.shown

    def is_at_rest(self, state: LoopWorld) -> bool:
        """Can only faults still happen?"""
        return all(move.rule in _FAULTS for move in self.actions(state))

    def _successors(self, state: LoopWorld) -> dict[LoopMove, LoopWorld]:
        if self._last[0] is not state:
            self._last = (state, dict(self._moves(state)))
        return self._last[1]

    def _moves(self, w: LoopWorld) -> Iterator[tuple[LoopMove, LoopWorld]]:
        p, who = self.protocol, f"run {w.run.number if w.run else w.starts + 1}"
        found: list[tuple[str, bool, LoopWorld | None]] = [
            ("start", False, p.start(w) if not self._is_done(w) else None),
            *(("plan", choice, p.plan(w, choice)) for choice in (True, False)),
            *(("run_tasks", choice, p.run_tasks(w, choice)) for choice in (False, True)),
            ("finish", False, p.finish(w)),
            ("clean", False, p.clean(w)),
            ("crash", False, p.crash(w)),
            ("lose_power", False, p.lose_power(w)),
        ]
        for rule, choice, after in found:
            if after is not None and after != w:
                is_reversed = rule == "run_tasks" and choice
                words = _DESCRIPTIONS[rule](p, w, after) + (
                    ", which write in reverse" if is_reversed else ""
                )
                yield LoopMove(rule, choice, who, words), after

    def _is_done(self, w: LoopWorld) -> bool:
        return len(w.shown) == len(self.case.inputs) and self.protocol.is_sealed(w)


_FAULTS = frozenset({"crash", "lose_power"})


def _plan(p: LoopLog, w: LoopWorld, after: LoopWorld) -> str:
    plan = after.plans[-1]
    reads = [
        *([f"input epoch {plan.reads}"] if plan.reads >= 0 else []),
        *(["the log"] if plan.end > plan.start else []),
    ]
    does = [
        *([f"to read {' and '.join(reads)}"] if reads else []),
        *([f"to release input epoch {plan.leaves}"] if plan.leaves >= 0 else []),
    ]
    return f"plans epoch {len(w.plans)} {' and '.join(does)}"


def _run_tasks(p: LoopLog, w: LoopWorld, after: LoopWorld) -> str:
    assert after.run is not None
    return f"runs the tasks of epoch {after.run.epoch}"


def _finish(p: LoopLog, w: LoopWorld, after: LoopWorld) -> str:
    assert w.run is not None
    what = p.order_of_an_epoch()[w.run.done]
    if what == "commit":
        return f"commits epoch {w.run.epoch}"
    if p.is_published(w, what, w.run.epoch):
        return f"finds the {what} published"
    if what == "sink" and w.run.work and w.run.work.released:
        ((number, values),) = w.run.work.released
        return f"releases input epoch {number} as [{' '.join(values)}]"
    return f"publishes the {what}"


def _clean(p: LoopLog, w: LoopWorld, after: LoopWorld) -> str:
    return "cleans the logs"


_DESCRIPTIONS: dict[str, Callable[[LoopLog, LoopWorld, LoopWorld], str]] = {
    "start": lambda p, w, after: "starts",
    "plan": _plan,
    "run_tasks": _run_tasks,
    "finish": _finish,
    "clean": _clean,
    "crash": lambda p, w, after: "is killed",
    "lose_power": lambda p, w, after: "loses power",
}


def failure_free(case: LoopCase) -> Released:
    """What is released without failures: each input epoch iterated to its end before the next.

    Computed from the definition of a loop, not by the protocol.
    """
    released, state = [], ""
    for number, tokens in enumerate(case.inputs):
        state = state if case.is_state_shared else ""
        values, todo = list[str](), list(tokens)
        while todo:
            for token in todo:
                state += token.name
                values.append(state)
            todo = [Token(token.name, token.rounds - 1) for token in todo if token.rounds]
        released.append((number, tuple(values)))
    return tuple(released)


def is_released_in_order(case: LoopCase) -> Callable[[Released], bool]:
    """Is what readers see a prefix, in input epochs, of the run without failures?"""
    wanted = failure_free(case)
    return lambda shown: shown == wanted[: len(shown)]


def is_all_released(model: LoopModel) -> Callable[[LoopWorld], bool]:
    """Is every input epoch released, once nothing more can happen?"""
    wanted = len(model.case.inputs)
    return lambda w: len(w.shown) == wanted or not model.is_at_rest(w)
