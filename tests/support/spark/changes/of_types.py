"""Changes of the types of states and of records."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from support.spark.changes.script import (
    A,
    B,
    Count,
    Flows,
    Item,
    Line,
    a,
    b,
    changed_step,
    counting,
    refused,
    refused_somehow,
    runs,
)

import cutwater as cw
from cutwater.errors import extract

NEW = {**A, "name": "new"}


@dataclass(frozen=True)
class Seen:
    count: int = 0
    name: str = ""


@dataclass(frozen=True)
class Longer:
    total: int = 100
    count: int = 0
    name: str = ""
    sizes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class WithoutDefault:
    total: int
    count: int = 0
    name: str = ""


@dataclass(frozen=True)
class Shorter:
    count: int = 0


@dataclass(frozen=True)
class Retyped:
    count: float = 0
    name: str | None = ""


@dataclass(frozen=True)
class RetypedCount:
    count: float = 0
    name: str = ""


@dataclass(frozen=True)
class Renamed:
    count: int = 0
    title: str = ""


@dataclass(frozen=True)
class One:
    count: int = 0
    name: str = ""
    more: int = 1


@dataclass(frozen=True)
class Two:
    count: int = 0
    name: str = ""
    more: int = 2


@dataclass(frozen=True)
class Strict:
    name: str
    count: int = 0


@dataclass(frozen=True)
class Known:
    name: str = ""
    count: int = 0


@dataclass(frozen=True)
class Left:
    x: int = 0


@dataclass(frozen=True)
class Right:
    x: int = 0


@dataclass(frozen=True)
class Either:
    count: int = 0
    side: Left | Right = Left()


@dataclass(frozen=True)
class LongerEither:
    count: int = 0
    side: Left | Right = Left()
    more: int = 0


def keeping(state: type) -> cw.Flow:
    """A task that keeps a dataclass with a count and a name."""

    def keep(seen: state, item: Item) -> tuple[state, list[Count]]:
        changed = replace(seen, count=seen.count + 1)
        return changed, [Count(item.name, changed.count)]

    return counting(task=cw.task(initial=state(), name="keep")(keep))


def telling(state: type) -> cw.Flow:
    """One that shows the field `more`."""

    def keep(seen: state, item: Item) -> tuple[state, list[int]]:
        return replace(seen, count=seen.count + 1), [seen.more]

    return counting(task=cw.task(initial=state(), name="keep")(keep))


def beginning_with(state: Any) -> cw.Flow:
    """One that shows nothing."""

    def keep(seen: type(state), item: Item) -> tuple[type(state), list[Count]]:
        return seen, []

    return counting(task=cw.task(initial=state, name="keep")(keep))


@cw.task(initial=Longer(0), name="keep")
def keep_longer(seen: Longer, item: Item) -> tuple[Longer, list[Count]]:
    grown = replace(seen, count=seen.count + 1, total=seen.total + item.size)
    return grown, [Count(item.name, grown.count), Count(f"{item.name} in all", grown.total)]


def in_all(name: str, total: int) -> Line:
    return {"name": f"{name} in all", "count": total}


def state_changed(words: str) -> str:
    return changed_step("keep", words)


def field_changed(name: str, words: str) -> str:
    return state_changed(f"field '{name}' of the state of step 'keep' {words}")


STATES: dict[str, list[Any]] = {
    "A field with a default added to a state": [
        runs(keeping(Seen), A, A),
        runs(counting(task=keep_longer), A, shows=[a(3), in_all("a", 101)]),
        runs(
            counting(task=keep_longer), NEW, shows=[{"name": "new", "count": 1}, in_all("new", 1)]
        ),
    ],
    "A field without a default added to a state": [
        runs(keeping(Seen), A),
        refused(
            beginning_with(WithoutDefault(0)), field_changed("total", "is new and has no default")
        ),
    ],
    "A field removed from a state": [
        runs(keeping(Seen), A),
        refused(keeping(Shorter), field_changed("name", "was removed")),
    ],
    "A field of a state retyped": [
        runs(keeping(Seen), A),
        refused(
            keeping(Retyped),
            field_changed("count", "was int and is float")
            + "\n"
            + field_changed("name", "was str and is str | None"),
        ),
    ],
    "A field of a state renamed": [
        runs(keeping(Seen), A),
        refused(keeping(Renamed), field_changed("name", "was removed")),
    ],
    "The default of a field of a state changed": [
        runs(keeping(Seen), A, B),
        runs(telling(One), A, shows=[1]),
        # a was kept anew since the field was added, b was not
        runs(telling(Two), A, shows=[1]),
        runs(telling(Two), B, shows=[2]),
    ],
    # What was kept before the field was added has none, however long ago.
    "The default of a field of a state removed": [
        runs(keeping(Seen), A),
        refused(beginning_with(Strict("")), field_changed("name", "had a default and has none")),
    ],
    "The class of a state renamed": [
        runs(keeping(Seen), A),
        runs(keeping(Known), A, shows=[a(2)]),
    ],
    # Where msgspec cannot tell the parts of a union, fields are written one after the other.
    "A field added to a state that is written without names": [
        runs(keeping(Either), A),
        refused(
            keeping(LongerEither),
            state_changed(
                "the state of step 'keep' was Either(count: int, side: Left(x: int) | "
                "Right(x: int)) and is LongerEither(count: int, side: Left(x: int) | "
                "Right(x: int), more: int)"
            ),
        ),
    ],
}


# --- records ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Short:
    name: str


@dataclass(frozen=True)
class ShortAndMore:
    name: str
    more: int = 7


@dataclass(frozen=True)
class ShortAndRequired:
    name: str
    more: int


@dataclass(frozen=True)
class NumberedShort:
    name: int


@dataclass(frozen=True)
class Titled:
    title: str = "none"


@dataclass(frozen=True)
class Timed:
    at: int
    name: str = "a"


@dataclass(frozen=True)
class LongerTimed:
    at: int
    name: str = "a"
    more: int = 7


@dataclass(frozen=True)
class ShorterTimed:
    at: int


def whole(record: Any) -> dict[str, Any]:
    return asdict(record)


def wholes(batch: Any) -> list[dict[str, Any]]:
    return [asdict(record) for _, record in batch]


def copying(tp: type) -> cw.Flow:
    flow = cw.Flow("flow")
    flow.sink("out", flow.source("items", tp).map(whole))
    return flow


def holding(tp: type) -> cw.Flow:
    flow = cw.Flow("flow")
    items = flow.source("items", tp, time="at", watermark=cw.bounded_delay(0))
    flow.sink("out", items.batch().flat_map(wholes))
    return flow


@dataclass(frozen=True)
class EndsAt:
    """A line that is no record of the flow ends its run, in these words."""

    flow: cw.Flow
    line: Line
    words: str

    def __call__(self, flows: Flows) -> None:
        with pytest.raises(RuntimeError) as error:
            flows.run(self.flow, [self.line])
        (problem,) = extract(str(error.value)).problems
        message = f"[{problem.code}] {problem.message}".replace(f"{flows.root}/", "")
        assert message == (
            f"[bad-record] in/items/0002.jsonl:1 is not a record of source 'items': {self.words}; "
            'it is {"name": "a", "size": 1}'
        )


RECORDS: dict[str, list[Any]] = {
    "A field with a default added to a record": [
        runs(copying(Short), A),
        runs(
            copying(ShortAndMore),
            A,
            {**A, "more": 1},
            shows=[{"name": "a", "more": 7}, {"name": "a", "more": 1}],
        ),
    ],
    "A field without a default added to a record": [
        runs(copying(Short), A),
        EndsAt(copying(ShortAndRequired), A, "Object missing required field `more`"),
    ],
    "A field removed from a record": [
        runs(copying(Item), A),
        runs(copying(Short), A, shows=[{"name": "a"}]),
    ],
    "A field of a record retyped": [
        runs(copying(Short), A),
        EndsAt(copying(NumberedShort), A, "Expected `int`, got `str` - at `$.name`"),
    ],
    "A field of a record renamed": [
        runs(copying(Short), A),
        runs(copying(Titled), A, shows=[{"title": "none"}]),
    ],
    # It is kept, so it is part of a state.
    "A record that a step holds back changed": [
        runs(holding(Timed), {"at": 5, "name": "x"}),
        refused_somehow(holding(ShorterTimed), "was removed"),
        runs(holding(LongerTimed), {"at": 9}, shows=[{"at": 5, "name": "x", "more": 7}]),
    ],
}


# --- states as columns --------------------------------------------------------------------------


@dataclass(frozen=True)
class LongerColumns:
    total: int = 100
    name: str = ""
    count: int = 0
    share: float = 0.5
    sizes: list[int] = field(default_factory=lambda: [7])


def vectorised(state: type) -> cw.Flow:
    """`keeping`, with a vectorised task."""

    def keep(seen: state, item: Item, keys: cw.Keys) -> tuple[state, Count]:
        counts = keys.running_count(start=seen.count)
        return replace(seen, count=keys.last(counts)), Count(item.name, counts)

    return counting(task=cw.vectorised(initial=state(), name="keep")(keep))


@cw.vectorised(initial=LongerColumns(0), name="keep")
def keep_longer_columns(
    seen: LongerColumns, item: Item, keys: cw.Keys
) -> tuple[LongerColumns, Count]:
    of, total = keys.of, keys.running_sum(item.size, start=seen.total)
    known = [len(sizes) for sizes in seen.sizes]
    shown = total + (100 * seen.share[of]).astype(int) + 1000 * np.array(known)[of]
    return replace(seen, total=keys.last(total)), Count(item.name, shown)


@cw.vectorised(initial=Seen(), name="keep")
def keep_by_ten(seen: Seen, item: Item, keys: cw.Keys) -> tuple[Seen, Count]:
    counts = keys.running_sum(10, start=seen.count)
    return replace(seen, count=keys.last(counts)), Count(item.name, counts)


COLUMNS: dict[str, list[Any]] = {
    "A field with a default added to a vectorised state": [
        runs(vectorised(Seen), A, A, B),
        runs(counting(task=keep_longer_columns), A, A, shows=[a(1151), a(1152)]),
        runs(counting(task=keep_longer_columns), NEW, shows=[{"name": "new", "count": 1051}]),
        # what was not seen since is converted when it is seen
        runs(counting(task=keep_longer_columns), B, shows=[b(1152)]),
    ],
    "A field removed from a vectorised state": [
        runs(vectorised(Seen), A),
        refused(vectorised(Shorter), field_changed("name", "was removed")),
    ],
    "A field of a vectorised state retyped": [
        runs(vectorised(Seen), A),
        refused(vectorised(RetypedCount), field_changed("count", "was int and is float")),
    ],
    "A task made vectorised": [
        runs(keeping(Seen), A),
        refused(
            vectorised(Seen),
            state_changed("the state of step 'keep' was kept key by key and is kept in columns"),
        ),
    ],
    "A vectorised task made one by one": [
        runs(vectorised(Seen), A),
        refused(
            keeping(Seen),
            state_changed("the state of step 'keep' was kept in columns and is kept key by key"),
        ),
    ],
    "The body of a vectorised task changed": [
        runs(vectorised(Seen), A),
        runs(counting(task=keep_by_ten), A, A, shows=[a(11), a(21)]),
    ],
}
