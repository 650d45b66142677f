"""How to reach a database, and where its password is stored: settings that hold no secret."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cutwater.errors import Problem, RefusedError

__all__ = ["Database", "TableName"]

_SECRET = ("password", "sslpassword")


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
        if self.password_env and self.password_file:
            yield Problem(
                "two-passwords",
                f"{owner} has its password in the variable {self.password_env} and in the file "
                f"{self.password_file}",
                "name one of the two",
            )
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
        if self.password_env:
            if self.password_env not in os.environ:
                raise RefusedError(
                    Problem(
                        "no-password",
                        f"{owner} has its password in the variable {self.password_env}, which is "
                        "not set in this process",
                        "set it for the driver and for every executor, or use password_file=",
                    )
                )
            return os.environ[self.password_env]
        if self.password_file:
            try:
                return Path(self.password_file).read_text().rstrip("\r\n")
            except OSError as error:
                raise RefusedError(
                    Problem(
                        "no-password",
                        f"{owner} has its password in the file {self.password_file}, which cannot "
                        f"be read: {error.strerror}",
                        "correct the path, or who may read it, on every machine",
                    )
                ) from None
        return None
