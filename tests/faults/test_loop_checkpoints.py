"""Checkpoints with rounds in their logs: moved to more partitions, read, and after a power loss."""

import json
import random
import signal
import time
from pathlib import Path

import pytest
from support.faults.power import Synced, copy_with_losses
from support.faults.victims import start_cutwater
from support.flows import trails_by_log
from support.spark.agreement import (
    assert_agreement,
    by_input,
    ends_of,
    expected,
    input_epochs,
    input_epochs_shown,
    offsets_of,
)
from support.spark.embedded_spark import shared_session

import cutwater.spark
from cutwater.spark.storage.durable import SYNC_LOG
from cutwater.testing.connectors.processes import kill_all, result_of, signal_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BYTES = 80
"""About two records an epoch."""


def write_trails(folder, count):
    folder.mkdir(parents=True)
    given = [
        {"place": "abc"[n % 3], "text": "uvwxyz"[n % 6], "left": 4 - n % 2} for n in range(count)
    ]
    (folder / "1.jsonl").write_text("".join(json.dumps(trail) + "\n" for trail in given))


def start(root, **environment):
    command = ["run", f"{trails_by_log.__file__}:trails", "--json"]
    command += ["--max-bytes-per-epoch", str(BYTES), "--source", f"trails={root / 'trails'}"]
    command += ["--sink", f"out={root / 'out'}", "--checkpoint", str(root / "checkpoint")]
    return start_cutwater(*command, **environment)


def newest(checkpoint):
    found = (checkpoint / "spark" / "commits").glob("[0-9]*")
    return max((int(path.name) for path in found), default=-1)


def agree(checkpoint, out):
    """What was shown for each input epoch is what the simulator shows; how many epochs it took."""
    ends = ends_of(checkpoint, ["trails", "fed back: walk", "left: walk"])
    numbers = input_epochs(ends, ["trails"])
    read = by_input(offsets_of(checkpoint, ["trails"]), numbers)
    wanted = expected(trails_by_log.trails, checkpoint, read, is_closed=False)
    assert_agreement(wanted, {"out": out}, numbers=input_epochs_shown(ends, ["trails"]))
    assert any(wanted["out"])


def test_a_checkpoint_is_moved_and_read_in_the_middle_of_rounds(tmp_path):
    write_trails(tmp_path / "trails", 8)
    checkpoint = tmp_path / "checkpoint"
    process = start(tmp_path)
    wait_until(process, lambda: newest(checkpoint) >= 2)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    inside = cutwater.spark.describe(checkpoint).loop.input_epochs
    assert inside, "it was stopped while something went round"
    rows = cutwater.spark.read_state(checkpoint, "walked", shared_session()).rows
    assert {row["input_epoch"] for row in rows} <= {each.number for each in inside}
    assert all(isinstance(row["state"], str) for row in rows)
    moved = start_cutwater("checkpoint", "rescale", str(checkpoint), "--partitions", "4", "--json")
    assert result_of(moved)["partitions"] == 4
    assert cutwater.spark.describe(checkpoint).loop.input_epochs == inside
    result_of(start(tmp_path))
    agree(checkpoint, tmp_path / "out")


@pytest.mark.usefixtures("rebooted")
def test_a_power_loss_in_any_round_loses_nothing(tmp_path, seed):
    rng = random.Random(seed)
    write_trails(tmp_path / "trails", 10)
    log = tmp_path / "syncs"
    process = start(tmp_path, **{SYNC_LOG: str(log)})
    losses = 0
    try:
        for number in range(2):
            begun = newest(tmp_path / "checkpoint")
            wait_until(process, lambda begun=begun: newest(tmp_path / "checkpoint") > begun)
            time.sleep(rng.random())
            signal_all(process, signal.SIGSTOP)
            copy = tmp_path / f"loss-{number}"
            for name in ("checkpoint", "out"):
                losses += len(copy_with_losses(tmp_path / name, copy / name, Synced(log), rng))
            signal_all(process, signal.SIGCONT)
    finally:
        kill_all(process)
    for number in range(2):
        copy = tmp_path / f"loss-{number}"
        cutwater.spark.run(
            trails_by_log.trails,
            shared_session(),
            sources={"trails": cutwater.spark.json_lines(str(tmp_path / "trails"), BYTES)},
            sinks={"out": cutwater.spark.folder(str(copy / "out"))},
            checkpoint=Path(copy / "checkpoint"),
        )
        agree(copy / "checkpoint", copy / "out")
    assert losses > 0
