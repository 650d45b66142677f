"""How a run ends: 1 means "start it again", 2 means "somebody must change something".

==========================================================  ================  ====
what failed                                                 class             code
==========================================================  ================  ====
another run took over                                       `FencedError`     1
a server that is down, restarts, or is out of room          `ConnectorError`  1
disk, memory, lock, the JVM                                 `ResourceError`   1
anything else of Spark's                                    `RunFailure`      1
a setting, a flow, a permission, a damaged file             `RefusedError`    2
a record that is read: bad, late, changed                   `InputError`,     2
                                                            `RunError` itself
a function of the user's, or a row it makes that a sink     `StepError`       2
cannot take: too large, of another type, a key twice
a bug of ours (an exception that is not of this library)    any other         2
==========================================================  ================  ====

A supervisor restarts on 1 and gives up on 2. Errors of other systems find their class here, by
what those systems say: the number of an `OSError`, the SQLSTATE of PostgreSQL, the code of Kafka.
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
    "exit_code",
    "kind_of_errno",
    "kind_of_kafka",
    "kind_of_sqlstate",
    "of_machine",
    "of_unexpected",
]

AGAIN = 1
"""Starting it again may help."""
CHANGE = 2
"""It will be the same until somebody changes something."""

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
"""Paths, names and rights. All others (ENOSPC, EDQUOT, EIO, ESTALE, EROFS …) are the machine's."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_SQLSTATES: dict[str, type[CutwaterError]] = {
    "08": ConnectorError,  # connection exception
    "25006": ConnectorError,  # read-only: a standby, for as long as a failover takes
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
    "": RefusedError,  # rights, names, syntax: all the rest
}
"""By SQLSTATE or its class, the first two characters; the longer one wins."""

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
"""Names of Kafka's codes; all others are the brokers' or the network's."""


def exit_code(error: BaseException) -> int:
    """What a process ends with.

    >>> exit_code(ResourceError(Problem("no-room", "the disk is full"))), exit_code(KeyError())
    (1, 2)
    """
    if isinstance(error, OSError):
        error = of_machine(error)
    return AGAIN if isinstance(error, (RunFailure, MemoryError)) else CHANGE


def kind_of_errno(
    number: int | None, of_the_user: type[CutwaterError] = RefusedError
) -> type[CutwaterError]:
    """The class of an error of the operating system; `of_the_user` for paths, names and rights."""
    return of_the_user if number in _OF_THE_USER else ResourceError


def kind_of_sqlstate(state: str | None) -> type[CutwaterError]:
    """The class of an error of PostgreSQL; without a state nothing came from the server.

    >>> kind_of_sqlstate("53100").__name__, kind_of_sqlstate("22003").__name__
    ('ConnectorError', 'StepError')
    """
    if state is None:
        return ConnectorError
    return _SQLSTATES.get(state) or _SQLSTATES.get(state[:2]) or _SQLSTATES[""]


def kind_of_kafka(name: str) -> type[CutwaterError]:
    """The class of an error of Kafka, by the name of its code."""
    found = (kind for kind, names in _KAFKA.items() if name in names.split())
    return next(found, ConnectorError)


def of_machine(error: OSError) -> CutwaterError:
    """An error of the operating system that nobody expected, as a sentence."""
    where = f"{error.filename}: " if error.filename else ""
    said = f"{where}{error.strerror or error or type(error).__name__}"
    kind = kind_of_errno(error.errno)
    if error.errno in _NO_ROOM:
        hint = "make room, and run it again: nothing is lost"
        return kind(Problem("no-room", f"the disk is full: {said}", hint))
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    hint = "see to the path and the rights of this user" if kind is RefusedError else ""
    problem = Problem(
        "machine-failed",
        f"the operating system refused a call with {name}: {said}",
        hint or "see to the disk, the network and the memory; run it again: nothing is lost",
    )
    return kind(problem)


def of_unexpected(error: Exception) -> CutwaterError:
    """Any exception as a sentence; one of this library is one already."""
    if isinstance(error, CutwaterError):
        return error
    if isinstance(error, OSError):
        return of_machine(error)
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        return ResourceError(
            Problem(
                "no-memory",
                f"this process has no memory left: {said}",
                "give it more, or let epochs be smaller; run it again: nothing is lost",
            )
        )
    return CutwaterError(Problem("unexpected", said, "see where with --debug"))
