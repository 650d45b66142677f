"""Exit codes of a run: 1 means "restart it", 2 means "change something first".

==========================================================  ================  ====
what failed                                                 class             code
==========================================================  ================  ====
another run took over                                       `FencedError`     1
a server that is down, restarting, or out of space          `ConnectorError`  1
disk, memory, lock, the JVM                                 `ResourceError`   1
any other failure inside Spark                              `RunFailure`      1
a setting, a flow, a permission, a damaged file             `RefusedError`    2
an input record: malformed, late, changed                   `InputError`,     2
                                                            `RunError` itself
a user's function, or a row it emits that a sink cannot     `StepError`       2
accept: too large, of another type, a duplicate key
a bug in this library (any exception not of its own)        any other         2
==========================================================  ================  ====

A supervisor restarts on 1 and gives up on 2. Errors of other systems are classified here by their
own codes: the errno of an `OSError`, PostgreSQL's SQLSTATE, Kafka's error code, the HTTP status of
an object store.
"""

from __future__ import annotations

import errno

from cutwater.errors import (
    ConnectorError,
    CutwaterError,
    Problem,
    RefusedError,
    ResourceError,
    RunFailure,
    StepError,
)

__all__ = [
    "AGAIN",
    "CHANGE",
    "OF_STORAGE",
    "exit_code",
    "kind_of_errno",
    "kind_of_http",
    "kind_of_kafka",
    "kind_of_sqlstate",
    "of_machine",
    "of_unexpected",
]

AGAIN = 1
"""A restart may help."""
CHANGE = 2
"""A restart fails the same way until something changes."""

_OF_THE_USER = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.ENOTEMPTY,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.EINVAL,
        errno.EXDEV,
        errno.EADDRINUSE,
        errno.EADDRNOTAVAIL,
    }
)
"""Paths, names, permissions. The rest (ENOSPC, EDQUOT, EIO, ESTALE, EROFS …) are the machine's."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

OF_STORAGE = (*_NO_ROOM, errno.EIO, errno.ESTALE, errno.EROFS, errno.EACCES, errno.EPERM)
"""What files fail with and connections to other processes do not."""

_SQLSTATES: dict[str, type[CutwaterError]] = {
    "08": ConnectorError,  # connection exception
    "25006": ConnectorError,  # read-only: a standby, until its failover completes
    "25P03": ConnectorError,  # idle in transaction for too long
    "40": ConnectorError,  # transaction rollback: serialization, deadlock
    "53": ConnectorError,  # insufficient resources: disk, memory, connections
    "55006": ConnectorError,  # object in use
    "55P03": ConnectorError,  # lock not available
    "57": ConnectorError,  # operator intervention: shutdown, starting up, cancelled
    "58": ConnectorError,  # system error: I/O
    "XX": ConnectorError,  # internal error
    "22": StepError,  # data exception
    "23": StepError,  # integrity constraint violation
    "": RefusedError,  # permissions, names, syntax: all the rest
}
"""By SQLSTATE or its class (the first two characters); the longest match wins."""

_KAFKA: dict[type[CutwaterError], str] = {
    StepError: "MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_RECORD",
    RefusedError: (
        "_AUTHENTICATION SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM _SSL "
        "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED "
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED "
        "UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION "
        "_INVALID_ARG _CONFLICT TOPIC_EXCEPTION INVALID_CONFIG POLICY_VIOLATION "
        "UNSUPPORTED_VERSION INVALID_TRANSACTION_TIMEOUT"
    ),
}
"""Names of Kafka's error codes; all others are failures of the brokers or of the network."""

_HTTP_AGAIN = (408, 409, 412, 425, 429)
"""Statuses below 500 that may not recur on a retry: timeouts, lost races, rate limits."""


def exit_code(error: BaseException) -> int:
    """The exit code of a process that ends with this error.

    >>> exit_code(ResourceError(Problem("no-room", "the disk is full"))), exit_code(KeyError())
    (1, 2)
    """
    if isinstance(error, OSError):
        error = of_machine(error)
    return AGAIN if isinstance(error, (RunFailure, MemoryError)) else CHANGE


def kind_of_errno(
    number: int | None, of_the_user: type[CutwaterError] = RefusedError
) -> type[CutwaterError]:
    """The class of an operating system error; `of_the_user` for paths, names and permissions."""
    return of_the_user if number in _OF_THE_USER else ResourceError


def kind_of_sqlstate(state: str | None) -> type[CutwaterError]:
    """The class of a PostgreSQL error; without a SQLSTATE the server did not answer.

    >>> kind_of_sqlstate("53100").__name__, kind_of_sqlstate("22003").__name__
    ('ConnectorError', 'StepError')
    """
    if state is None:
        return ConnectorError
    return _SQLSTATES.get(state) or _SQLSTATES.get(state[:2]) or _SQLSTATES[""]


def kind_of_http(status: int) -> type[CutwaterError]:
    """The class of a request that an object store refused, by its HTTP status.

    >>> kind_of_http(403).__name__, kind_of_http(503).__name__
    ('RefusedError', 'ConnectorError')
    """
    is_of_the_user = 400 <= status < 500 and status not in _HTTP_AGAIN
    return RefusedError if is_of_the_user else ConnectorError


def kind_of_kafka(name: str) -> type[CutwaterError]:
    """The class of a Kafka error, by the name of its code."""
    found = (kind for kind, names in _KAFKA.items() if name in names.split())
    return next(found, ConnectorError)


def of_machine(error: OSError) -> CutwaterError:
    """An unexpected error of the operating system, as an error of this library."""
    where = f"{error.filename}: " if error.filename else ""
    message = f"{where}{error.strerror or error or type(error).__name__}"
    kind = kind_of_errno(error.errno)
    if error.errno in _NO_ROOM:
        hint = "free some space, and run it again: nothing is lost"
        return kind(Problem("no-room", f"the disk is full: {message}", hint))
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    hint = "check the path and the permissions of this user" if kind is RefusedError else ""
    problem = Problem(
        "machine-failed",
        f"the operating system refused a call with {name}: {message}",
        hint or "check the disk, the network and the memory, then run it again: nothing is lost",
    )
    return kind(problem)


def of_unexpected(error: Exception) -> CutwaterError:
    """Any exception as an error of this library; one of its own is returned unchanged."""
    if isinstance(error, CutwaterError):
        return error
    if isinstance(error, OSError):
        return of_machine(error)
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        return ResourceError(
            Problem(
                "no-memory",
                f"this process is out of memory: {message}",
                "give it more, or make epochs smaller, then run it again: nothing is lost",
            )
        )
    return CutwaterError(Problem("unexpected", message, "see where with --debug"))
