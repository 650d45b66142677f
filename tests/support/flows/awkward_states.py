"""States, and outputs, that are not what their annotations declare; each gives a sentence."""

from __future__ import annotations

import datetime as dt
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec

import cutwater as cw


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@dataclass
class Place:
    country: str = "nl"


@dataclass
class Auth:
    place: Place = field(default_factory=Place)


@dataclass
class Match:
    auth: Auth = field(default_factory=Auth)
    count: int = 0


@dataclass
class CountryWithCity(Place):
    city: str = "Delft"


@dataclass
class Two:
    first: list[int] = field(default_factory=list)
    second: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Made:
    """Counts how often it was made, as a decoder does, too."""

    n: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", self.n + 1)


@dataclass
class Raised:
    n: int = 0

    def __post_init__(self) -> None:
        self.n += 1


@dataclass
class Seeded:
    n: int = 0
    seed: InitVar[int] = 5

    def __post_init__(self, seed: int) -> None:
        self.n += seed


@dataclass
class Refusing:
    n: int = 0

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("below zero")


@dataclass
class Bounded:
    n: Annotated[int, msgspec.Meta(ge=0)] = 0


@dataclass
class Account:
    parts: list[Bounded] = field(default_factory=lambda: [Bounded()])


class Bare:
    def __init__(self, count: int = 0) -> None:
        self.count = count


@cw.task(initial=Match())
def extra_attribute(state: Match, item: Item) -> tuple[Match, list[int]]:
    seen = getattr(state, "seen", 0) + 1
    after = Match(Auth(Place(state.auth.place.country)), state.count + 1)
    after.seen = seen
    return after, [seen]


@cw.task(initial=Match())
def subclass(state: Match, item: Item) -> tuple[Match, list[int]]:
    is_city = isinstance(state.auth.place, CountryWithCity)
    return Match(Auth(CountryWithCity()), state.count + 1), [int(is_city)]


@cw.task(initial=0.0)
def int_in_float(state: float, item: Item) -> tuple[float, list[str]]:
    return 1 if state == 0.0 else state + 1, [repr(state)]


@cw.task(initial=None)
def zoned(state: dt.datetime | None, item: Item) -> tuple[dt.datetime | None, list[str]]:
    start = dt.datetime(2024, 3, 30, 12, tzinfo=ZoneInfo("Europe/Amsterdam"))
    after = (state or start) + dt.timedelta(days=1)
    return after, [after.isoformat()]


@cw.task(initial=[])
def tuple_in_list(state: list[int], item: Item) -> tuple[list[int], list[str]]:
    return (*state, item.size), [type(state).__name__]


@cw.task(initial=Two())
def shared_list(state: Two, item: Item) -> tuple[Two, list[str]]:
    import copy

    after = copy.deepcopy(state)
    if not after.first:
        after.second = after.first
    after.first.append(item.size)
    return after, [repr(after)]


@cw.task(initial={})
def counter_in_dict(state: dict[str, int], item: Item) -> tuple[dict[str, int], list[str]]:
    after = Counter(state)
    after[item.name] += 1
    return after, [type(state).__name__]


@cw.task(initial={})
def defaultdict_in_dict(state: dict[str, int], item: Item) -> tuple[dict[str, int], list[str]]:
    after = defaultdict(int, state)
    after[item.name] += 1
    return after, [type(state).__name__]


@cw.task(initial={})
def ordered_in_dict(state: dict[str, int], item: Item) -> tuple[dict[str, int], list[str]]:
    return OrderedDict(state, **{item.name: item.size}), [type(state).__name__]


@cw.task(initial=1)
def large_number(state: int, item: Item) -> tuple[int, list[int]]:
    return state << 70, [item.size]


@cw.task(initial="")
def lone_surrogate(state: str, item: Item) -> tuple[str, list[str]]:
    return "\ud800", [item.name]


@cw.task(initial=Bare())
def plain_class(state: Bare, item: Item) -> tuple[Bare, list[int]]:
    return Bare(state.count + 1), [state.count]


@cw.task(initial=Made())
def made_again(state: Made, item: Item) -> tuple[Made, list[int]]:
    return state, [state.n]


@cw.task(initial=Raised())
def raised_again(state: Raised, item: Item) -> tuple[Raised, list[int]]:
    return state, [state.n]


@cw.task(initial=Seeded(0, 0))
def seeded_again(state: Seeded, item: Item) -> tuple[Seeded, list[int]]:
    return Seeded(state.n, 0), [state.n]


@cw.task(initial=Refusing())
def refused_again(state: Refusing, item: Item) -> tuple[Refusing, list[int]]:
    after = Refusing(0)
    after.n = state.n - 1
    return after, [after.n]


@cw.task(initial=Account())
def out_of_bounds(state: Account, item: Item) -> tuple[Account, list[int]]:
    return Account([Bounded(state.parts[0].n - 1)]), [item.size]


@cw.task(initial=Match())
def deep_in_a_field(state: Match, item: Item) -> tuple[Match, list[int]]:
    return Match(Auth(Place(7)), state.count + 1), [state.count]


@cw.task(initial=())
def records_in_a_bare_tuple(state, item: Item) -> tuple[tuple, list[str]]:
    return (*state, item), [type((*state, item)[0]).__name__]


@cw.task(initial=Decimal(0))
def float_in_decimal(state: Decimal, item: Item) -> tuple[Decimal, list[str]]:
    return float(state) + 1.5, [repr(state)]


@cw.task(initial=[])
def deque_in_list(state: list[int], item: Item) -> tuple[list[int], list[int]]:
    return deque([*state, item.size], maxlen=2), [len(state)]


@cw.task(initial=0)
def emits_another_type(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + 1, [Item(item.name, "many")]


@cw.task(initial=0)
def emits_another_class(state: int, item: Item) -> tuple[int, list[int]]:
    return state + 1, [item.name]


PATHS: list[tuple[cw.Task, str]] = [
    (extra_attribute, "'seen' is "),
    (subclass, "'auth.place' is CountryWithCity("),
    (int_in_float, "(int), and comes back as "),
    (zoned, "Europe/Amsterdam"),
    (tuple_in_list, "(tuple), and comes back as ["),
    (counter_in_dict, "(Counter), and comes back as {"),
    (defaultdict_in_dict, "(defaultdict), and comes back as {"),
    (ordered_in_dict, "(OrderedDict), and comes back as {"),
    (large_number, "at most 64 bits"),
    (lone_surrogate, "a lone surrogate is not"),
    (plain_class, "Bare cannot be encoded"),
    (made_again, "'n' is 1 (int), and comes back as 2 (int)"),
    (raised_again, "'n' is 1 (int), and comes back as 2 (int)"),
    (seeded_again, "'n' is 0 (int), and comes back as 5 (int)"),
    (refused_again, "which is lost: below zero"),
    (out_of_bounds, "'parts[0].n' is -"),
    (deep_in_a_field, "'auth.place.country' is 7 (int)"),
    (records_in_a_bare_tuple, "'[0]' is Item("),
    (float_in_decimal, "(float)"),
    (deque_in_list, "(deque)"),
]
"""Tasks whose state does not come back, and the message for it."""

EMITTING: list[tuple[cw.Task, str]] = [
    (emits_another_type, "'size' is 'many' (str); it is declared as int"),
    (emits_another_class, "(str); it is declared as int"),
]
"""Tasks that emit what their annotation does not allow, and the message for it."""


def flow_of(task: cw.Task) -> cw.Flow:
    flow = cw.Flow(task.name)
    flow.sink("out", flow.source("items", Item).key_by("name").apply(task))
    return flow


def items() -> list[Any]:
    return [Item("a", 1), Item("a", 2), cw.BARRIER, Item("a", 3), Item("a", 4), cw.BARRIER]
