"""``cutwater init`` makes a project whose own commands work."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def project(cli, tmp_path, monkeypatch):
    done = cli("init", tmp_path / "means")
    assert done.code == 0
    monkeypatch.chdir(tmp_path / "means")
    return done


def test_it_says_what_to_do_next(project):
    assert "cutwater run flow.py:flow --config run.toml" in project.out


def test_its_flow_can_be_simulated_and_checked(cli, project):
    simulated = cli("simulate", "flow.py:flow")
    assert simulated.code == 0
    assert "Mean(sensor='door', at=2, mean=5.0)" in simulated.out
    assert cli("check", "flow.py:flow", "--crashes", "1").code == 0


def test_its_run_with_a_crash_is_explained(cli, project):
    crashing = ("--inputs", "flow.py:crashing", "--trace", "run.jsonl")
    assert cli("simulate", "flow.py:flow", *crashing).code == 0
    explained = cli("explain", "run.jsonl")
    assert explained.code == 0
    assert "3 failures, 2 generations" in explained.out


def test_its_tests_pass(project):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout


def test_nothing_is_overwritten(cli, project, tmp_path):
    Path("run.toml").unlink()
    done = cli("init", tmp_path / "means")
    assert done.code == 2
    assert "has a flow.py already, and nothing is overwritten" in done.err
    assert not Path("run.toml").exists()


def test_a_url_becomes_no_folder(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli("init", "s3://bucket/means")
    assert (done.code, "not-a-local-path" in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_blank_in_its_name_is_quoted(cli, tmp_path):
    assert f"cd '{tmp_path / 'my means'}'" in cli("init", tmp_path / "my means").out


@pytest.mark.spark
@pytest.mark.slow
def test_it_runs_on_spark(server, project, tmp_path):
    root = tmp_path / "means"
    done = server("run", root / "flow.py:flow", "--config", root / "run.toml")
    assert done.code == 0, done.err
    parts = sorted((root / "out" / "means").glob("epoch=*/*.jsonl"))
    rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    found = [(row["at"], row["mean"]) for row in rows]
    assert sorted(found) == [(1, 4.0), (2, 5.0), (3, 20.0), (65, 6.0), (130, 21.0)]
