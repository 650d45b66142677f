"""SIGKILL in runs with loops, by both plans: input by input what the simulator shows."""

import json
import random
import sys
from pathlib import Path

import pytest
from support.faults.victims import start_cutwater
from support.flows import components_by_log, trails_by_log
from support.spark.agreement import (
    assert_agreement,
    by_input,
    ends_of,
    expected,
    input_epochs,
    input_epochs_shown,
    offsets_of,
)

from cutwater.testing.connectors.processes import kill_all, result_of, wait_until

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import graphs

EXAMPLE = Path(__file__).parents[2] / "examples" / "graphs.py"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def write_edges(folder):
    rng = random.Random(3)
    folder.mkdir(parents=True)
    lines = [json.dumps({"a": rng.randrange(80), "b": rng.randrange(80)}) for _ in range(160)]
    (folder / "1.jsonl").write_text("\n".join(lines) + "\n")


def start(root, target=EXAMPLE, size=500, flow="components", source="edges"):
    sink = "out" if flow == "trails" else flow
    command = ["run", f"{target}:{flow}", "--json", "--max-bytes-per-epoch", str(size)]
    command += ["--source", f"{source}={root / source}", "--sink", f"{sink}={root / 'out'}"]
    command += ["--checkpoint", str(root / "checkpoint")]
    return start_cutwater(*command)


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


def newest(root, log):
    """The newest epoch in a log of Spark's; -1: none."""
    found = (root / "checkpoint" / "spark" / log).glob("[0-9]*")
    return max((int(path.name) for path in found), default=-1)


def test_a_kill_in_any_round_shows_what_the_simulator_shows(tmp_path):
    """By a log a round is an epoch: one kill within a round, one just after one was sealed."""
    (tmp_path / "edges").mkdir()
    path = [{"a": n, "b": n + 1} for n in (4, 1, 3, 2, 0, 5)]
    lines = "".join(json.dumps(edge) + "\n" for edge in path)
    (tmp_path / "edges" / "1.jsonl").write_text(lines)
    target = Path(components_by_log.__file__)
    fed_back = tmp_path / "checkpoint" / "fed-back" / "spread"
    for is_time in (
        lambda: newest(tmp_path, "offsets") >= 2,
        lambda: any(int(p.name[6:]) >= 4 for p in fed_back.glob("epoch=*")),
    ):
        process = start(tmp_path, target, 70)
        try:
            wait_until(process, is_time)
        finally:
            kill_all(process)
    result = result_of(start(tmp_path, target, 70))
    assert result["generation"] == 3
    offsets = offsets_of(tmp_path / "checkpoint", ["edges"])
    numbers = input_epochs(offsets, ["edges"])
    assert len(offsets) > 6
    read = by_input(offsets, numbers)
    checkpoint = tmp_path / "checkpoint"
    wanted = expected(components_by_log.components, checkpoint, read, is_closed=False)
    assert_agreement(wanted, {"components": tmp_path / "out"}, numbers=numbers)


def test_a_kill_while_input_epochs_turn_at_once_shows_what_the_simulator_shows(tmp_path):
    (tmp_path / "trails").mkdir()
    given = [{"place": "abc"[n % 3], "text": "uvwxyz"[n], "left": 4 - n % 3} for n in range(6)]
    lines = "".join(json.dumps(trail) + "\n" for trail in given)
    (tmp_path / "trails" / "1.jsonl").write_text(lines)
    target = Path(trails_by_log.__file__)
    settings = {"target": target, "size": 80, "flow": "trails", "source": "trails"}
    fed_back = tmp_path / "checkpoint" / "fed-back" / "walk"
    for is_time in (
        lambda: newest(tmp_path, "offsets") >= 2,
        lambda: any(int(p.name[6:]) >= 4 for p in fed_back.glob("epoch=*")),
    ):
        process = start(tmp_path, **settings)
        try:
            wait_until(process, is_time)
        finally:
            kill_all(process)
    assert result_of(start(tmp_path, **settings))["generation"] == 3
    checkpoint = tmp_path / "checkpoint"
    ends = ends_of(checkpoint, ["trails", "fed back: walk", "left: walk"])
    assert max(len(end["left: walk"].get("in the loop", ())) for end in ends) > 1
    numbers = input_epochs(ends, ["trails"])
    read = by_input(offsets_of(checkpoint, ["trails"]), numbers)
    wanted = expected(trails_by_log.trails, checkpoint, read, is_closed=False)
    shown = input_epochs_shown(ends, ["trails"])
    assert_agreement(wanted, {"out": tmp_path / "out"}, numbers=shown)
