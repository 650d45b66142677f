"""Connections that are kept for the next epoch; what is tried again, and how often."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cutwater.errors import ConnectorError, Problem, RunError
from cutwater.spark.connectors.postgres.settings import Database

__all__ = ["PAUSES_S", "Connection", "connected", "persist", "refused", "said"]

Connection = psycopg.Connection[Any]
T = TypeVar("T")

PAUSES_S = (0.0, 0.1, 0.2, 0.5, *[1.0] * 30)
"""How long to wait before each further attempt; a server takes some seconds to come back."""

_PATIENCE_S = 10
"""How long a server may take to answer, if the dsn does not say it."""

_SESSION = [
    # Spark goes on when a transaction is done: one that the server may still lose is not done.
    ("synchronous_commit", "off", "on"),
    # A process that is paused in the middle of a transaction must not hold up its successor.
    ("idle_in_transaction_session_timeout", "0", "60s"),
]
"""Settings of a session: what each is not left at, and what it is then."""

_PASSING_CLASSES = ("08", "40")
_PASSING = ("25P03", "53300", "57P01", "57P02", "57P03", "57P05")
"""SQL states after which another attempt may succeed: too many connections, shutting down …"""

_idle: dict[tuple[int, Database], list[Connection]] = {}
"""Connections nobody uses at the moment, by process: one that was forked has none of them."""


@contextlib.contextmanager
def connected(database: Database, owner: str) -> Iterator[Connection]:
    """A connection, kept from an earlier time or new; it is kept again unless something failed."""
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
    settings.setdefault("connect_timeout", _PATIENCE_S)
    connection = psycopg.connect(make_conninfo("", **settings), autocommit=True)
    # What a statement waits for is seen by the next: whatever the server's default is.
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    for name, unwanted, wanted in _SESSION:
        connection.execute(
            "SELECT set_config(%s, %s, false) WHERE current_setting(%s) = %s",
            (name, wanted, name, unwanted),
        )
    return connection


def persist(database: Database, owner: str, doing: str, work: Callable[[Connection], T]) -> T:
    """Do work that may be done again, until the server lets it; a sentence if it does not.

    Parameters
    ----------
    owner
        Whose work it is: ``sink 'total'``.
    doing
        What could not be done, if so: ``write epoch 3 to public.total``.
    """
    started = time.monotonic()
    for pause in (*PAUSES_S, None):
        try:
            with connected(database, owner) as connection:
                return work(connection)
        except psycopg.Error as error:
            if not _is_passing(error):
                raise RunError(refused(owner, doing, error)) from None
            if pause is None:
                seconds = time.monotonic() - started
                raise ConnectorError(_unavailable(owner, doing, error, seconds)) from None
            _close_idle(database)  # they are as old as the one that broke
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _is_passing(error: psycopg.Error) -> bool:
    state = error.sqlstate
    if state is None:  # nothing came from the server
        return isinstance(error, psycopg.OperationalError)
    return state.startswith(_PASSING_CLASSES) or state in _PASSING


def _close_idle(database: Database) -> None:
    idle = _idle.get((os.getpid(), database), [])
    while idle:
        with contextlib.suppress(IndexError):
            idle.pop().close()


def said(error: psycopg.Error) -> str:
    """What the server said, on one line."""
    primary = error.diag.message_primary or str(error).strip()
    parts = [part for part in (primary, error.diag.message_detail) if part]
    text = "; ".join(" ".join(part.split()) for part in parts) or type(error).__name__
    return text if len(text) <= 500 else f"{text[:500]}…"


def refused(owner: str, doing: str, error: psycopg.Error) -> Problem:
    """What the server does not let someone do, and what it says."""
    hints: dict[type[psycopg.Error], str] = {
        psycopg.errors.InsufficientPrivilege: "grant the role what docs/postgres.md lists",
        psycopg.errors.UniqueViolation: "to replace rows with the same key, use mode='upsert'",
        psycopg.errors.IntegrityError: "correct the constraint, or what the flow sends",
        psycopg.errors.DataError: "widen the column, or correct what the flow sends",
        psycopg.errors.DiskFull: "make room, and run it again: nothing is lost",
    }
    hint = next((text for kind, text in hints.items() if isinstance(error, kind)), "")
    return Problem(
        "refused-by-postgres",
        f"{owner} could not {doing}: PostgreSQL says: {said(error)}",
        hint or "correct what it names, and run it again: nothing is lost",
    )


def _unavailable(owner: str, doing: str, error: psycopg.Error, seconds: float) -> Problem:
    return Problem(
        "database-unavailable",
        f"{owner} could not {doing}: {said(error)} (tried {len(PAUSES_S) + 1} times in "
        f"{seconds:.0f} s)",
        "see that the server runs and can be reached, and run it again: nothing is lost",
    )
