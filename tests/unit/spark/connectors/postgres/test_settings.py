"""Settings that name a table: no server is needed."""

import pytest

from cutwater.spark.connectors.postgres.settings import name_problems

BAD = ["", ".", "..", "a.", "a.b.c", "a\0b", "x" * 64, "ä" * 32, "a." + "x" * 64, "\ud800"]
GOOD = ["orders", "sales.orders", 'a"b', "a/b", "x" * 63, "Bestellungen für heute", "100%"]


@pytest.mark.parametrize("table", BAD)
def test_what_cannot_name_a_table_is_refused(table):
    (problem,) = name_problems("sink 'out'", table)
    assert problem.code == "table-name"
    assert problem.message.isprintable()


@pytest.mark.parametrize("schema", ["a\0b", "x" * 64, "\ud800"])
def test_what_cannot_name_a_schema_is_refused(schema):
    (problem,) = name_problems("sink 'out'", "orders", schema)
    assert problem.code == "table-name"
    assert "ledger_schema" in problem.message


@pytest.mark.parametrize("name", GOOD)
def test_any_other_name_is_quoted(name):
    assert list(name_problems("sink 'out'", name)) == []
