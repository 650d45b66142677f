"""SIGKILL in a run in which two clocks meet: each belief once, and as the simulator has it."""

from pathlib import Path

import msgspec
import pytest
from support.faults.victims import start_cutwater
from support.flows.beliefs import Believed, believed, bitemporal, draw
from support.spark.agreement import assert_agreement, expected, offsets_of, parts_of

from cutwater.testing.connectors.processes import kill_all, result_of, wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "bitemporal.py"
SOURCES = ["invoices", "rates"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def write(folder, items):
    folder.mkdir(parents=True)
    lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
    (folder / "1.jsonl").write_bytes(lines)


def start(root):
    command = ["run", f"{EXAMPLE}:turnover", "--json", "--max-bytes-per-epoch", "400"]
    for name in SOURCES:
        command += ["--source", f"{name}={root / name}"]
    command += ["--sink", f"beliefs={root / 'out'}", "--checkpoint", str(root / "checkpoint")]
    return start_cutwater(*command)


def shown(root):
    return len(list((root / "out").glob("epoch=*")))


def test_two_clocks_that_are_killed_show_what_the_simulator_shows(tmp_path):
    invoices, rates = draw(3, days=40, versions=14)
    write(tmp_path / "invoices", invoices)
    write(tmp_path / "rates", rates)
    process = start(tmp_path)
    try:
        wait_until(process, lambda: shown(tmp_path) >= 2)
    finally:
        kill_all(process)
    before = shown(tmp_path)
    result = result_of(start(tmp_path))
    assert result["generation"] == 2
    assert shown(tmp_path) > before
    offsets = offsets_of(tmp_path / "checkpoint", SOURCES)
    wanted = expected(bitemporal.turnover, tmp_path / "checkpoint", offsets, is_closed=False)
    assert_agreement(wanted, {"beliefs": tmp_path / "out"})
    lines = [
        line for parts in parts_of(tmp_path / "out").values() for part in parts for line in part
    ]
    rows = [msgspec.json.decode(line, type=Believed) for line in lines]
    assert len(rows) == len(set(rows))
    assert set(rows) <= believed(invoices, rates)
