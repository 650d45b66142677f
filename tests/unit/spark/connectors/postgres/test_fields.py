"""Which values a table gets, which columns can hold them, and the messages for the others."""

import datetime as dt
import enum
import math
import uuid
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.connectors.postgres_sink import records

from cutwater.endings import CHANGE, exit_code
from cutwater.errors import RunError
from cutwater.observers.postgres import PostgresObserver
from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.connectors.postgres.fields import fields_of_record

UTC = dt.UTC


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    n: int


@dataclass(frozen=True)
class Everything:
    truth: bool
    whole: int
    real: float
    text: str
    raw: bytes
    instant: dt.datetime
    day: dt.date
    hour: dt.time
    span: dt.timedelta
    exact: Decimal
    identity: uuid.UUID
    colour: Colour
    word: Literal["a", "b"]
    numbers: list[int]
    counts: dict[str, int]
    part: Part
    several: int | str
    anything: Any
    maybe: int | None = None
    parts: list[Part] = field(default_factory=list)


WHOLE = Everything(
    truth=True,
    whole=-(2**63),
    real=0.1,
    text='quoted "text" \\ {a,b} NULL \n ü 🜍',
    raw=bytes(range(256)),
    instant=dt.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=5.5))),
    day=dt.date(1, 1, 1),
    hour=dt.time(23, 59, 59, 999999),
    span=dt.timedelta(days=-3, seconds=5, microseconds=7),
    exact=Decimal("12345678901234567890.123456789"),
    identity=uuid.UUID(int=7),
    colour=Colour.RED,
    word="a",
    numbers=[1, 2**70],
    counts={"a": 1},
    part=Part(3),
    several="x",
    anything=None,
    parts=[Part(1)],
)


class Table:
    def __init__(self, out):
        self.out = out

    def write(self, record, *values):
        """Write values to a table that is made for them; what is read back."""
        self.out.sink.prepare("readings", record)
        self.out.sink.claim(self.out.claim)
        return self.add(record, 0, *values)

    def add(self, record, epoch, *values):
        orders = [b"%d" % n for n in range(len(values))]
        buckets = [BucketRows(1, orders, records(list(values)))]
        self.out.sink.write(self.out.claim, epoch, record, buckets)
        return PostgresObserver(self.out.server.dsn, self.out.table).rows()

    def refused(self, record, *values):
        with pytest.raises(RunError) as error:
            self.write(record, *values)
        (problem,) = error.value.problems
        assert exit_code(error.value) == CHANGE
        assert self.out.sink.row_count(self.out.claim) == 0
        return problem


@pytest.fixture
def table(make_out):
    return Table(make_out())


def test_every_kind_of_field_is_carried(table):
    (row,) = table.write(Everything, WHOLE)
    assert row == {
        **vars(WHOLE),
        "colour": "red",
        "part": {"n": 3},
        "parts": [{"n": 1}],
        "numbers": [1, 2**70],
    }


def test_a_value_that_is_no_record_goes_to_the_column_value(table):
    assert table.write(int, 1, 2) == [{"value": 1}, {"value": 2}]


@pytest.mark.parametrize("real", [math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
def test_a_float_is_carried_bit_by_bit(table, real):
    (row,) = table.write(float, real)
    assert row["value"].hex() == real.hex()


def test_nan_is_carried(table):
    (row,) = table.write(float, math.nan)
    assert math.isnan(row["value"])


def test_a_time_without_a_zone_is_utc(table):
    (row,) = table.write(dt.datetime, dt.datetime(2024, 1, 1, 12))
    assert row["value"] == dt.datetime(2024, 1, 1, 12, tzinfo=UTC)


def test_a_column_without_zones_holds_utc(table):
    table.out.server.execute(f"CREATE TABLE {table.out.table} (value timestamp)")
    east = dt.timezone(dt.timedelta(hours=2))
    (row,) = table.write(dt.datetime, dt.datetime(2024, 1, 1, 12, tzinfo=east))
    assert row["value"] == dt.datetime(2024, 1, 1, 10)


def test_a_string_of_ten_megabytes_is_carried(table):
    (row,) = table.write(str, "x" * 10_000_000)
    assert len(row["value"]) == 10_000_000


def test_large_rows_go_in_several_statements(table):
    rows = table.write(str, *(str(n) * 1_000_000 for n in range(10)), "y" * 30_000_000)
    assert [len(row["value"]) for row in rows] == [1_000_000] * 10 + [30_000_000]


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_are_carried(make_out, text):
    (row,) = Table(make_out()).write(str, text)
    assert row["value"] == text


@pytest.mark.parametrize(
    ("record", "value", "message"),
    [
        (str, "a\0b", "NUL character, which PostgreSQL cannot hold"),
        (str, "a\ud800", "lone surrogate"),
        (list[str], ["a\0b"], "NUL character"),
        (list[str], ["a\ud800"], "lone surrogate"),
        (list[float], [math.nan], "JSON has no NaN"),
        (dict[str, float], {"a": math.inf}, "JSON has no NaN and no Infinity"),
    ],
)
def test_a_value_that_cannot_be_held_is_named(table, record, value, message):
    fine = type(value)()
    problem = table.refused(record, fine, value)
    assert problem.code == "unwritable-row"
    assert message in problem.message
    assert repr(value) in problem.message
    assert problem.message.startswith("sink 'readings' cannot write the row ")


def test_an_escape_that_only_looks_like_nul_is_carried(table):
    (row,) = table.write(list[str], ["\\u0000"])
    assert row["value"] == ["\\u0000"]


def test_a_number_that_is_too_large_for_its_column_is_named(table):
    table.out.server.execute(f"CREATE TABLE {table.out.table} (value int)")
    problem = table.refused(int, 1, 2**31)
    assert problem.code == "refused-by-postgres"
    assert 'value "2147483648" is out of range for type integer' in problem.message


def test_a_text_is_not_cut_to_fit_its_column(table):
    table.out.server.execute(f"CREATE TABLE {table.out.table} (value varchar(3))")
    problem = table.refused(str, "abcd")
    assert "value too long for type character varying(3)" in problem.message


def test_a_row_that_breaks_a_constraint_is_named(table):
    table.out.server.execute(f"CREATE TABLE {table.out.table} (value int PRIMARY KEY)")
    problem = table.refused(int, 1, 1)
    assert "Key (value)=(1) already exists" in problem.message
    assert "upsert" in problem.hint


@dataclass(frozen=True)
class Reading:
    key: str
    n: int
    note: str | None


class TestMisfits:
    def problems(self, make_out, columns, record=Reading, **changes):
        out = make_out(**{"create": False, **changes})
        out.server.execute(f"CREATE TABLE {out.table} ({columns})")
        return {p.code: str(p) for p in out.sink.schema_problems("readings", record)}

    def test_a_table_that_fits(self, make_out):
        columns = """
            id bigint GENERATED ALWAYS AS IDENTITY, key varchar(10) NOT NULL, n smallint, note text,
            other int, at timestamptz NOT NULL DEFAULT now()
        """
        assert self.problems(make_out, columns) == {}

    def test_domains_and_enums_fit(self, make_out, postgres):
        postgres.execute("CREATE TYPE mood AS ENUM ('good')", "CREATE DOMAIN amount AS bigint")
        assert self.problems(make_out, "key mood, n amount, note text") == {}

    def test_json_takes_everything(self, make_out):
        assert self.problems(make_out, "key jsonb, n json, note jsonb") == {}

    def test_a_missing_table(self, make_out):
        out = make_out(create=False)
        (problem,) = out.sink.schema_problems("readings", Reading)
        assert problem.code == "missing-table"
        assert (
            f'CREATE TABLE "public"."{out.table}" ("key" text NOT NULL, "n" bigint NOT NULL, '
            '"note" text)' in problem.hint
        )

    def test_a_table_that_will_be_made(self, make_out):
        assert make_out().sink.schema_problems("readings", Reading) == []

    @pytest.mark.parametrize(
        ("columns", "code", "message"),
        [
            ("key text, note text", "missing-column", "no column 'n'"),
            ("key text, n text, note text", "column-type", "is text, which cannot hold every int"),
            ("key text, n real, note text", "column-type", "cannot hold every int"),
            ("key int, n int, note text", "column-type", "is integer, which cannot hold every str"),
            ("key text, n int, note text NOT NULL", "column-not-null", "'note' may be None"),
            ("key text, n int, note text, x int NOT NULL", "unfilled-column", "column 'x'"),
            (
                "key text, n int GENERATED ALWAYS AS IDENTITY, note text",
                "generated-column",
                "GENERATED ALWAYS",
            ),
        ],
    )
    def test_a_column_that_does_not_fit(self, make_out, columns, code, message):
        problems = self.problems(make_out, columns)
        assert list(problems) == [code]
        assert message in problems[code]

    def test_every_problem_is_reported_at_once(self, make_out):
        assert list(self.problems(make_out, "key int, x int NOT NULL")) == [
            "column-type",
            "missing-column",
            "unfilled-column",
        ]

    def test_a_view_has_no_ledger_of_its_own(self, make_out):
        out = make_out(create=False)
        out.server.execute(f"CREATE VIEW {out.table} AS SELECT 'a' AS key, 1 AS n, 'b' AS note")
        (problem,) = out.sink.schema_problems("readings", Reading)
        assert problem.code == "no-table"

    def test_an_unlogged_table_is_emptied_by_a_crash(self, make_out):
        out = make_out(create=False)
        out.server.execute(f"CREATE UNLOGGED TABLE {out.table} (key text, n int, note text)")
        (problem,) = out.sink.schema_problems("readings", Reading)
        assert problem.code == "unlogged-table"

    @pytest.mark.parametrize(
        ("constraint", "is_enough"),
        [
            ("UNIQUE (key, n)", True),
            ("PRIMARY KEY (n, key)", True),
            ("UNIQUE (key)", False),
            ("UNIQUE (key, n) DEFERRABLE", False),
            ("CHECK (n > 0)", False),
        ],
    )
    def test_keys_are_unique(self, make_out, constraint, is_enough):
        columns = f"key text, n int, note text, {constraint}"
        problems = self.problems(make_out, columns, mode="upsert", keys=["key", "n"])
        assert list(problems) == ([] if is_enough else ["no-unique-key"])

    def test_an_index_of_a_part_of_the_rows_makes_nothing_unique(self, make_out):
        out = make_out(create=False, mode="upsert", keys=["key"])
        out.server.execute(
            f"CREATE TABLE {out.table} (key text, n int, note text)",
            f"CREATE UNIQUE INDEX ON {out.table} (key) WHERE n > 0",
        )
        (problem,) = out.sink.schema_problems("readings", Reading)
        assert problem.code == "no-unique-key"


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "record", "code"),
        [
            ({"mode": "upsert"}, Reading, "no-keys"),
            ({"keys": ["key"]}, Reading, "keys-of-append"),
            ({"mode": "upsert", "keys": ["kei"]}, Reading, "unknown-key"),
            ({"mode": "merge"}, Reading, "unknown-setting"),
            ({"release": "late"}, Reading, "unknown-setting"),
            ({"password_env": "A", "password_file": "b"}, Reading, "two-passwords"),
            ({}, Any, "unknown-record"),
        ],
    )
    def test_settings_that_cannot_work(self, make_out, settings, record, code):
        (problem,) = make_out(**settings).sink.problems("readings", record)
        assert problem.code == code

    def test_settings_that_can(self, make_out):
        sink = make_out(mode="upsert", keys=["key"]).sink
        assert list(sink.problems("readings", Reading)) == []
        assert sink.guarantee().kind == "exactly-once"
        assert "same key of the flow" in sink.guarantee().provided


@pytest.mark.parametrize(
    ("record", "kind", "is_optional"),
    [
        (int, "int", False),
        (int | None, "int", True),
        (int | float, "float", False),
        (int | str, "json", False),
        (Literal["a", "b"], "str", False),
        (Literal[1, "b"], "json", False),
        (Colour, "str", False),
        (Counter[str], "json", False),
        (tuple[int, int], "json", False),
        (bool, "bool", False),
        (dt.datetime, "datetime", False),
        (dt.date, "date", False),
    ],
)
def test_what_a_type_comes_down_to(record, kind, is_optional):
    (found,) = fields_of_record(record)
    assert (found.kind, found.is_optional) == (kind, is_optional)
