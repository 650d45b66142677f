"""Pairs whose sink reaches its server through a link that can be bad."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.connectors.cutting_proxy import CuttingProxy, cutting_proxy
from support.faults.pairs import Pair, make_pair


@contextlib.contextmanager
def linked_pair(
    name: str, folder: Path, service: Callable[[str], Any]
) -> Iterator[tuple[Pair, CuttingProxy]]:
    """A new, empty sink on a server, and the link to it; its observer needs no link."""
    pair = make_pair(name, folder, service)
    if name.startswith("postgres"):
        port = service("postgres").port
        with cutting_proxy(port) as link:
            dsn = pair.binding["dsn"].replace(f"port={port}", f"port={link.port}")
            yield replace(pair, binding={**pair.binding, "dsn": dsn}), link
    else:
        with cutting_proxy(*service("broker").link) as link:
            servers = f"127.0.0.1:{link.port}"
            yield replace(pair, binding={**pair.binding, "servers": servers}), link
