"""Detects secrets in plain text: a configuration names where a secret is, never its value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["inline_secrets", "is_secret_name"]

_SECRET = re.compile(
    r"(^|[._-])(\w*(password|secret|token)|passwd|pwd|passphrase|credentials?|(api|secret)[._-]?key"
    r"|(private|account|shared|encryption|provided|signing|master)[._-]?key|access[._-]?key(?![._-]?id)|sas)"
    r"s?($|[._-])",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[._-](env|file|path|location|provider|class|ur[il]|enabled?)$", re.IGNORECASE)
_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)
_IN_TEXT = re.compile(
    r"\b(password|passwd|pwd|secret|accountkey|sharedaccesskey)\s*=\s*[^\s;&]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    """Does a setting of this name hold a secret, rather than the location of one?

    >>> is_secret_name("sasl.password"), is_secret_name("password_env"), is_secret_name("passing")
    (True, False, False)
    """
    return bool(_SECRET.search(name)) and not _NAMED.search(name)


def inline_secrets(name: str, value: Any) -> Iterator[str]:
    """The dotted names of the settings, in this one, that hold a secret in plain text.

    >>> list(inline_secrets("url", "postgresql://me:hunter2@db/x"))
    ['url']
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            found = is_secret_name(str(key)) and not isinstance(inner, Mapping)
            yield from [f"{name}.{key}"] if found else inline_secrets(f"{name}.{key}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from inline_secrets(name, inner)
    elif _is_secret(name, value):
        yield name


def _is_secret(name: str, value: Any) -> bool:
    if isinstance(value, str) and (_IN_URL.search(value) or _IN_TEXT.search(value)):
        return True
    return is_secret_name(name) and not isinstance(value, bool)
