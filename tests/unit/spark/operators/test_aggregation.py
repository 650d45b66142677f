"""Running aggregates over whole columns show what adding values one by one shows, bit by bit."""

import math
import struct
from dataclasses import dataclass, fields
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cutwater as cw
from cutwater import agg
from cutwater.errors import RunError
from cutwater.events import Data
from cutwater.ordering import canonical
from cutwater.spark.exchange.arrow import arrays_of, arrow_schema, records_in
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.columns import Records
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.operators.aggregation import aggregation_of
from cutwater.spark.state.table import StateTable
from cutwater.vectors import Layout


@dataclass(frozen=True)
class Item:
    name: str
    whole: int
    real: float
    is_on: bool
    part: int = 0


FLOATS = st.floats(width=64) | st.sampled_from([0.1, 0.2, 0.3, 1e16, -0.0, 0.0, math.inf, math.nan])
WHOLES = st.integers(-9, 9) | st.integers(-(2**57), 2**57)
ITEMS = st.builds(Item, st.sampled_from("abcde"), WHOLES, FLOATS, st.booleans(), st.integers(0, 2))
EPOCHS = st.lists(st.lists(ITEMS, min_size=1, max_size=12), min_size=1, max_size=3)
EVERY = {
    "n": agg.count(),
    **{f"{verb}_whole": getattr(agg, verb)("whole") for verb in ("sum", "min", "max", "mean")},
    **{f"{verb}_real": getattr(agg, verb)("real") for verb in ("sum", "min", "max", "mean")},
    **{
        f"{verb}_{f}": getattr(agg, verb)(f)
        for verb in ("first", "last")
        for f in ("whole", "real")
    },
    "sum_on": agg.sum("is_on"),
    "mean_on": agg.mean("is_on"),
}
ORDERLESS = ("n", "sum_whole", "min_whole", "max_whole", "mean_whole", "sum_on", "mean_on")
KEYS = [("name",), ("name", "part"), ()]
EMITS = ["event", "epoch"]


@cache
def made(emit, names, key=("name",)):
    """The aggregates of these names, as a run has them."""
    flow = cw.Flow("flow")
    items = flow.source("items", Item)
    keyed = items.key_by(*key) if key else items
    flow.sink("out", keyed.aggregate(emit=emit, **{name: EVERY[name] for name in names}))
    aggregation = aggregation_of(spark_plan(flow).segments[-1], is_timed=False)
    assert aggregation is not None
    return aggregation


def key_of(item, key):
    parts = tuple(getattr(item, name) for name in key)
    return parts[0] if len(parts) == 1 else parts or None


def batch_of(items, key, *, in_columns=False):
    keys = [key_of(item, key) for item in items]
    values = Records.of(Layout.of(Item), items) if in_columns else items
    return EventBatch([b""] * len(items), [canonical(k) for k in keys], values, keys)


def bits(record):
    """What tells two records apart: types and bits, where all NaNs are one."""
    values = [getattr(record, field.name) for field in fields(record)]
    return [
        (type(v), struct.pack("d", math.nan if v != v else v) if isinstance(v, float) else v)
        for v in values
    ]


def table_of(aggregation):
    return StateTable(aggregation.step.name, aggregation.columns, aggregation.converted)


def one_by_one(aggregation, key, epochs):
    """For each epoch what the operator shows of each key, in order."""
    operator, states, shown = aggregation.segment.operator, {}, []
    for items in epochs:
        found = {}
        for item in items:
            name = key_of(item, key)
            state = states.get(name, operator.start(name))
            states[name], outputs = operator.step(state, Data(0, item))
            found.setdefault(name, []).extend(bits(event.value) for event in outputs)
        for name in found if operator.barrier else ():
            states[name], outputs = operator.barrier(states[name])
            found[name].extend(bits(event.value) for event in outputs)
        shown.append({canonical(name): outputs for name, outputs in found.items()})
    return shown


def by_key(batch):
    found = {}
    for key, record in zip(batch.key_bytes, batch.values, strict=True):
        found.setdefault(key, []).append(bits(record))
    return found


@given(st.sampled_from(EMITS), st.sampled_from(KEYS), EPOCHS, st.booleans())
def test_columns_show_what_the_operator_shows(emit, key, epochs, in_columns):
    aggregation = made(emit, tuple(EVERY), key)
    table = table_of(aggregation)
    batches = [batch_of(items, key, in_columns=in_columns) for items in epochs]
    shown = [by_key(aggregation.work(batch, table, 0)) for batch in batches]
    assert shown == one_by_one(aggregation, key, epochs)


@st.composite
def sent(draw):
    """Epochs, and for each the senders by which its items come."""
    epochs = draw(EPOCHS)
    cuts = [draw(st.lists(st.integers(0, 3), min_size=len(e), max_size=len(e))) for e in epochs]
    return epochs, cuts


@given(st.sampled_from(KEYS[:2]), sent(), st.booleans(), st.randoms(use_true_random=False))
def test_what_is_folded_before_it_is_sent_shows_the_same(key, epochs_and_cuts, in_columns, rng):
    aggregation = made("epoch", ORDERLESS, key)
    assert aggregation.is_folded_early
    table, shown, (epochs, senders) = table_of(aggregation), [], epochs_and_cuts
    for items, cuts in zip(epochs, senders, strict=True):
        parts = [[i for i, c in zip(items, cuts, strict=True) if c == n] for n in sorted(set(cuts))]
        batches = [batch_of(part, key, in_columns=in_columns) for part in parts]
        bodies = [aggregation.pack(aggregation.folded([aggregation.lifted(b)])) for b in batches]
        rng.shuffle(bodies)
        shown.append(by_key(aggregation.work(aggregation.unpack(bodies), table, 0)))
    assert shown == one_by_one(aggregation, key, epochs)


@given(st.sampled_from(["name", "part", "is_on"]), EPOCHS, st.booleans())
def test_what_is_folded_by_number_shows_the_same(field, epochs, is_encoded):
    """Also where a file has numbered values that are not among these rows."""
    aggregation = made("epoch", ORDERLESS, (field,))
    assert aggregation.numbered_by == field
    table, shown, layout = table_of(aggregation), [], Layout.of(Item)
    for items in epochs:
        others = [Item("other", 1, 1.0, True, 77), *items, Item("z", 0, 0.0, False, 78)]
        columns = arrays_of(layout, layout.of_values(others), arrow_schema(layout, "test"))
        if is_encoded:
            at = list(layout.columns).index(field)
            columns[at] = columns[at].dictionary_encode()
        columns = [column.slice(1, len(items)) for column in columns]
        records = records_in(layout, columns, "test", [field])
        assert list(records) == items or any(item.real != item.real for item in items)
        folded = aggregation.folded_by_number(EventBatch([], [b""] * len(items), records))
        body = aggregation.pack(aggregation.folded([folded]))
        shown.append(by_key(aggregation.work(aggregation.unpack([body]), table, 0)))
    assert shown == one_by_one(aggregation, (field,), epochs)


def test_without_numbers_nothing_is_folded_by_number():
    items = [Item("a", 1, 1.0, True)]
    assert made("epoch", ORDERLESS, ("name", "part")).numbered_by is None
    aggregation = made("epoch", ORDERLESS)
    assert aggregation.folded_by_number(batch_of(items, ("name",), in_columns=True)) is None
    assert aggregation.folded_by_number(batch_of(items, ("name",))) is None


@pytest.mark.parametrize("name", sorted({*EVERY} - {*ORDERLESS}))
def test_what_minds_the_order_is_not_folded_early(name):
    assert not made("epoch", (name,)).is_folded_early


def test_what_is_shown_after_each_event_is_not_folded_early():
    assert not made("event", ORDERLESS).is_folded_early


LARGEST = 2**63 - 1


def of_wholes(*numbers):
    """Items of two keys: what one has does not count for the other."""
    return [Item("ab"[n % 2], number, 0.0, True) for n, number in enumerate(numbers)]


@given(
    emit=st.sampled_from(EMITS),
    epochs=st.lists(st.lists(st.integers(-(2**63), LARGEST), min_size=1, max_size=6), max_size=3),
)
@example(emit="event", epochs=[[LARGEST - 1, 2**62, 1], [0, 2**62 - 1]])
@example(emit="event", epochs=[[-(2**63)], [0, 5, 2**63 - 1]])
@example(emit="event", epochs=[[LARGEST, 0, -LARGEST]])
def test_sums_up_to_64_bits_are_exact_and_no_others_are_shown(emit, epochs):
    aggregation = made(emit, ("sum_whole", "mean_whole"))
    table, epochs = table_of(aggregation), [of_wholes(*numbers) for numbers in epochs]
    wanted = one_by_one(aggregation, ("name",), epochs)
    for items, expected in zip(epochs, wanted, strict=True):
        totals = [record[1][1] for records in expected.values() for record in records]
        if any(not -(2**63) <= total <= LARGEST for total in totals):
            with pytest.raises(RunError) as error:
                aggregation.work(batch_of(items, ("name",)), table, 0)
            assert str(error.value) == (
                "[sum-too-large] 'sum_whole' may grow beyond 64 bits, the size of a sum of "
                "integers\n  hint: sum floats or decimals, or keep the sum in a task"
            )
            return
        assert by_key(aggregation.work(batch_of(items, ("name",)), table, 0)) == expected
