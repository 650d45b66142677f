"""Which flows have been checked, recorded in a small file beside the file that defines the flow.

::

    .cutwater/checked.json      {"format": 1, "flows": {"totals": {"code": ..., "inputs": 10, ...}}}

A record is valid as long as the flow's fingerprint is unchanged and the version of Cutwater is the
one that checked it. It contains nothing of the inputs.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from cutwater.flow.builder import Flow
from cutwater.flow.fingerprint import flow_fingerprint
from cutwater.flow.timely.bodies import with_bodies

__all__ = ["CheckRecord", "forget_check", "note_check", "noted_check"]

_FORMAT = 1


@dataclass(frozen=True)
class CheckRecord:
    """The record of a check that found no counterexample, and how much it covered."""

    code: str
    """The flow's fingerprint."""
    inputs: int
    """The number of inputs tried."""
    events: int
    """The number of events in all of them together."""
    cutwater: str
    """The version of Cutwater that checked it."""


def note_check(flow: Flow, inputs: int, events: int) -> Path | None:
    """Record that no counterexample was found. Returns the file; None: the flow is in no file.

    Raises `OSError` if the file cannot be written.
    """
    path = _file(flow)
    if path is not None:
        noted = CheckRecord(flow_fingerprint(flow), inputs, events, _version())
        _write(path, {**_read(path), flow.name: asdict(noted)})
    return path


def forget_check(flow: Flow) -> None:
    """Delete the record of a flow."""
    path = _file(flow)
    if path is not None and flow.name in (noted := _read(path)):
        _write(path, {name: check for name, check in noted.items() if name != flow.name})


def noted_check(flow: Flow) -> CheckRecord | None:
    """The record of exactly this flow; None if there is none or the flow has changed since."""
    path = _file(flow)
    try:
        found = msgspec.convert(_read(path).get(flow.name) if path else None, CheckRecord)
    except ValueError:  # msgspec's ValidationError too
        return None
    return found if (found.code, found.cutwater) == (flow_fingerprint(flow), _version()) else None


def _file(flow: Flow) -> Path | None:
    files = _files(flow)
    return files[0].parent / ".cutwater" / "checked.json" if files else None


def _files(flow: Flow) -> list[Path]:
    """The files that define the steps of a flow, that of the first step first."""
    named = dict.fromkeys(Path(step.where.file) for step in with_bodies(flow.steps))
    return [path for path in named if path.is_file()]


def _read(path: Path) -> dict[str, Any]:
    """All records in the file; empty if it cannot be read."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    is_ours = isinstance(data, dict) and data.get("format") == _FORMAT
    flows = data.get("flows") if is_ours else None
    return flows if isinstance(flows, dict) else {}


def _write(path: Path, flows: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    # Replaced atomically: another check or run may read the file at any time.
    fresh = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    fresh.write_text(json.dumps({"format": _FORMAT, "flows": flows}, indent=1) + "\n")
    fresh.replace(path)


def _version() -> str:
    try:
        return version("cutwater")
    except PackageNotFoundError:
        return ""
