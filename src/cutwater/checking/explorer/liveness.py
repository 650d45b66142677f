"""Is there a fair execution that never reaches its goal? (P1, Definition B.12, executable.)

As printed the definition admits no execution: F-Fail is always enabled, so no execution is maximal.
We read it as: rare actions happen finitely often, an execution does not stop where a fair action
is enabled, and it is weakly fair to each class of actions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from cutwater.checking.explorer.known import Known
from cutwater.checking.explorer.model import Property
from cutwater.checking.explorer.paths import Path

__all__ = ["Edges", "unfulfilled"]

Edges = Callable[[int], Sequence[tuple[Any, int]]]
"""Given the number of a state, returns its actions and the numbers of their successors."""


def unfulfilled(claim: Property, known: Known) -> Path[Any, Any] | None:
    """A fair execution on which the claim is never true; None if there is none.

    The path ends where the execution stops, or cycles from ``path.loop`` for ever.
    """
    parents = _avoiding(claim, known)
    for state in parents:
        is_owed = any(_class(claim, action) is not None for action, _ in known.edges(state))
        if known.is_expanded(state) and not is_owed:
            return _labelled(known, _path(parents, state))

    def inside(state: int) -> list[tuple[Any, int]]:
        return [
            (action, there)
            for action, there in known.edges(state)
            if there in parents and not (claim.is_rare and claim.is_rare(action))
        ]

    for circle in _circles(parents, inside):
        if _is_fair(claim, circle, inside, known.edges):
            return _labelled(known, _lasso(parents, circle, inside))
    return None


def _labelled(known: Known, path: Path[int, Any]) -> Path[Any, Any]:
    states = tuple(known.states[number] for number in path.states)
    return Path(states[0], path.actions, states, path.loop)


def _class(claim: Property, action: Any) -> Hashable:
    return claim.fairness(action) if claim.fairness else None


def _avoiding(claim: Property, known: Known) -> dict[int, Any]:
    """The states that are reachable with the claim false all the way, each with its parent step."""
    parents: dict[int, Any] = {
        n: None for n in known.starts() if not claim.predicate(known.states[n])
    }
    waiting = deque(parents)
    while waiting:
        state = waiting.popleft()
        for action, there in known.edges(state):
            if there < 0 or there in parents or claim.predicate(known.states[there]):
                continue
            parents[there] = (state, action)
            waiting.append(there)
    return parents


def _is_fair(claim: Property, circle: set[int], inside: Edges, edges: Edges) -> bool:
    """May an execution stay in a cycle for ever and be fair to every class of actions?"""
    taken = {_class(claim, a) for s in circle for a, there in inside(s) if there in circle}
    possible = [{_class(claim, action) for action, _ in edges(state)} for state in circle]
    owed = set.intersection(*possible) - {None}
    return owed <= taken


def _circles(states: Iterable[int], inside: Edges) -> list[set[int]]:
    """The strongly connected components with an internal edge (Tarjan, without recursion)."""
    index: dict[Any, int] = {}
    low: dict[Any, int] = {}
    stack: list[Any] = []
    on_stack: set[Any] = set()
    found = []
    for root in states:
        if root in index:
            continue
        work = [(root, iter([there for _, there in inside(root)]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            state, rest = work[-1]
            for there in rest:
                if there not in index:
                    index[there] = low[there] = len(index)
                    stack.append(there)
                    on_stack.add(there)
                    work.append((there, iter([t for _, t in inside(there)])))
                    break
                if there in on_stack:
                    low[state] = min(low[state], index[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == index[state]:
                    part = set()
                    while state not in part:
                        part.add(stack[-1])
                        on_stack.discard(stack.pop())
                    if len(part) > 1 or any(there == state for _, there in inside(state)):
                        found.append(part)
    return found


def _path(parents: Mapping[Any, Any], state: Any) -> Path[Any, Any]:
    states, actions = [state], []
    while parents[states[-1]] is not None:
        before, action = parents[states[-1]]
        states.append(before)
        actions.append(action)
    return Path(states[-1], tuple(reversed(actions)), tuple(reversed(states)))


def _lasso(parents: Mapping[Any, Any], circle: set[Any], inside: Edges) -> Path[Any, Any]:
    """The path to a cycle and once around it through every edge inside it."""
    start = next(state for state in parents if state in circle)  # the first one found
    path = _path(parents, start)
    states, actions = list(path.states), list(path.actions)
    owed = {(s, a, there) for s in circle for a, there in inside(s) if there in circle}
    while owed or states[-1] != start:
        goal = {edge[0] for edge in owed} or {start}
        for action, there in _way(states[-1], goal, circle, inside, owed):
            owed.discard((states[-1], action, there))
            states.append(there)
            actions.append(action)
    return Path(path.initial, tuple(actions), tuple(states), loop=len(path))


def _way(
    start: Any, goal: set[Any], circle: set[Any], inside: Edges, owed: set[tuple[Any, Any, Any]]
) -> list[tuple[Any, Any]]:
    """Steps within the cycle to a goal, then along an edge from there that is still unvisited."""
    links: dict[Any, Any] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if state in goal:
            way = []
            here = state
            while links[here] is not None:
                before, action = links[here]
                way.append((action, here))
                here = before
            way.reverse()
            step = next(((a, t) for a, t in inside(state) if (state, a, t) in owed), None)
            return [*way, step] if step else way
        for action, there in inside(state):
            if there in circle and there not in links:
                links[there] = (state, action)
                waiting.append(there)
    return []
