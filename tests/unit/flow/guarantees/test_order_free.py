"""Which sinks show the order of events, by what leads to them."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

import pytest

import cutwater as cw
from cutwater.flow.guarantees.order_free import orders_of


@dataclass(frozen=True)
class Item:
    name: str
    at: int
    size: int
    weight: float
    price: Decimal
    when: dt.datetime
    is_new: bool


@cw.task(initial=0)
def silent(state: int, _item: Item) -> tuple[int, list[Item]]:
    return state, []


@cw.task(initial=0, commutative=True)
def claiming(state: int, _item: Item) -> tuple[int, list[Item]]:
    return state, []


def size_of(item: Item) -> int:
    return item.size


def by_weight(item: Item) -> float:
    return item.weight


def asked(state, time, value):
    return state, [cw.Notify(time)]


def order_of(build, time="at"):
    flow = cw.Flow("one")
    source = flow.source("items", Item, time=time, watermark=time and cw.bounded_delay(2))
    flow.sink("out", build(source))
    flow.validate()
    return orders_of(flow)["out"]


FREE = {
    "no state": lambda s: s.map(lambda item: item.size).filter(bool),
    "a running count": lambda s: s.key_by("name").aggregate(n=cw.agg.count()),
    "per epoch": lambda s: s.key_by("name").aggregate(
        emit="epoch", total=cw.agg.sum("size"), news=cw.agg.sum("is_new"), top=cw.agg.max("name")
    ),
    "a window": lambda s: (
        s.key_by("name").window(cw.session(3)).aggregate(mean=cw.agg.mean("size"))
    ),
    "a join": lambda s: s.key_by("name").join(s.key_by("name"), lambda a, b: a),
    "a claim": lambda s: s.key_by("name").apply(claiming),
    "a claim that expires": lambda s: s.key_by("name").apply(claiming, expire_after=3),
}


SHOWN = {
    "a task": (lambda s: s.apply(silent), "`silent` does not claim to be commutative"),
    "a running sum": (
        lambda s: s.key_by("name").aggregate(n=cw.agg.count(), total=cw.agg.sum("size")),
        "`aggregate` shows `total` after each event",
    ),
    "floats": (
        lambda s: s.aggregate(emit="epoch", total=cw.agg.sum("weight")),
        "`aggregate` shows `total`, a sum of float, which may round differently in another order",
    ),
    "decimals": (
        lambda s: s.window(cw.tumbling(3)).aggregate(mean=cw.agg.mean("price")),
        "`window` shows `mean`, a mean of Decimal, which may round differently in another order",
    ),
    "the largest float": (
        lambda s: s.window(cw.tumbling(3)).aggregate(top=cw.agg.max("weight")),
        "`window` shows `top`, a max of float, whose equal values may look different",
    ),
    "the newest instant": (
        lambda s: s.window(cw.tumbling(3)).aggregate(top=cw.agg.max("when")),
        "`window` shows `top`, a max of datetime, whose equal values may look different",
    ),
    "the first": (
        lambda s: s.window(cw.tumbling(3)).aggregate(one=cw.agg.first("size")),
        "`window` shows `one`, a first, which is the order of events",
    ),
    "a key": (
        lambda s: s.key_by(by_weight).aggregate(n=cw.agg.count()),
        "`aggregate` shows a key as its first event wrote it, and equal keys of float differ",
    ),
    "a histogram": (
        lambda s: s.map(size_of).histogram(),
        "`histogram` lists values in arrival order",
    ),
    "a batch": (lambda s: s.batch(), "`batch` collects values in arrival order"),
    "notification": (
        lambda s: s.on_complete(asked, lambda state, _: (state, []), initial=0, name="late"),
        "`late` runs functions about which nothing is known",
    ),
    "times of a task": (
        lambda s: s.apply(claiming).window(cw.tumbling(3)).aggregate(n=cw.agg.count()),
        "`claiming` emits at the time of the event that happened to cause it, and `window` looks "
        "at times",
    ),
}


@pytest.mark.parametrize("name", FREE)
def test_what_is_free_of_order(name):
    order = order_of(FREE[name])
    assert order.is_free, order.reasons
    assert order.claims == (("claiming",) if "claim" in name else ())


@pytest.mark.parametrize("name", SHOWN)
def test_what_may_show_the_order_says_why(name):
    build, reason = SHOWN[name]
    assert reason in [str(reason) for reason in order_of(build).reasons]


def test_numbers_are_times_only_where_somebody_looks_at_them():
    assert order_of(lambda s: s.aggregate(n=cw.agg.count()), time=None).is_free
    (reason,) = order_of(
        lambda s: s.window(cw.tumbling(2)).aggregate(n=cw.agg.count()), time=None
    ).reasons
    assert str(reason) == "`items` numbers its events as they come, and `window` looks at times"


def test_a_refuted_claim_does_not_count():
    flow = cw.Flow("one")
    flow.sink("out", flow.source("items", Item).apply(claiming))
    (reason,) = orders_of(flow, refuted=["claiming"])["out"].reasons
    assert str(reason) == "`claiming` claims to be commutative, and is not"
