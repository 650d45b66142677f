"""Too much at once: one key that has all rows, and a heap that is too small for an epoch."""

import json
import time
from pathlib import Path

import pytest
from support.endings.supervisor import supervise
from support.faults.victims import Victim

from cutwater.testing.connectors.processes import descendants, kill_all

pytestmark = [pytest.mark.spark, pytest.mark.slow]
MIB = 1 << 20
WORKER_LIMIT = 600 * MIB
"""What a worker takes at most whose epoch has one key, by docs/operations.md."""
SMALL_HEAP = '[spark]\n"spark.driver.memory" = "480m"\n'
"""About the least with which Spark starts."""


def write_readings(folder, rows, sensor):
    """Readings of one sensor, and no resets."""
    for name in ("readings", "resets"):
        (folder / name).mkdir(parents=True)
    with (folder / "readings" / "1.jsonl").open("w") as file:
        for at in range(rows):
            file.write(json.dumps({"sensor": sensor, "at": at, "value": 1.0}) + "\n")
    return folder


def peaks_of_workers(process):
    """The most that each Python worker of a run takes until it ends."""
    peaks = {}
    while process.poll() is None:
        for pid in descendants(process.pid):
            try:
                if "pyspark" in Path(f"/proc/{pid}/comm").read_text():
                    status = Path(f"/proc/{pid}/status").read_text()
                    peaks[pid] = int(status.split("VmHWM:")[1].split()[0]) * 1024
            except (OSError, IndexError):
                continue
        time.sleep(0.05)
    return peaks


def ended(process):
    try:
        _, stderr = process.communicate(timeout=600)
    finally:
        kill_all(process)
    return process.returncode, stderr


def rows_of(victim):
    return [json.loads(line) for lines in victim.seen().values() for line in lines]


def test_one_key_with_all_rows_of_large_epochs_keeps_workers_small(tmp_path):
    rows = 1_500_000
    config = tmp_path / "run.toml"
    config.write_text(SMALL_HEAP)
    victim = Victim(tmp_path / "victim", write_readings(tmp_path / "in", rows, "hot"))
    usual_limits = ("--max-bytes-per-epoch", str(32 * MIB), "--config", str(config))
    process = victim.start(*usual_limits)
    try:
        peaks = peaks_of_workers(process)
    finally:
        code, stderr = ended(process)
    assert code == 0, stderr
    assert peaks
    assert max(peaks.values()) < WORKER_LIMIT
    assert [row["at"] for row in rows_of(victim)] == list(range(rows))


def test_a_heap_that_is_too_small_is_a_sentence_and_smaller_epochs_go_on(tmp_path):
    """The epoch was planned and nothing of it was shown, so it is planned anew, smaller."""
    config = tmp_path / "run.toml"
    config.write_text(SMALL_HEAP)
    victim = Victim(tmp_path / "victim", write_readings(tmp_path / "in", 900, "s" * MIB))
    limits = [str(2_000 * MIB), str(16 * MIB)]

    def start():
        limit = limits.pop(0)
        return ended(victim.start("--max-bytes-per-epoch", limit, "--config", str(config)))

    service = supervise(start)
    assert service.codes == [1, 0], service.messages
    assert "[jvm-out-of-memory] the JVM of the run had no memory left" in service.messages[0]
    assert "Traceback" not in service.messages[0]
    assert [row["at"] for row in rows_of(victim)] == list(range(900))
