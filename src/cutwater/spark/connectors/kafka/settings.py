"""How to reach a cluster: settings are serialised and shown, secrets are looked up where used."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cutwater.errors import Problem, RefusedError
from cutwater.spark.connectors.base.passwords import password_from, password_problems

__all__ = ["OURS", "Cluster", "client_module", "topic_problems"]

_LONGEST_TOPIC = 249
_TOPIC = re.compile(rf"(?!\.{{1,2}}$)[a-zA-Z0-9._-]{{1,{_LONGEST_TOPIC}}}")

OURS = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "isolation.level",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "message.send.max.retries",
        "metadata.broker.list",
        "partitioner",
        "request.required.acks",
        "retries",
        "transactional.id",
    }
)
"""Client settings that the guarantee depends on: Cutwater sets them, users must not."""

_TIMEOUT = "transaction.timeout.ms"
_TIMEOUT_MS = 300_000
"""Longer than a slow link needs for an epoch; a third of the default limit of brokers."""

_SECRET = ("password", "secret", "key.pem", "keystore", "oauthbearer.config", "credential")

logging.getLogger("cutwater.kafka").addHandler(logging.NullHandler())


def client_module() -> ModuleType:
    """The Kafka client, an extra; raises `RefusedError` if it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise RefusedError(
            Problem(
                "no-kafka-client",
                "a topic of Kafka needs the package confluent-kafka, which is not installed",
                "pip install 'cutwater[kafka]'",
            )
        ) from None
    return confluent_kafka


@dataclass(frozen=True)
class Cluster:
    """Brokers and how to connect to them; refers to the password, never holds it."""

    servers: str
    settings: tuple[tuple[str, Any], ...] = ()
    password_env: str | None = None
    password_file: str | None = None

    @staticmethod
    def of(
        servers: str,
        settings: Mapping[str, Any],
        password_env: str | None,
        password_file: str | None,
    ) -> Cluster:
        """The cluster that a binding names."""
        return Cluster(servers, tuple(sorted(settings.items())), password_env, password_file)

    @property
    def transaction_timeout_ms(self) -> int:
        """How long a transaction may be open before the broker aborts it."""
        return int(dict(self.settings).get(_TIMEOUT, _TIMEOUT_MS))

    def client(self, **own: Any) -> dict[str, Any]:
        """The configuration of a client; `own` names settings with underscores for dots."""
        found = {
            "bootstrap.servers": self.servers,
            "logger": logging.getLogger("cutwater.kafka"),
            **{name: value for name, value in self.settings if name != _TIMEOUT},
            **{_setting(name): value for name, value in own.items()},
        }
        password = password_from("the client of Kafka", self.password_env, self.password_file)
        return found if password is None else {**found, "sasl.password": password}

    def problems(self, who: str) -> Iterator[Problem]:
        """What is wrong with the settings; `who` names the source or sink in messages."""
        if not self.servers or "@" in self.servers or "//" in self.servers:
            shown = self.servers.rpartition("@")[2]
            yield Problem(
                "bad-servers",
                f"{who} has servers {shown!r}; they must be HOST:PORT, separated by commas, "
                "without a user or a password",
                "servers='kafka-1:9092,kafka-2:9092'; a user goes to settings "
                "{'sasl.username': ...}, a password is named by password_env or password_file",
            )
        for name, value in self.settings:
            if any(word in name for word in _SECRET):
                yield Problem(
                    "secret-in-settings",
                    f"{who} has a setting {name!r}, which holds a secret; settings are shown and "
                    "sent to every process",
                    "name the secret by password_env or password_file (it becomes sasl.password), "
                    "or a key by ssl.key.location",
                )
            elif name in OURS:
                yield Problem(
                    "setting-not-yours",
                    f"{who} has a setting {name!r}; the guarantee depends on "
                    "it, so Cutwater sets it",
                    "leave it out",
                )
            elif name == _TIMEOUT and not (str(value).isdigit() and int(value) >= 1000):
                yield Problem(
                    "kafka-settings",
                    f"{who} has {name}={value!r}; it must be at least 1000, in whole milliseconds",
                    f"{name}={_TIMEOUT_MS} is the default",
                )
        yield from password_problems(who, self.password_env, self.password_file)


def topic_problems(who: str, setting: str, name: str) -> Iterator[Problem]:
    """Why a setting cannot be the name of a topic; a broker would name neither setting nor rule."""
    if not _TOPIC.fullmatch(name):
        shown = name if len(name) <= _LONGEST_TOPIC else f"{name[:80]}…"
        yield Problem(
            "bad-name",
            f"{who} has {setting}={shown!r}, which is no name of a topic: it must be 1 to "
            f"{_LONGEST_TOPIC} letters, digits, '.', '_' and '-' of ASCII, and not '.' or '..'",
            "correct the name",
        )


def _setting(name: str) -> str:
    """The client's name of a setting; those of callbacks keep their underscores."""
    return name if name in ("error_cb", "on_delivery") else name.replace("_", ".")
