"""Examples that are PySpark jobs of their own run as their readers run them: in a new process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.repo.package import ROOT

from cutwater.spark.embedded.java import java_home


@pytest.mark.spark
def test_a_flow_inside_a_job(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "JAVA_HOME": str(java_home())}
    env["PYSPARK_PYTHON"] = env["PYSPARK_DRIVER_PYTHON"] = sys.executable
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "inside_a_job.py"],
        cwd=tmp_path, env=env, text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == (
        "ada, order 1: 5.00 in all\n"
        "ada, order 2: 7.50 in all\n"
        "ben, order 1: 1.20 in all\n"
        "ben, order 1: 7.00 in all\n"
        "ben, order 2: 2.00 in all\n"
        "the same as the simulation\n"
    )
