"""Pools connections across epochs, and retries with back-off.

Every wait has a timeout:

==========================================  ==================================================
establishing a connection                   ``connect_timeout`` of the dsn, else 10 s
an answer, while the server's host is up    `Connection.wait`: the session's statement_timeout
                                            plus 10 s; 120 s if it has none
an answer, when the host is down            ``tcp_user_timeout`` and keepalives: 30 s
all attempts together                       `PAUSES_S` in number, `GIVE_UP_S` in time
==========================================  ==================================================

The pool is a list and not `psycopg_pool`, whose threads do not survive the fork of a Python worker.
The retries are a loop and not `tenacity`, since each failed attempt also empties the pool.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cutwater.endings import kind_of_sqlstate
from cutwater.errors import ConnectorError, CutwaterError, Problem, RefusedError, many
from cutwater.spark.connectors.postgres.settings import Database

__all__ = ["GIVE_UP_S", "PAUSES_S", "Connection", "connected", "persist", "server_message"]

_T = TypeVar("_T")

PAUSES_S = (0.0, 0.1, 0.2, 0.5, *[1.0] * 30)
"""The back-off before each retry, in seconds; a server takes some seconds to restart."""

GIVE_UP_S = 120.0
"""Seconds after which there is no further retry: each attempt may wait for an answer, too."""

_ANSWER_S = 120.0
"""Seconds that a server may take for a statement if its role has no statement_timeout."""
_SPARE_S = 10.0
"""Seconds that the client waits longer than the server, so that the server reports first."""

_CONNECTION_DEFAULTS = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
"""Default settings of a connection, which a dsn may override."""

_SESSION = [
    # Spark begins the next epoch once a transaction is committed, so the server must not lose it.
    ("synchronous_commit", "off", "on"),
    # A process that is paused in the middle of a transaction must not block its successor.
    ("idle_in_transaction_session_timeout", "0", "60s"),
]
"""Settings of a session: the value that is not acceptable, and the one that replaces it."""

_TOO_MANY = ("too many", "connection slots")
"""Messages of SQLSTATE 53300: libpq passes on no SQLSTATE of a refused connection."""


class Connection(psycopg.Connection[Any]):
    """A connection with a response timeout."""

    answer_s = _ANSWER_S
    """The timeout in seconds."""

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Wait as psycopg does, but for at most `answer_s`; then close and raise."""
        try:
            return super().wait(_bounded(gen, self.answer_s), *arguments, **options)
        except _NoAnswer:
            self.close()  # else a rollback would wait for the timeout again
            raise


class _NoAnswer(psycopg.OperationalError):
    """The server did not answer in time."""


def _bounded(gen: Generator[Any, Any, _T], seconds: float) -> Generator[Any, Any, _T]:
    """The same exchange with the server, with a timeout.

    A frozen server keeps its end of the connection open: only a clock can detect that.
    """
    deadline = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise _NoAnswer(f"no answer for {seconds:.0f} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: _T = end.value
        return result


_idle: dict[tuple[int, Database], list[Connection]] = {}
"""Idle connections, by process: a forked process must not reuse those of its parent."""


@contextlib.contextmanager
def connected(database: Database, owner: str) -> Iterator[Connection]:
    """A connection from the pool or a new one; returned to the pool unless something failed."""
    idle = _idle.setdefault((os.getpid(), database), [])
    try:
        connection = idle.pop()
    except IndexError:
        connection = _opened(database, owner)
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    idle.append(connection)


def _opened(database: Database, owner: str) -> Connection:
    settings = conninfo_to_dict(
        database.dsn, fallback_application_name="cutwater", password=database.password(owner)
    )
    conninfo = make_conninfo("", **{**_CONNECTION_DEFAULTS, **settings})
    connection = _logged_in(conninfo, owner)
    # A statement must see what the previous one waited for, whatever the server's default is.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    for name, unwanted, wanted in _SESSION:
        connection.execute(
            "SELECT set_config(%s, %s, false) WHERE current_setting(%s) = %s",
            (name, wanted, name, unwanted),
        )
    connection.answer_s = _answer_s(connection)
    return connection


def _answer_s(connection: Connection) -> float:
    found = connection.execute(
        "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'"
    ).fetchone()
    return found[0] / 1000 + _SPARE_S if found and found[0] else _ANSWER_S


def _logged_in(conninfo: str, owner: str) -> Connection:
    """A new connection; raises `RefusedError` if the login fails on a server that is up.

    The first error alone does not tell: a server that was just starting may accept connections a
    moment later. So the login is retried once when it does.
    """
    try:
        return Connection.connect(conninfo, autocommit=True)
    except psycopg.OperationalError as error:
        if _is_full(error) or not _accepts_connections(conninfo):
            raise
        first = str(error)
    try:
        return Connection.connect(conninfo, autocommit=True)
    except psycopg.OperationalError as error:
        if str(error) == first and _accepts_connections(conninfo):
            raise RefusedError(_turned_away(owner, error)) from None
        raise


def _is_full(error: psycopg.OperationalError) -> bool:
    return any(words in str(error) for words in _TOO_MANY)


def _accepts_connections(conninfo: str) -> bool:
    return psycopg.pq.PGconn.ping(conninfo.encode()) == psycopg.pq.Ping.OK


def persist(database: Database, owner: str, doing: str, work: Callable[[Connection], _T]) -> _T:
    """Retry idempotent work with back-off while the server is unavailable.

    Raises `ConnectorError` when all attempts failed; an error that no retry can cure, at once.

    Parameters
    ----------
    owner
        The sink or source, for messages: ``sink 'total'``.
    doing
        The operation, for messages: ``write epoch 3 to public.total``.
    """
    started = time.monotonic()
    for attempt, pause in enumerate((*PAUSES_S, None), 1):
        try:
            with connected(database, owner) as connection:
                return work(connection)
        except psycopg.Error as error:
            kind = _kind(error)
            if kind is not ConnectorError:
                raise kind(_refused(owner, doing, error)) from None
            seconds = time.monotonic() - started
            if pause is None or seconds > GIVE_UP_S:
                raise kind(_unavailable(owner, doing, error, attempt, seconds)) from None
            _close_idle(database)  # they are likely as broken as this one
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _kind(error: psycopg.Error) -> type[CutwaterError]:
    is_of_the_client = error.sqlstate is None and not isinstance(error, psycopg.OperationalError)
    return RefusedError if is_of_the_client else kind_of_sqlstate(error.sqlstate)


def _close_idle(database: Database) -> None:
    idle = _idle.get((os.getpid(), database), [])
    while idle:
        with contextlib.suppress(IndexError):
            idle.pop().close()


def server_message(error: psycopg.Error) -> str:
    """The server's message, on one line."""
    primary = error.diag.message_primary or str(error).strip()
    parts = [part for part in (primary, error.diag.message_detail) if part]
    text = "; ".join(" ".join(part.split()) for part in parts) or type(error).__name__
    return text if len(text) <= 500 else f"{text[:500]}…"


def _refused(owner: str, doing: str, error: psycopg.Error) -> Problem:
    """The message for work that the server refused, with the server's reason."""
    hints: dict[type[psycopg.Error], str] = {
        psycopg.errors.InsufficientPrivilege: "grant the role what docs/postgres.md lists",
        psycopg.errors.UniqueViolation: "to replace rows with the same key, use mode='upsert'",
        psycopg.errors.IntegrityError: "correct the constraint, or what the flow sends",
        psycopg.errors.DataError: "widen the column, or correct what the flow sends",
    }
    hint = next((text for kind, text in hints.items() if isinstance(error, kind)), "")
    return Problem(
        "refused-by-postgres",
        f"{owner} could not {doing}: PostgreSQL says: {server_message(error)}",
        hint or "correct what it names, and run it again: nothing is lost",
    )


def _turned_away(owner: str, error: psycopg.Error) -> Problem:
    return Problem(
        "login-refused",
        f"{owner} cannot connect, though the server runs: {server_message(error)}",
        "correct the dsn, the role or the password",
    )


def _unavailable(
    owner: str, doing: str, error: psycopg.Error, attempts: int, seconds: float
) -> Problem:
    return Problem(
        "database-unavailable",
        f"{owner} could not {doing}: {server_message(error)} (tried {many(attempts, 'time')} in "
        f"{seconds:.0f} s)",
        "check that the server runs and can be reached, and run it again: nothing is lost",
    )
