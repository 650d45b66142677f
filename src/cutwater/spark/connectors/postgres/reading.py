"""Reads the rows of a table: plans chunks of unread rows, and reads chunks."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from psycopg.rows import dict_row
from psycopg.sql import SQL, Composable, Composed, Identifier

from cutwater.errors import InputError, Problem, RefusedError
from cutwater.schema import schema_of
from cutwater.spark.connectors.base.defaults import filler_of
from cutwater.spark.connectors.base.long_records import RUN_BYTES, SHOWN_BYTES, LongRecord
from cutwater.spark.connectors.base.source import Chunk, Planner, RawBatch, RecordReader
from cutwater.spark.connectors.postgres.connections import Connection, persist
from cutwater.spark.connectors.postgres.fields import Field, fields_of_record
from cutwater.spark.connectors.postgres.source import PostgresRows
from cutwater.spark.connectors.postgres.tables import Table, TableColumn, quoted, read_table

__all__ = ["RowsPlanner", "RowsReader", "source_table_problems"]

_ROWS_PER_CHUNK = 5_000
_BEGIN = [0, None]
"""The lowest position: before every key of transaction 0."""

_INTEGERS = ("int2", "int4", "int8")
_MEASURED = ("text", "varchar", "bpchar", "bytea")
"""Types whose length PostgreSQL knows without fetching or decompressing a long value."""

_T = TypeVar("_T")
_Position = Sequence[Any]
"""A transaction and a key; a key of None sorts before every other."""


class _Query:
    """Parts of statements for a table that is read by (transaction, key), or by key alone."""

    def __init__(self, source: PostgresRows) -> None:
        self.table = quoted(source.name)
        self.key = Identifier(source.key)
        self._transaction = Identifier(source.transaction) if source.transaction else None
        # without the column, every row counts as one of a transaction that ended long ago
        self.xid: Composable = self._transaction or SQL("'0'::xid8")
        both = SQL("{}, {}").format(self.xid, self.key)
        self.order = both if source.transaction else SQL("{}").format(self.key)

    def at_or_after(self, position: _Position) -> Composed:
        """The condition for rows at or after a position."""
        return self._beside(position, ">=")

    def after(self, position: _Position) -> Composed:
        """The condition for rows after one."""
        return self._beside(position, ">")

    def before(self, position: _Position) -> Composed:
        """The condition for rows before a position."""
        return self._beside(position, "<")

    def _beside(self, position: _Position, sign: str) -> Composed:
        xid, key = position
        written = SQL("{}::xid8").format(str(xid))
        if key is None:
            return SQL("{} " + sign + " {}").format(self.xid, written)
        if self._transaction is None:
            return SQL("{} " + sign + " {}").format(self.key, key)
        return SQL("({}, {}) " + sign + " ({}, {})").format(self.xid, self.key, written, key)


class RowsPlanner(Planner):
    """Plans rows below the oldest transaction that is still running."""

    def __init__(self, source: PostgresRows, tp: Any) -> None:
        self._source = source
        self._query = _Query(source)
        self._fields = [field.column for field in fields_of_record(tp) or []]
        self._bytes: Composable | None = None
        """The size of a row, as an expression."""
        self._next: _Position = _BEGIN
        self._until: _Position | None = None

    def advance(self, chunk: Chunk) -> None:
        if chunk.about["table"] != str(self._source.name):
            raise InputError(_another_table(self._source, chunk))
        self._next = chunk.end

    def freeze(self) -> None:
        self._until = self._ask(self._end)

    def has_input(self) -> bool:
        return self._ask(self._has_unread)

    def poll(self) -> list[Chunk]:
        return self._ask(self._unread)

    def _ask(self, work: Callable[[Connection], _T]) -> _T:
        return persist(
            self._source.database, f"source {self._source.name}", "look for new rows", work
        )

    def _end(self, connection: Connection) -> _Position:
        """The position after all rows that can be read now."""
        if self._source.transaction:
            horizon = SQL("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
            return [int(_one(connection, horizon)[0]), None]
        newest = SQL("SELECT coalesce(max({}), -1) + 1 FROM {}")
        return [0, _one(connection, newest.format(self._query.key, self._query.table))[0]]

    def _has_unread(self, connection: Connection) -> bool:
        query = SQL("SELECT EXISTS (SELECT FROM {} WHERE {})")
        unread = query.format(self._query.table, self._query.at_or_after(self._next))
        return bool(_one(connection, unread)[0])

    def _unread(self, connection: Connection) -> list[Chunk]:
        """The chunks of the next epoch.

        A statement has one snapshot, so it sees every row below the horizon of that snapshot.
        """
        query = SQL("""
            WITH unread AS (
                SELECT {xid} AS xid, {key} AS key, row_number() OVER (ORDER BY {order}) - 1 AS n,
                    coalesce(sum({bytes}) OVER (ORDER BY {order}
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
                FROM {table}
                WHERE {rest} AND {until} AND {xid} < pg_snapshot_xmin(pg_current_snapshot())
                ORDER BY {order} LIMIT {limit} + 1
            ), fitting AS (
                SELECT least(count(*), {limit}) AS rows FROM unread WHERE before < {max_bytes}
            )
            SELECT xid::text, key, n, n < rows, pg_snapshot_xmin(pg_current_snapshot())::text
            FROM unread, fitting
            WHERE n <= rows AND (n % {size} = 0 OR n = rows OR n = (SELECT max(n) FROM unread))
            ORDER BY n
        """)
        made = query.format(
            xid=self._query.xid,
            key=self._query.key,
            order=self._query.order,
            table=self._query.table,
            rest=self._query.at_or_after(self._next),
            until=SQL("true") if self._until is None else self._query.before(self._until),
            limit=self._source.max_rows_per_epoch,
            bytes=self._size_of_row(connection),
            max_bytes=self._source.max_bytes_per_epoch,
            size=_ROWS_PER_CHUNK,
        )
        found = [
            (n, [int(xid), _plain(key)], is_read, int(horizon))
            for xid, key, n, is_read, horizon in connection.execute(made)
        ]
        return self._chunks(found) if found else []

    def _size_of_row(self, connection: Connection) -> Composable:
        """How large the values of a row are that are read, without fetching long ones."""
        if self._bytes is None:
            table = read_table(connection, self._source.name)
            columns = table.columns if table else {}
            sizes = [_bytes_in(columns[name]) for name in self._fields if name in columns]
            self._bytes = SQL("({})").format(SQL(" + ").join([SQL("0::bigint"), *sizes]))
        return self._bytes

    def _chunks(self, found: list[tuple[int, list[Any], bool, int]]) -> list[Chunk]:
        """Chunks from the positions of some rows: of the first row of each chunk, and the last."""
        last, position, is_read, horizon = found[-1]
        rows = last + is_read
        if not is_read:  # one row more than an epoch reads: the next begins there
            end = position
        elif self._source.transaction:
            end = [min(horizon, self._until[0]) if self._until else horizon, None]
        else:
            end = [0, position[1] + 1]
        begins = [(n, at) for n, at, _, _ in found if n % _ROWS_PER_CHUNK == 0 and n < rows]
        ends = [*begins[1:], (rows, end)]
        about = {"table": str(self._source.name)}
        return [
            Chunk(0, start, stop, {**about, "rows": until - first})
            for (first, start), (until, stop) in zip(begins, ends, strict=True)
        ]


def _bytes_in(column: TableColumn) -> Composed:
    """The size of a value: the length of text and bytes, else what it takes in the table."""
    measure = "octet_length" if column.base in _MEASURED else "pg_column_size"
    return SQL("coalesce({}({}), 0)").format(SQL(measure), Identifier(column.name))


def _one(connection: Connection, query: SQL | Composed) -> Any:
    found = connection.execute(query).fetchone()
    assert found is not None, "such a query has a row"
    return found


def _plain(key: Any) -> Any:
    return str(key) if isinstance(key, uuid.UUID) else key


class RowsReader(RecordReader):
    """Reads rows as records; columns are matched to fields by name."""

    def __init__(self, source: PostgresRows, tp: Any) -> None:
        self._source = source
        self._query = _Query(source)
        self._type = tp
        self._fields = fields_of_record(tp) or []
        self._is_record = bool(self._fields and self._fields[0].name)
        self._fill = filler_of(tp)
        self._columns: dict[str, TableColumn] | None = None
        self._limit = _ROWS_PER_CHUNK

    def batches(self, chunk: Chunk) -> Iterator[RawBatch]:
        """Rows, about `RUN_BYTES` at a time; raises `InputError` if their number has changed."""
        begin, count, is_over = self._query.at_or_after(chunk.start), 0, False
        while not is_over:
            piece, is_over = self._piece(begin, chunk)
            if not piece:
                break
            count += len(piece)
            positions = [(int(row.pop("xid of it")), _plain(row.pop("key of it"))) for row in piece]
            yield from self._split(piece, positions)
            begin = self._query.after(positions[-1])
        if count != chunk.about["rows"]:
            raise InputError(_changed(self._source, chunk, count))

    def _piece(self, begin: Composed, chunk: Chunk) -> tuple[list[dict[str, Any]], bool]:
        return persist(
            self._source.database,
            f"source {self._source.name}",
            "read rows",
            lambda connection: self._rows(connection, begin, chunk),
        )

    def _split(
        self, rows: list[dict[str, Any]], positions: list[tuple[int, Any]]
    ) -> Iterator[RawBatch]:
        """Batches of rows; each that is too large comes alone."""
        longest, start = self._source.max_record_bytes, 0
        raws = rows if self._is_record else [row[self._fields[0].column] for row in rows]
        for number, row in enumerate(rows):
            size = _size(row)
            if size > longest:
                if start < number:
                    yield RawBatch(raws[start:number], positions[start:number])
                shown = json.dumps(_beginning(raws[number]), default=str).encode()
                yield RawBatch([LongRecord.of(shown, size, longest)], [positions[number]])
                start = number + 1
        if start < len(rows):
            yield RawBatch(raws[start:], positions[start:])

    def count(self, chunk: Chunk) -> int:
        return int(chunk.about["rows"])

    def _rows(
        self, connection: Connection, begin: Composed, chunk: Chunk
    ) -> tuple[list[dict[str, Any]], bool]:
        """The rows of a chunk from a position on, about `RUN_BYTES`, and whether these are all.

        They come row by row, so that few are in memory.
        """
        if self._columns is None:
            table = read_table(connection, self._source.name)
            self._columns = table.columns if table else {}
        query = SQL(
            "SELECT {picked} {xid}::text AS {xid_name}, {key} AS {key_name} FROM {table}"
            " WHERE {start} AND {end} ORDER BY {order} LIMIT {limit}"
        ).format(
            picked=Composed(self._picked(self._columns)),
            xid=self._query.xid,
            xid_name=Identifier("xid of it"),
            key=self._query.key,
            key_name=Identifier("key of it"),
            table=self._query.table,
            start=begin,
            end=self._query.before(chunk.end),
            order=self._query.order,
            limit=self._limit,
        )
        rows: list[dict[str, Any]] = []
        size = 0
        with connection.cursor(row_factory=dict_row) as cursor:
            found: Any = cursor.stream(query)
            with contextlib.closing(found):
                for row in found:
                    rows.append(row)
                    size += _size(row)
                    if size >= RUN_BYTES:
                        break
        is_over = len(rows) < self._limit and size < RUN_BYTES
        if rows:  # so that the next query ends by itself: to cancel one takes a connection
            self._limit = max(1, min(_ROWS_PER_CHUNK, len(rows) * RUN_BYTES // max(size, 1)))
        for name in self._whole_numbers(self._columns):
            for row in rows:
                row[name] = _whole(row[name])
        return rows, is_over

    def _whole_numbers(self, columns: dict[str, TableColumn]) -> list[str]:
        """The integer fields whose column is numeric, and so may hold fractions."""
        whole = [field.column for field in self._fields if field.kind == "int"]
        return [name for name in whole if name in columns and columns[name].base == "numeric"]

    def _picked(self, columns: dict[str, TableColumn]) -> list[Composable]:
        there = [field for field in self._fields if field.column in columns]
        return [_as_declared(field, columns[field.column]) + SQL(", ") for field in there]

    def decode(self, raw_batch: RawBatch) -> list[Any]:
        if isinstance(raw_batch.raws[0], LongRecord):
            raw_batch.raws[0].refuse()
        found = msgspec.convert(list(raw_batch.raws), list[self._type])  # type: ignore[name-defined]
        for value in found if self._fill else ():
            self._filled(value)
        return found

    def decode_one(self, raw: Any) -> Any:
        if isinstance(raw, LongRecord):
            raw.refuse()
        return self._filled(msgspec.convert(raw, self._type))

    def _filled(self, value: Any) -> Any:
        if self._fill:
            self._fill(value)
        return value

    def preview(self, raw: Any) -> bytes:
        if isinstance(raw, LongRecord):
            return raw
        return json.dumps(raw, default=str, ensure_ascii=False).encode("utf-8", "replace")


def _size(value: Any) -> int:
    """About how many bytes a value of a row has."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, value)) + sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 8


def _beginning(value: Any) -> Any:
    """A row with its texts cut, to be shown."""
    if isinstance(value, dict):
        return {name: _beginning(inner) for name, inner in value.items()}
    return value[:SHOWN_BYTES] if isinstance(value, str | bytes | list) else value


def _as_declared(field: Field, column: TableColumn) -> Composed:
    """The expression for a column; casts numbers to float8 if the record declares a float."""
    name = Identifier(column.name)
    if field.kind == "float" and column.base in (*_INTEGERS, "numeric"):
        return SQL("{0}::float8 AS {0}").format(name)
    return Composed([name])


def _whole(value: Decimal | None) -> Any:
    """An integral value as int; any other is left as it is, which makes the record bad."""
    is_whole = value is not None and value.is_finite() and value == value.to_integral_value()
    return int(value) if is_whole and value is not None else value


def _another_table(source: PostgresRows, chunk: Chunk) -> Problem:
    return Problem(
        "another-table",
        f"the checkpoint has read {chunk.about['table']} up to {_position(chunk.end)}, and the "
        f"source is bound to {source.name}; positions in one table mean nothing in another",
        "bind the source to the table it had, or start with a new checkpoint",
    )


def _changed(source: PostgresRows, chunk: Chunk, found: int) -> Problem:
    return Problem(
        "changed-table",
        f"{source.name} had {chunk.about['rows']} rows from {_position(chunk.start)} to before "
        f"{_position(chunk.end)} when its epoch was planned, and has {found}; rows of a source "
        "must not change before they are read",
        "put them back, or start with a new checkpoint; delete only rows that were read",
    )


def _position(position: _Position) -> str:
    xid, key = position
    return f"transaction {xid}" if key is None else f"(transaction {xid}, key {key})"


def source_table_problems(source: PostgresRows, name: str, tp: Any) -> list[Problem]:
    """Why a table cannot be a source of records of a type, by the catalog."""
    owner = f"source '{name}'"

    def look(connection: Connection) -> list[Problem]:
        table = read_table(connection, source.name)
        if table is None:
            return [_missing_table(owner, source)]
        return [*_column_problems(owner, source, table), *_field_problems(owner, table, tp)]

    try:
        return persist(source.database, owner, f"read the catalog of {source.name}", look)
    except RefusedError as error:
        return list(error.problems)


def _missing_table(owner: str, source: PostgresRows) -> Problem:
    return Problem(
        "missing-table",
        f"{owner} reads {source.name}, which does not exist, or which this role cannot see",
        "correct the name, or create the table",
    )


def _column_problems(owner: str, source: PostgresRows, table: Table) -> Iterator[Problem]:
    key = table.columns.get(source.key)
    allowed = (*_INTEGERS, "uuid") if source.transaction else _INTEGERS
    if key is None or key.base not in allowed or not key.is_required:
        is_there = "is missing" if key is None else f"is {key.type}"
        yield Problem(
            "source-key",
            f"{owner} reads {source.name} by '{source.key}', which {is_there}; a key is NOT NULL "
            f"and of type {', '.join(allowed)}",
            "name the primary key",
        )
    elif not {frozenset([source.key]), frozenset([source.key, source.transaction])} & table.unique:
        yield Problem(
            "source-key",
            f"{owner} reads {source.name} by '{source.key}', which no constraint makes unique, so "
            "rows have no order",
            f"ALTER TABLE {source.name} ADD UNIQUE ({source.key}), or name the primary key",
        )
    if source.transaction is not None:
        yield from _transaction_problems(owner, source, table)


def _transaction_problems(owner: str, source: PostgresRows, table: Table) -> Iterator[Problem]:
    column = table.columns.get(source.transaction or "")
    if column is None or column.base != "xid8" or not column.is_required or not column.has_default:
        yield Problem(
            "source-transaction",
            f"{owner} reads {source.name} by '{source.transaction}', which is not a column of "
            "type xid8 that is NOT NULL and filled by default",
            f"ALTER TABLE {source.name} ADD {source.transaction} xid8 NOT NULL DEFAULT "
            "pg_current_xact_id()",
        )


def _field_problems(owner: str, table: Table, tp: Any) -> Iterator[Problem]:
    fields = fields_of_record(tp)
    if fields is None:
        yield Problem(
            "unknown-record",
            f"{owner} reads records of an unknown type, so it does not know which columns",
            "give the source a type with fields",
        )
        return
    schema = schema_of(tp)
    declared = schema.get("fields", {}) if isinstance(schema, dict) else {}
    for field in fields:
        is_required = declared.get(field.name, {"required": True})["required"]
        if field.column not in table.columns and is_required:
            yield Problem(
                "missing-column",
                f"{owner}: table {table.name} has no column '{field.column}' for the field of "
                f"that name; it has: {', '.join(table.columns)}",
                "give the field a default, or leave it out",
            )
