"""Explains errors of the Kafka client: what failed, and what to do about it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from cutwater.endings import kind_of_kafka
from cutwater.errors import ConnectorError, CutwaterError, Problem
from cutwater.spark.connectors.kafka.settings import Cluster, client_module

__all__ = [
    "PATIENCE_S",
    "LastError",
    "failed",
    "failure",
    "in_words",
    "is_down",
    "is_fenced",
    "is_hopeless",
    "overdue",
    "patiently",
]

_T = TypeVar("_T")

PATIENCE_S = 120
"""Seconds to wait for brokers that do not answer."""

_UNREACHABLE = "_TRANSPORT _ALL_BROKERS_DOWN _TIMED_OUT _RESOLVE _TIMED_OUT_QUEUE _MSG_TIMED_OUT"
_LOGIN = "_AUTHENTICATION SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM _SSL"
_FORBIDDEN = (
    "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED "
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
)
_UNKNOWN = "UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION"
_TOO_LARGE = "MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE"
_SETTINGS = "_INVALID_ARG _CONFLICT"
_TIMEOUT = "INVALID_TRANSACTION_TIMEOUT"
_FENCED = "_FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH"


class LastError:
    """The last error that a client reported in the background, to explain a timeout."""

    def __init__(self) -> None:
        self.error: Any = None
        self.failed: Any = None
        """Why a message was not delivered, if any was not."""

    def delivered(self, error: Any, message: Any) -> None:
        """Record the error if a message was not delivered."""
        if error is not None:
            self.failed = error

    def __call__(self, error: Any) -> None:
        """Record an error of the client; a refused login is not overwritten by later errors."""
        if self.error is None or not _is(self.error, _LOGIN):
            self.error = error

    def or_else(self, error: Any) -> Any:
        """The given error; if that is only a timeout, the recorded one."""
        if self.error is not None and _is(error, _UNREACHABLE):
            return self.error
        return error

    @contextlib.contextmanager
    def explaining(self) -> Iterator[None]:
        """Replace timeouts that the client raises by the recorded errors."""
        self.failed = None
        if self.error is not None and not _is(self.error, _LOGIN):
            self.error = None
        kafka = client_module()
        try:
            yield
        except (kafka.KafkaException, SystemError) as error:
            # After a fatal error the client calls `delivered` with the exception already set, which
            # Python reports as a SystemError. If the cause got lost, the connection is gone.
            raised = error.__cause__ if isinstance(error, SystemError) else error
            if isinstance(raised, kafka.KafkaException):
                cause = raised.args[0]
            else:
                cause = kafka.KafkaError(kafka.KafkaError._TRANSPORT)
            if not is_fenced(cause):
                cause = self.failed or self.or_else(cause)
            raise kafka.KafkaException(cause) from None


def is_fenced(error: Any) -> bool:
    """Was the producer fenced by another one with the same transactional id?"""
    return _is(error, _FENCED)


def is_down(error: Any) -> bool:
    """Is there no connection at all? Then a timeout is not about slow sending."""
    return _is(error, "_TRANSPORT _ALL_BROKERS_DOWN _RESOLVE")


def is_hopeless(error: Any) -> bool:
    """Is a retry pointless?"""
    return kind_of_kafka(error.name()) is not ConnectorError and not _is(error, _UNKNOWN)


def failure(who: str, cluster: Cluster, topic: str, error: Any) -> Problem:
    """The message for an error; `who` names the source or sink."""
    if _is(error, _LOGIN):
        return Problem(
            "kafka-login",
            f"{who}: {cluster.servers} refused the login: {error.str()}",
            "check security.protocol, sasl.mechanism and sasl.username in settings, and the "
            "password that password_env or password_file names",
        )
    if _is(error, _UNREACHABLE):
        return Problem(
            "kafka-unreachable",
            f"{who}: no broker of {cluster.servers} answers: {error.str()}",
            "check that the brokers run and that their advertised addresses are reachable",
        )
    if _is(error, _FORBIDDEN):
        return Problem(
            "kafka-forbidden",
            f"{who}: {cluster.servers} does not allow it for topic '{topic}': {error.str()}",
            "give the user the rights listed in docs/kafka.md",
        )
    if _is(error, _UNKNOWN):
        return Problem(
            "unknown-topic",
            f"{who}: topic '{topic}' does not exist, or lacks partitions: {error.str()}",
            "create it; if it was deleted while the flow ran, start with a new checkpoint",
        )
    if _is(error, _TOO_LARGE):
        return Problem(
            "row-too-large",
            f"{who}: a row is larger than topic '{topic}' or the client allows: {error.str()}",
            "raise max.message.bytes of the topic and 'message.max.bytes' in settings, or make "
            "rows smaller",
        )
    if _is(error, _TIMEOUT):
        return Problem(
            "transaction-timeout",
            f"{who}: {cluster.servers} allows no transaction.timeout.ms="
            f"{cluster.transaction_timeout_ms}: its transaction.max.timeout.ms is less",
            "raise that of the broker, or set 'transaction.timeout.ms' in settings to what it "
            "allows",
        )
    if _is(error, _SETTINGS):
        return Problem(
            "kafka-settings", f"{who}: {error.str()}", "correct the settings of the binding"
        )
    return Problem(
        "kafka-failed",
        f"{who}: topic '{topic}' of {cluster.servers}: {error.name()}: {error.str()}",
        "start again: what was written is in the ledger, and nothing is lost or duplicated",
    )


def overdue(who: str, cluster: Cluster, topic: str, epoch: int) -> Problem:
    """The message for an epoch that took longer to send than the transaction timeout."""
    limit = cluster.transaction_timeout_ms
    return Problem(
        "transaction-timeout",
        f"{who}: sending epoch {epoch} to topic '{topic}' took longer than "
        f"transaction.timeout.ms={limit} ({limit / 1000:g} s), after which {cluster.servers} "
        "aborts a transaction; no row of the epoch becomes visible",
        "set a longer 'transaction.timeout.ms' in settings (the broker's "
        "transaction.max.timeout.ms is its limit, 15 minutes unless set) and run again; smaller "
        "epochs (max_rows_per_epoch of the source) take less time",
    )


def failed(who: str, cluster: Cluster, topic: str, error: Any) -> CutwaterError:
    """The Cutwater error for a client error; its class follows from the code."""
    return kind_of_kafka(error.name())(failure(who, cluster, topic, error))


def patiently(who: str, cluster: Cluster, topic: str, look: Callable[[], _T]) -> _T:
    """Retry a read-only request until a broker answers, or raise when patience is over.

    All brokers may be restarting. An error that a retry cannot cure is raised at once.
    """
    # By hand: tenacity would still need the deadline, and `is_hopeless` to choose what to retry.
    kafka = client_module()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return look()
        except kafka.KafkaException as error:
            if is_hopeless(error.args[0]) or time.monotonic() > deadline:
                raise failed(who, cluster, topic, error.args[0]) from None
            time.sleep(0.5)


@contextlib.contextmanager
def in_words(who: str, cluster: Cluster, topic: str) -> Iterator[None]:
    """Raise errors of the client as errors of Cutwater, with a message and a hint."""
    try:
        yield
    except client_module().KafkaException as error:
        raise failed(who, cluster, topic, error.args[0]) from None


def _is(error: Any, names: str) -> bool:
    known = client_module().KafkaError
    return error.code() in [getattr(known, name) for name in names.split() if hasattr(known, name)]
