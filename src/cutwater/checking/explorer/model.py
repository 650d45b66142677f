"""Models (anything with states, actions and steps), and the properties claimed of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

__all__ = ["Model", "Property", "always", "eventually", "sometimes"]

S = TypeVar("S", bound=Hashable)
A = TypeVar("A", bound=Hashable)


@runtime_checkable
class Model(Protocol[S, A]):
    """Three methods; states and actions are hashable, and a step is a function.

    A model may have more. ``observation(state)`` is what an outside observer sees of a state, by
    default all of it. A search can skip interleavings that no observer can distinguish if the
    model also has one of

    - ``independent(a, b)``: wherever two actions are both enabled, does taking one neither disable
      the other nor change the state that both together lead to?
    - ``ample(state, actions)``: a subset of the actions that is enough to show every sequence of
      observations, or None for all of them.

    With ``independent`` a search can also find every state in fewer steps.
    ``is_acyclic = True`` declares that no state of the model recurs on a run. All three hold for
    the class that declares them, with its methods; if a subclass overrides one of these, be it a
    helper that ``step`` calls, or if ``is_reducible`` is False, nothing is skipped.

    Examples
    --------
    >>> class Counter:
    ...     def initial_states(self):
    ...         return [0]
    ...     def actions(self, state):
    ...         return ["up"] if state < 3 else []
    ...     def step(self, state, action):
    ...         return state + 1
    >>> from cutwater.checking import check_model
    >>> check_model(Counter()).unique_states
    4
    """

    def initial_states(self) -> Iterable[S]:
        """The states a run may start in."""

    def actions(self, state: S) -> Iterable[A]:
        """The actions enabled in a state, always in the same order."""

    def step(self, state: S, action: A) -> S:
        """The state after an enabled action."""


@dataclass(frozen=True)
class Property:
    """A claim about the states of a model."""

    name: str
    kind: Literal["always", "sometimes", "eventually"]
    predicate: Callable[[Any], bool]
    is_of_observation: bool = False
    """Does the predicate get ``model.observation(state)`` instead of the state?"""
    fairness: Callable[[Any], Hashable] | None = None
    """For `eventually`: action -> its fairness class, or None for no fairness."""
    is_rare: Callable[[Any], bool] | None = None
    """For `eventually`: the actions that happen only finitely often."""


def always(name: str, predicate: Callable[[Any], bool], *, observed: bool = False) -> Property:
    """Every reachable state satisfies it; a counterexample is a path to one that does not.

    With ``observed=True`` the predicate gets ``model.observation(state)``, and the search may be
    reduced.
    """
    return Property(name, "always", predicate, observed)


def sometimes(name: str, predicate: Callable[[Any], bool], *, observed: bool = False) -> Property:
    """Some reachable state satisfies it; a discovery is a path to the first one."""
    return Property(name, "sometimes", predicate, observed)


def eventually(
    name: str,
    predicate: Callable[[Any], bool],
    *,
    fair: Callable[[Any], Hashable],
    rare: Callable[[Any], bool] | None = None,
) -> Property:
    """Every fair execution reaches a state that satisfies it.

    Parameters
    ----------
    fair
        The fairness class of an action, for instance its task; None for actions without fairness.
        An execution is fair if no class is enabled from some point on for ever and yet never taken
        (weak fairness), and if it does not stop where a fair action is enabled.
    rare
        Actions that a fair execution takes only finitely often, such as failures.
    """
    return Property(name, "eventually", predicate, False, fair, rare)
