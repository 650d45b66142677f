"""A process that publishes to a Delta table, killed again and again: each row is there once."""

import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from support.connectors import delta_driver

from cutwater.observers.delta import DeltaObserver

EPOCHS = 60
KILLS = 4
DEADLINE_SECONDS = 300


def start(table: Path, checkpoint: Path) -> subprocess.Popen[bytes]:
    module = delta_driver.__name__
    command = [sys.executable, "-m", module, str(table), str(checkpoint), str(EPOCHS)]
    tests = Path(delta_driver.__file__).parents[2]
    return subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tests)


def newest_version(table: Path) -> int:
    return max((int(path.stem) for path in table.glob("_delta_log/*.json")), default=-1)


@pytest.mark.slow
def test_each_row_is_there_once_however_often_the_driver_is_killed(tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    checkpoint.mkdir()
    for _ in range(KILLS):
        until = newest_version(table) + rng.randrange(1, 15)
        process = start(table, checkpoint)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while newest_version(table) < until and process.poll() is None:
            assert time.monotonic() < deadline, "the version was never seen"
        process.kill()
        process.communicate()
    process = start(table, checkpoint)
    _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, errors.decode()
    wanted = [asdict(row) for epoch in range(EPOCHS) for row in delta_driver.rows_of(epoch)]
    found = DeltaObserver(table).rows()
    assert Counter(map(str, found)) == Counter(map(str, wanted))
    assert len(list(table.glob("*.parquet"))) < 40
