"""SIGKILL in a run whose loops turn inside its epochs: epoch by epoch what the simulator shows."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.faults.victims import kill_all, result_of, wait_until
from support.spark.agreement import assert_agreement, expected, offsets_of

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import graphs

EXAMPLE = Path(__file__).parents[2] / "examples" / "graphs.py"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def write_edges(folder):
    rng = random.Random(3)
    folder.mkdir(parents=True)
    lines = [json.dumps({"a": rng.randrange(80), "b": rng.randrange(80)}) for _ in range(160)]
    (folder / "1.jsonl").write_text("\n".join(lines) + "\n")


def start(root):
    command = ["run", f"{EXAMPLE}:components", "--json", "--max-bytes-per-epoch", "500"]
    command += ["--source", f"edges={root / 'edges'}", "--sink", f"components={root / 'out'}"]
    command += ["--checkpoint", str(root / "checkpoint")]
    return subprocess.Popen(
        [sys.executable, "-c", "from cutwater.cli import main; main()", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=dict(os.environ),
    )


def test_a_loop_that_is_killed_shows_what_the_simulator_shows(tmp_path):
    write_edges(tmp_path / "edges")
    process = start(tmp_path)
    try:
        wait_until(process, lambda: len(list((tmp_path / "out").glob("epoch=*"))) >= 2)
    finally:
        kill_all(process)
    shown = len(list((tmp_path / "out").glob("epoch=*")))
    result = result_of(start(tmp_path))
    assert result["generation"] == 2
    offsets = offsets_of(tmp_path / "checkpoint", ["edges"])
    assert len(offsets) > shown
    wanted = expected(graphs.components, tmp_path / "checkpoint", offsets, is_closed=False)
    assert_agreement(wanted, {"components": tmp_path / "out"})
