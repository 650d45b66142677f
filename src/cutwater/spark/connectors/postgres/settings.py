"""How to reach a database, and where its password is stored: settings that hold no secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cutwater.errors import Problem
from cutwater.spark.connectors.base.passwords import password_from, password_problems

__all__ = ["Database", "TableName", "name_problems"]

_SECRET = ("password", "sslpassword")
_LONGEST_NAME = 63


@dataclass(frozen=True)
class TableName:
    """A table by its schema and its name; without a schema it is in ``public``.

    >>> str(TableName.of("sales.total")), str(TableName.of("total"))
    ('sales.total', 'public.total')
    """

    schema: str
    name: str

    @staticmethod
    def of(text: str) -> TableName:
        """The table that a setting names."""
        schema, _, name = text.rpartition(".")
        return TableName(schema or "public", name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def name_problems(owner: str, table: str, ledger_schema: str | None = None) -> Iterator[Problem]:
    """Why settings cannot name a table and a schema.

    PostgreSQL cuts longer names off, so that two could be the same.
    """
    name = TableName.of(table)
    if table.count(".") > 1 or not (_is_name(name.schema) and _is_name(name.name)):
        yield Problem(
            "table-name",
            f"{owner} has table={table!r}, which is not the name of a table: "
            f"it must have at most {_LONGEST_NAME} bytes of UTF-8",
            "write it as table or schema.table",
        )
    if ledger_schema and not _is_name(ledger_schema):
        yield Problem(
            "table-name",
            f"{owner} has ledger_schema={ledger_schema!r}, which is not the name of a schema: "
            f"it must have at most {_LONGEST_NAME} bytes of UTF-8",
            "leave ledger_schema out for the schema of the table",
        )


def _is_name(name: str) -> bool:
    data = name.encode(errors="ignore")
    return 0 < len(data) <= _LONGEST_NAME and "\0" not in name and data.decode() == name


@dataclass(frozen=True)
class Database:
    """A database, as libpq finds it, without its password."""

    dsn: str = field(repr=False)
    password_env: str | None = None
    """The environment variable that holds the password."""
    password_file: str | None = None
    """The file that holds the password and nothing else but a final newline."""

    def __str__(self) -> str:
        """Where it is, for people, without secrets."""
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            given = conninfo_to_dict(self.dsn)
        except ProgrammingError:
            return "PostgreSQL"
        host, port = given.get("host") or "localhost", given.get("port") or 5432
        return f"PostgreSQL at {host}:{port}/{given.get('dbname') or ''}"

    def problems(self, owner: str) -> Iterator[Problem]:
        """What is wrong with the settings; `owner` names theirs in messages: ``sink 'total'``."""
        yield from password_problems(owner, self.password_env, self.password_file)
        yield from self._dsn_problems(owner)

    def _dsn_problems(self, owner: str) -> Iterator[Problem]:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            given = conninfo_to_dict(self.dsn)
        except ProgrammingError:  # its message may quote a secret
            yield Problem(
                "unreadable-dsn",
                f"{owner} has a dsn that libpq cannot read",
                'write it as "host=... port=... dbname=... user=..." or postgresql://user@host/name',
            )
            return
        for name in _SECRET:
            if given.get(name):
                yield Problem(
                    "secret-in-settings",
                    f"{owner} has a {name} in its dsn; settings are kept in checkpoints and logs",
                    "remove it, and name a variable or a file that holds it: password_env= or "
                    "password_file=",
                )

    def password(self, owner: str) -> str | None:
        """The password, read at each call; None: left to libpq (PGPASSWORD, ~/.pgpass), or none.

        Raises `RefusedError` if the variable is not set or the file cannot be read.
        """
        return password_from(owner, self.password_env, self.password_file)
