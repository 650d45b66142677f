"""A table as a source: nothing is lost and nothing doubled, in whatever order rows commit."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cutwater as cw
from cutwater.errors import InputError
from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.connectors.base.source import BadRecord
from cutwater.spark.connectors.base.watermarks import Numbering
from cutwater.spark.connectors.postgres import postgres_rows
from cutwater.spark.connectors.postgres import reading as row_reading

NUMBERS = count()


@dataclass(frozen=True)
class Order:
    id: int
    amount: float = 1.0


class Orders:
    """A table and a log of what was read of it."""

    columns = """
        id bigint PRIMARY KEY, amount numeric NOT NULL DEFAULT 1.5,
        xid xid8 NOT NULL DEFAULT pg_current_xact_id()
    """

    def __init__(self, server, folder, tp=Order, **settings):
        self.server = server
        self.table = f"orders_{next(NUMBERS)}"
        self.settings = {"key": "id", "transaction": "xid", **settings}
        self.folder = folder / self.table
        self.type = tp
        self.open()

    def open(self):
        """As after a restart: only what the log keeps is known."""
        self.source = postgres_rows(table=self.table, dsn=self.server.dsn, **self.settings)
        self.reader = self.source.reader(self.type)
        self.log = ChunkLog(self.source, self.type, self.folder, Numbering())

    def make(self):
        self.server.execute(f"CREATE TABLE {self.table} ({self.columns})")
        return self

    def add(self, *ids, connection=None):
        for number in ids:
            statement = f"INSERT INTO {self.table} (id) VALUES ({number})"
            (connection.execute if connection else self.server.execute)(statement)

    def epoch(self):
        """The rows of the next epoch, or None."""
        newest = self.log.newest
        return self.read(newest + 1) if self.log.extend() > newest else None

    def read(self, entry):
        runs = [run for chunk in self.log.read(entry) for run in self.reader.batches(chunk)]
        found = [record.id for run in runs for record in self.reader.decode(run)]
        orders = [order for run in runs for order in self.source.sort_keys(run.positions)]
        assert orders == sorted(set(orders))
        return found

    def rest(self):
        found = []
        while (ids := self.epoch()) is not None:
            found += ids
        return found

    def problems(self):
        return {p.code: str(p) for p in self.source.check("orders", source_of(self.type))}


def source_of(tp):
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("orders", tp))
    return flow.steps[0]


@pytest.fixture
def orders(postgres, tmp_path):
    return Orders(postgres, tmp_path).make()


def test_a_log_of_one_table_is_not_continued_by_another(orders, postgres, tmp_path):
    orders.add(1, 2)
    assert orders.rest() == [1, 2]
    other = Orders(postgres, tmp_path).make()
    other.folder = orders.folder
    with pytest.raises(InputError, match=f"has read public.{orders.table} up to transaction"):
        other.open()


@pytest.fixture
def make_orders(postgres, tmp_path):
    return lambda **settings: Orders(postgres, tmp_path, **settings)


def test_rows_are_read_once(orders):
    assert orders.epoch() is None
    orders.add(2, 1)
    assert orders.epoch() == [2, 1]
    assert orders.epoch() is None
    orders.add(3)
    assert orders.epoch() == [3]


def test_two_transactions_that_commit_in_reverse_order_of_their_keys(orders):
    first, second = (psycopg.connect(orders.server.dsn) for _ in range(2))
    with first, second:
        orders.add(1, connection=first)
        orders.add(2, connection=second)
        second.commit()
        assert orders.epoch() is None
        assert orders.log.has_input()
        first.commit()
        assert orders.epoch() == [1, 2]
        assert orders.epoch() is None


def test_a_plain_key_loses_such_a_row_and_says_so(make_orders):
    orders = make_orders(transaction=None).make()
    first, second = (psycopg.connect(orders.server.dsn) for _ in range(2))
    with first, second:
        orders.add(1, connection=first)
        orders.add(2, connection=second)
        second.commit()
        assert orders.epoch() == [2]
        first.commit()
        assert orders.epoch() is None
    replay = orders.source.replay()
    assert not replay.is_replayable
    assert "commits after one with a larger key is left out" in replay.because


def test_a_transaction_that_is_rolled_back_leaves_nothing(orders):
    with psycopg.connect(orders.server.dsn) as connection:
        orders.add(1, connection=connection)
        orders.add(2)
        assert orders.epoch() is None
        connection.rollback()
    assert orders.epoch() == [2]


def test_an_epoch_that_is_repeated_has_the_same_rows(orders):
    orders.add(1, 2)
    with psycopg.connect(orders.server.dsn) as connection:
        orders.add(0, connection=connection)
        orders.add(3)
        assert orders.epoch() == [1, 2]
    orders.open()
    assert orders.read(1) == [1, 2]
    assert orders.epoch() == [0, 3]


@pytest.mark.parametrize("transaction", ["xid", None])
def test_an_epoch_has_a_limit(make_orders, transaction):
    orders = make_orders(max_rows_per_epoch=2, transaction=transaction).make()
    orders.add(1, 2, 3, 4, 5)
    assert [orders.epoch() for _ in range(4)] == [[1, 2], [3, 4], [5], None]


@pytest.mark.parametrize("transaction", ["xid", None])
def test_a_run_that_catches_up_takes_what_is_there(make_orders, transaction):
    orders = make_orders(transaction=transaction).make()
    orders.add(1)
    orders.log.freeze()
    orders.add(2)
    assert orders.rest() == [1]
    assert orders.log.has_input()
    orders.open()
    assert orders.rest() == [2]


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.parametrize("transaction", ["xid", None])
def test_much_is_read_in_several_chunks(make_orders, monkeypatch, rows, transaction):
    monkeypatch.setattr(row_reading, "_ROWS_PER_CHUNK", rows)
    orders = make_orders(max_rows_per_epoch=5, transaction=transaction).make()
    orders.server.execute(f"INSERT INTO {orders.table} SELECT generate_series(1, 12)")
    assert [orders.epoch() for _ in range(4)] == [
        [1, 2, 3, 4, 5],
        [6, 7, 8, 9, 10],
        [11, 12],
        None,
    ]
    assert {chunk.about["rows"] for chunk in orders.log.read(1)} <= {rows, 5 % rows, 5}


def test_rows_that_are_gone_are_missed(orders):
    orders.add(1, 2)
    orders.epoch()
    orders.server.execute(f"DELETE FROM {orders.table} WHERE id = 1")
    with pytest.raises(InputError) as error:
        orders.read(1)
    assert "had 2 rows" in str(error.value)
    assert "and has 1" in str(error.value)


def test_keys_may_be_negative_and_uuids(make_orders):
    orders = make_orders().make()
    with psycopg.connect(orders.server.dsn) as connection:
        orders.add(5, -7, 0, connection=connection)
    assert orders.epoch() == [-7, 0, 5]

    @dataclass
    class Named:
        id: str

    named = make_orders(tp=Any)
    named.type = Named
    named.columns = named.columns.replace("bigint", "uuid")
    named.make().open()
    ids = ["ffffffff-0000-0000-0000-000000000001", "00000000-0000-0000-0000-00000000000f"]
    with psycopg.connect(named.server.dsn) as connection:
        for each in ids:
            connection.execute(f"INSERT INTO {named.table} (id) VALUES (%s)", (each,))
    named.log.extend()
    (run,) = named.reader.batches(named.log.read(1)[0])
    assert [key for _, key in run.positions] == sorted(ids)
    assert named.source.sort_keys(run.positions) == sorted(named.source.sort_keys(run.positions))


def test_values_are_those_of_the_columns(make_orders):
    @dataclass
    class Everything:
        id: int
        amount: Decimal
        raw: bytes
        parts: list[int]
        real: float
        missing: int = 7

    orders = make_orders(tp=Everything)
    orders.columns += ", raw bytea, parts jsonb, real float8"
    orders.make()
    orders.server.execute(
        f"INSERT INTO {orders.table} (id, amount, raw, parts, real)"
        " VALUES (1, 12345678901234567890.5, '\\x00ff', '[1, 2]', 'NaN')"
    )
    orders.log.extend()
    (run,) = orders.reader.batches(orders.log.read(1)[0])
    (found,) = orders.reader.decode(run)
    assert (found.amount, found.raw, found.parts, found.missing) == (
        Decimal("12345678901234567890.5"),
        b"\0\xff",
        [1, 2],
        7,
    )
    assert found.real != found.real
    assert vars(found)["missing"] == 7


def test_a_record_may_have_none_of_the_columns(make_orders):
    @dataclass
    class Nothing:
        other: int = 7

    orders = make_orders(tp=Nothing).make()
    orders.add(1)
    orders.log.extend()
    (run,) = orders.reader.batches(orders.log.read(1)[0])
    assert orders.reader.decode(run) == [Nothing()]


def test_a_bad_row_is_named(make_orders):
    @dataclass
    class Strict:
        id: int
        note: str

    orders = make_orders(tp=Strict)
    orders.columns += ", note text"
    orders.make().add(4)
    orders.log.extend()
    (chunk,) = orders.log.read(1)
    (run,) = orders.reader.batches(chunk)
    with pytest.raises(Exception, match="Expected `str`, got `null`"):
        orders.reader.decode_one(run.raws[0])
    assert orders.source.location(chunk, run.positions[0]).startswith(
        f"public.{orders.table}, id = 4 of transaction "
    )
    assert orders.reader.preview(run.raws[0]) == b'{"id": 4, "note": null}'


steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, 2)),
        st.tuples(st.just("commit"), st.integers(0, 2)),
        st.tuples(st.just("rollback"), st.integers(0, 2)),
        st.tuples(st.just("epoch")),
        st.tuples(st.just("restart")),
    ),
    max_size=25,
)


@given(script=steps, limit=st.integers(1, 4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_whatever_commits_when_each_row_is_read_once(make_orders, script, limit):
    """And an epoch that is read again at the end is what it was."""
    orders = make_orders(max_rows_per_epoch=limit).make()
    sessions = [psycopg.connect(orders.server.dsn) for _ in range(3)]
    numbers = count()
    pending = [[] for _ in sessions]
    committed, epochs = [], []
    for what, *which in [*script, *[("commit", n) for n in range(3)]]:
        if what == "epoch":
            ids = orders.epoch()
            epochs += [ids] if ids else []
        elif what == "restart":
            orders.open()
        else:
            session, waiting = sessions[which[0]], pending[which[0]]
            if what == "insert":
                waiting.append(next(numbers))
                orders.add(waiting[-1], connection=session)
            else:
                committed += waiting if what == "commit" else []
                waiting.clear()
                getattr(session, what)()
    while ids := orders.epoch():
        epochs.append(ids)
    for session in sessions:
        session.close()
    assert sorted(n for ids in epochs for n in ids) == sorted(committed)
    assert [orders.read(n + 1) for n in range(len(epochs))] == epochs


class TestCheck:
    def test_a_table_that_can_be_read(self, orders):
        assert orders.problems() == {}
        assert orders.source.replay().is_replayable

    @pytest.mark.parametrize(
        ("columns", "settings", "code"),
        [
            ("id bigint PRIMARY KEY, xid bigint NOT NULL", {}, "source-transaction"),
            ("id bigint PRIMARY KEY, xid xid8", {}, "source-transaction"),
            ("id bigint PRIMARY KEY", {}, "source-transaction"),
            ("id text PRIMARY KEY", {"transaction": None}, "source-key"),
            ("id uuid PRIMARY KEY", {"transaction": None}, "source-key"),
            ("id bigint NOT NULL", {"transaction": None}, "source-key"),
            ("id bigint UNIQUE", {"transaction": None}, "source-key"),
            ("n bigint PRIMARY KEY, id int", {"transaction": None, "key": "m"}, "source-key"),
            ("n bigint PRIMARY KEY", {"transaction": None, "key": "n"}, "missing-column"),
        ],
    )
    def test_a_table_that_cannot(self, make_orders, columns, settings, code):
        orders = make_orders(**settings)
        orders.columns = columns
        assert list(orders.make().problems()) == [code]

    def test_a_table_that_is_not_there(self, make_orders):
        assert list(make_orders().problems()) == ["missing-table"]

    def test_a_password_in_the_dsn(self):
        source = postgres_rows(table="t", dsn="host=h password=s3cret", key="id")
        (problem,) = source.problems("orders", source_of(Order))
        assert problem.code == "secret-in-settings"
        assert "s3cret" not in f"{problem} {source!r}"


@dataclass(frozen=True)
class Note:
    id: int
    text: str


class Notes(Orders):
    """A table of texts, as long as they are told to be."""

    columns = "id bigint PRIMARY KEY, text text, xid xid8 NOT NULL DEFAULT pg_current_xact_id()"

    def add(self, *sizes):
        for number, size in enumerate(sizes):
            self.server.execute(
                f"INSERT INTO {self.table} (id, text) VALUES ({number}, repeat('x', {size}))"
            )

    def batches(self):
        assert self.log.extend() == 1
        return [batch for chunk in self.log.read(1) for batch in self.reader.batches(chunk)]


@pytest.mark.parametrize("rows_per_chunk", [2, 5_000])
def test_an_epoch_has_a_limit_in_bytes(postgres, tmp_path, monkeypatch, rows_per_chunk):
    """Long values are measured, too, which are stored apart and compressed."""
    monkeypatch.setattr(row_reading, "_ROWS_PER_CHUNK", rows_per_chunk)
    table = Notes(postgres, tmp_path, Note, max_bytes_per_epoch=1 << 20, max_rows_per_epoch=5)
    table.make().add(1 << 19, 1 << 19, 10, *[1 << 21] * 2, *[10] * 7)
    epochs = [table.epoch() for _ in range(6)]
    assert epochs == [[0, 1], [2, 3], [4], [5, 6, 7, 8, 9], [10, 11], None]
    assert table.log.newest == 5
    table.open()
    assert [table.read(number) for number in range(1, 6)] == epochs[:5]


def test_rows_come_in_pieces_by_their_bytes(postgres, tmp_path):
    """However large they are suddenly, only a piece is in memory."""
    sizes = [10] * 50 + [1 << 20] * 12 + [10] * 50
    table = Notes(postgres, tmp_path, Note).make()
    table.add(*sizes)
    batches = table.batches()
    assert max(sum(len(row["text"]) for row in batch.raws) for batch in batches) <= 5 << 20
    rows = [note for batch in batches for note in table.reader.decode(batch)]
    assert [(note.id, len(note.text)) for note in rows] == list(enumerate(sizes))


def test_a_row_that_is_too_large_is_a_bad_record_alone(postgres, tmp_path):
    table = Notes(postgres, tmp_path, Note, max_record_bytes=1000).make()
    table.add(10, 2000, 10)
    first, long, last = table.batches()
    assert [len(batch.raws) for batch in (first, long, last)] == [1, 1, 1]
    with pytest.raises(BadRecord, match=r"it has 20\d\d bytes, and a record has at most 1000"):
        table.reader.decode(long)
    with pytest.raises(BadRecord):
        table.reader.decode_one(long.raws[0])
    assert len(table.reader.preview(long.raws[0])) <= 200
    assert table.source.location(table.log.read(1)[0], long.positions[0]).count("id = 1 ") == 1
